//! The gate's way to the loop: each thing a client does becomes a work item. A full queue makes the gate wait, and with
//! it the client's socket.

use std::net::SocketAddr;

use bytes::Bytes;

use super::simulation::Item;
use crate::net::{CloseReason, ConnectionId, GateSink, SinkClosed};
use crate::sim::LoopHandle;

/// Posts to the loop.
pub struct LoopSink {
    handle: LoopHandle<Item>,
}

impl LoopSink {
    /// A sink over the loop behind `handle`.
    pub fn new(handle: LoopHandle<Item>) -> Self {
        Self { handle }
    }

    async fn post(&self, item: Item) -> Result<(), SinkClosed> {
        self.handle.post(item).await.map_err(|_| SinkClosed)
    }
}

impl GateSink for LoopSink {
    async fn connected(&self, connection: ConnectionId, peer: SocketAddr) -> Result<(), SinkClosed> {
        self.post(Item::Connected { connection, address: peer.to_string() }).await
    }

    async fn packet(&self, connection: ConnectionId, payload: Bytes) -> Result<(), SinkClosed> {
        self.post(Item::Packet { connection, packet: payload }).await
    }

    async fn disconnected(&self, connection: ConnectionId, _reason: CloseReason) {
        // A loop that takes nothing more has forgotten its connections already.
        let _ = self.post(Item::Disconnected { connection }).await;
    }
}
