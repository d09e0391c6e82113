//! What the gate hands on: the [`GateSink`] that the server implements over its loop. The gate calls it from the tasks
//! of the connections; it never learns what becomes of a packet.

use std::future::Future;
use std::net::SocketAddr;

use bytes::Bytes;
use thiserror::Error;

use super::CloseReason;

/// The number of one client's link; never used again.
pub type ConnectionId = u64;

/// The sink takes nothing more: the host is stopping, or its loop has failed. The connection is then closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the host takes no more packets")]
pub struct SinkClosed;

/// Where connections, packets and disconnections go.
///
/// For one connection the gate calls `connected` first, then `packet` in the order of arrival, each only after the one
/// before has completed, and `disconnected` exactly once if `connected` returned `Ok`. (A call that is still waiting
/// when the gate's stop runs out of time is dropped.) A call completes when the loop has *admitted* it. While it waits
/// the connection's socket is not read, so a full loop slows its clients down and loses no frame.
pub trait GateSink: Send + Sync + 'static {
    /// A client has come.
    fn connected(
        &self,
        connection: ConnectionId,
        peer: SocketAddr,
    ) -> impl Future<Output = Result<(), SinkClosed>> + Send;

    /// A client has sent a frame. Dropped before it completes when the connection closes meanwhile.
    fn packet(&self, connection: ConnectionId, payload: Bytes) -> impl Future<Output = Result<(), SinkClosed>> + Send;

    /// A client is gone.
    fn disconnected(&self, connection: ConnectionId, reason: CloseReason) -> impl Future<Output = ()> + Send;
}
