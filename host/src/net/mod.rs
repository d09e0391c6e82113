//! The gate: clients over TCP, framed, limited and counted. The server opens a [`Gate`], hands it a [`GateSink`] for
//! what comes in, and the loop sends through [`Connections`] for what goes out. This room never looks inside a packet
//! and knows no world, loop or guest. Its waits run on tokio's clock, which tests pause.

mod client;
mod connection;
mod connections;
mod counters;
pub mod frame;
mod gate;
mod link;
mod options;
mod rate;
mod sink;

pub use client::{Client, ClientError, ClientReceiver, ClientSender};
pub use connections::{Connections, SendError, first_connection_at};
pub use counters::{CloseReason, ConnectionsSnapshot};
pub use gate::{BoundGate, Gate, GateError};
pub use options::{GateOptionError, GateOptions};
pub use sink::{ConnectionId, GateSink, SinkClosed};

#[cfg(test)]
mod gate_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod test_world;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a panic elsewhere: what these mutexes guard is whole between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
