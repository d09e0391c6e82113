//! The gate's way to the loop: each thing a client does becomes a work item. A full queue makes the gate wait, and with
//! it the client's socket; and so does a client that has sent many packets which the loop has yet to run, so that one
//! client in a hurry does not stand in the queue before all others.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rustc_hash::FxHashMap;
use tokio::sync::Semaphore;

use super::simulation::Item;
use crate::net::{CloseReason, ConnectionId, GateSink, SinkClosed};
use crate::sim::LoopHandle;

/// Packets of one client that may be in the queue.
const MAX_QUEUED_PACKETS: usize = 4;

/// Posts to the loop.
pub struct LoopSink {
    handle: LoopHandle<Item>,
    /// For each connection, the room that its packets have in the queue.
    room: Mutex<FxHashMap<ConnectionId, Arc<Semaphore>>>,
}

impl LoopSink {
    /// A sink over the loop behind `handle`.
    pub fn new(handle: LoopHandle<Item>) -> Self {
        Self { handle, room: Mutex::default() }
    }

    async fn post(&self, item: Item) -> Result<(), SinkClosed> {
        self.handle.post(item).await.map_err(|_| SinkClosed)
    }

    fn room(&self) -> MutexGuard<'_, FxHashMap<ConnectionId, Arc<Semaphore>>> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GateSink for LoopSink {
    async fn connected(&self, connection: ConnectionId, peer: SocketAddr) -> Result<(), SinkClosed> {
        self.room().insert(connection, Arc::new(Semaphore::new(MAX_QUEUED_PACKETS)));
        let posted = self.post(Item::Connected { connection, address: peer.to_string() }).await;
        if posted.is_err() {
            self.room().remove(&connection);
        }
        posted
    }

    async fn packet(&self, connection: ConnectionId, payload: Bytes) -> Result<(), SinkClosed> {
        let room = self.room().get(&connection).cloned().ok_or(SinkClosed)?;
        let place = room.acquire_owned().await.map_err(|_| SinkClosed)?;
        self.post(Item::Packet { connection, packet: payload, _place: place }).await
    }

    async fn disconnected(&self, connection: ConnectionId, _reason: CloseReason) {
        self.room().remove(&connection);
        // A loop that takes nothing more has forgotten its connections already.
        let _ = self.post(Item::Disconnected { connection }).await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::clock::ManualClock;
    use crate::sim::{Firing, LoopContext, LoopCore, SimOptions, Simulation};

    /// Runs every item by dropping it.
    struct Dropping;

    impl Simulation for Dropping {
        type Item = Item;
        type Timer = ();

        fn run_item(&mut self, _item: Item, _cx: &mut LoopContext<'_, Self>) -> anyhow::Result<()> {
            Ok(())
        }

        fn fire_timer(&mut self, _: Firing, _: &mut (), _: &mut LoopContext<'_, Self>) -> anyhow::Result<()> {
            Ok(())
        }
    }

    fn is_admitted(future: impl Future<Output = Result<(), SinkClosed>>) -> bool {
        pin!(future).poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(Ok(()))
    }

    #[test]
    fn a_client_in_a_hurry_waits_for_its_own_packets_and_others_do_not_wait_for_them() {
        let mut core = LoopCore::new(Dropping, SimOptions::default(), ManualClock::shared()).unwrap();
        let sink = LoopSink::new(core.handle());
        for connection in [1, 2] {
            assert!(is_admitted(sink.connected(connection, SocketAddr::from(([127, 0, 0, 1], 1)))));
        }
        for _ in 0..MAX_QUEUED_PACKETS {
            assert!(is_admitted(sink.packet(1, Bytes::new())));
        }
        assert!(!is_admitted(sink.packet(1, Bytes::new())));
        assert!(is_admitted(sink.packet(2, Bytes::new())));
        core.turn();
        assert!(is_admitted(sink.packet(1, Bytes::new())));
    }
}
