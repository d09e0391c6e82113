//! The clients: sending packets, closing connections, and giving them to somebody else. For games and services.
//!
//! What a game's handler sends leaves when the handler returns, in order, or not at all when it fails. What a service
//! sends leaves at once.

pub use crate::bindings::gate::{GateError, bind, close};

use crate::ConnectionId;

/// Sends a packet to one client. A text is sent as its UTF-8 bytes.
pub fn send(to: ConnectionId, packet: impl AsRef<[u8]>) -> Result<(), GateError> {
    crate::bindings::gate::send(to, packet.as_ref())
}

/// [`send`], for those to whom it makes no difference whether the client is still there: an event or a timer may outlive
/// the connection that it wants to tell, and what it has written must not be undone for that.
pub fn tell(to: ConnectionId, packet: impl AsRef<[u8]>) -> Result<(), GateError> {
    match send(to, packet) {
        Err(GateError::Closed) => Ok(()),
        sent => sent,
    }
}

/// Sends the same packet to several clients, and says how many of them are connected.
pub fn send_all(to: &[ConnectionId], packet: impl AsRef<[u8]>) -> Result<u32, GateError> {
    crate::bindings::gate::send_all(to, packet.as_ref())
}
