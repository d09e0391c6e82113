//! The gate: clients over TCP or WebSocket, plain or by TLS, limited and counted. The server opens a [`Gate`], hands it a
//! [`GateSink`] for what comes in, and the loop sends through [`Connections`] for what goes out. This room never looks
//! inside a packet and knows no world, loop or guest. Its waits run on tokio's clock, which tests pause.

mod arrivals;
mod client;
mod connection;
mod connections;
mod counters;
pub mod frame;
mod framing;
mod gate;
mod handshake;
mod link;
mod options;
mod rate;
mod sink;
mod stream;
mod tls;
mod websocket;

pub use client::{Client, ClientError, ClientReceiver, ClientSender, Door};
pub use connections::{Connections, SendError, first_connection_at};
pub use counters::{CloseReason, ConnectionsSnapshot};
pub use gate::{BoundGate, Gate, GateError};
pub use options::{GateOptionError, GateOptions};
pub(crate) use options::{LONELY_CERTIFICATE, LONELY_KEY};
pub use sink::{ConnectionId, GateSink, SinkClosed};
pub use tls::{TlsError, Trust};

#[cfg(test)]
mod door_tests;
#[cfg(test)]
mod gate_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod test_world;
#[cfg(test)]
mod tls_tests;
#[cfg(test)]
mod websocket_tests;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a panic elsewhere: what these mutexes guard is whole between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
