//! Connections that a service opens to other hosts, as far as `sockets` of its entry in the configuration grants them.
//! Nothing here waits: what comes of it arrives as messages whose subjects are
//! [`SocketConnected`](crate::Subject::SocketConnected), [`SocketData`](crate::Subject::SocketData) and
//! [`SocketClosed`](crate::Subject::SocketClosed).

pub use crate::bindings::sockets::{SocketError, close, connect};

use crate::SocketId;

/// Sends bytes. They may be sent before the connection is open, and go then.
pub fn send(socket: SocketId, bytes: impl AsRef<[u8]>) -> Result<(), SocketError> {
    crate::bindings::sockets::send(socket, bytes.as_ref())
}
