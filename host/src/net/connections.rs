//! The handle to all connections: the loop sends and closes through it, from any thread, without ever waiting for a
//! socket. A send copies the payload into its connection's queue; one task of the gate then wakes the writers, so that
//! a burst of sends costs the loop a single wake-up.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustc_hash::FxHashMap;
use thiserror::Error;
use tokio::sync::Notify;

use super::counters::Counters;
use super::frame::FrameTooLarge;
use super::framing::Framing;
use super::link::{Call, Link};
use super::{CloseReason, ConnectionId, ConnectionsSnapshot, GateOptions, lock};

/// Why a frame was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SendError {
    /// The payload does not fit the framing. The connection stays.
    #[error(transparent)]
    TooLarge(#[from] FrameTooLarge),
    /// There is no such connection: it never was, or is long gone.
    #[error("there is no connection {connection}")]
    Unknown {
        /// The id given.
        connection: ConnectionId,
    },
    /// The connection is closing and takes nothing more.
    #[error("connection {connection} is closed")]
    Closed {
        /// The id given.
        connection: ConnectionId,
    },
    /// The client reads too slowly: this frame would have broken `gate.max_backlog_kb`, and has closed the connection.
    #[error("connection {connection} is cut off: its client left {backlog_bytes} bytes unread")]
    Backlog {
        /// The id given.
        connection: ConnectionId,
        /// What was waiting for it.
        backlog_bytes: usize,
    },
}

/// The first connection id for a gate opened at this wall-clock time: beyond every id that a gate opened earlier can
/// have given (it would have had to accept 4096 clients in every millisecond since), and below 2⁵³ until 2039, so that
/// ids survive in languages whose numbers are doubles.
pub fn first_connection_at(wall_ms: u64) -> ConnectionId {
    wall_ms << 12
}

/// All connections of one gate. Clones are the same handle.
#[derive(Debug, Clone)]
pub struct Connections {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    links: RwLock<FxHashMap<ConnectionId, Arc<Link>>>,
    /// Links whose tasks are to be called, until the flusher has done so.
    to_call: Mutex<Vec<Arc<Link>>>,
    /// Wakes the flusher when the first link is put into `to_call`.
    flusher: Notify,
    next_id: AtomicU64,
    max_backlog_bytes: usize,
    counters: Counters,
}

impl Connections {
    /// No connections yet. The first will have the id `first_connection`; see [`first_connection_at`].
    pub fn new(options: &GateOptions, first_connection: ConnectionId) -> Self {
        let shared = Shared {
            links: RwLock::default(),
            to_call: Mutex::default(),
            flusher: Notify::new(),
            next_id: AtomicU64::new(first_connection),
            max_backlog_bytes: options.max_backlog_bytes(),
            counters: Counters::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Queues one frame for a client. `Ok` means queued, not received.
    pub fn send(&self, connection: ConnectionId, payload: &[u8]) -> Result<(), SendError> {
        let links = self.read_links();
        let link = links.get(&connection).ok_or(SendError::Unknown { connection })?;
        let (sent, call) = link.push(payload);
        if call == Call::Needed {
            self.call_soon(link);
        }
        if sent.is_ok() {
            self.shared.counters.frames_out.fetch_add(1, Relaxed);
            self.shared.counters.bytes_out.fetch_add(payload.len() as u64, Relaxed);
        }
        sent
    }

    /// Closes a connection after what was sent to it before. False if it is closed already or unknown.
    pub fn close(&self, connection: ConnectionId) -> bool {
        let links = self.read_links();
        let Some(link) = links.get(&connection) else {
            return false;
        };
        let call = link.close(CloseReason::HostClosed);
        if call == Call::Needed {
            self.call_soon(link);
        }
        call == Call::Needed
    }

    /// Whether a connection is there and not closing.
    pub fn is_open(&self, connection: ConnectionId) -> bool {
        self.read_links().get(&connection).is_some_and(|link| link.closed().is_none())
    }

    /// What the gate has counted until now. Takes no lock.
    pub fn snapshot(&self) -> ConnectionsSnapshot {
        self.shared.counters.snapshot()
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Adds a connection at the port of `framing` under a new id. It is there until the answer is dropped.
    pub(super) fn register_at(&self, framing: Framing) -> Registered {
        let id = self.shared.next_id.fetch_add(1, Relaxed);
        let link = Arc::new(Link::new(id, framing, self.shared.max_backlog_bytes));
        self.shared.counters.accepted(framing);
        self.write_links().insert(id, Arc::clone(&link));
        Registered { connections: self.clone(), link }
    }

    /// A connection without a client, for tests of what sends.
    #[cfg(test)]
    pub(crate) fn register(&self) -> Registered {
        self.register_at(Framing::Lengths)
    }

    /// Closes all, as `close` does for one.
    pub(super) fn close_all(&self, reason: CloseReason) {
        let links: Vec<_> = self.read_links().values().cloned().collect();
        for link in links {
            if link.close(reason) == Call::Needed {
                link.call();
            }
        }
    }

    /// Calls the tasks for which something was queued, for ever. Runs as one task of the gate, off the loop.
    pub(super) async fn flush_for_ever(self) {
        let mut links = Vec::new();
        loop {
            self.shared.flusher.notified().await;
            std::mem::swap(&mut *lock(&self.shared.to_call), &mut links);
            for link in links.drain(..) {
                link.call();
            }
        }
    }

    fn call_soon(&self, link: &Arc<Link>) {
        let mut to_call = lock(&self.shared.to_call);
        to_call.push(Arc::clone(link));
        let flusher_rests = to_call.len() == 1;
        drop(to_call);
        if flusher_rests {
            self.shared.flusher.notify_one();
        }
    }

    // A panic while the map is locked cannot leave it half changed, so a poisoned lock is as good as another.
    fn read_links(&self) -> RwLockReadGuard<'_, FxHashMap<ConnectionId, Arc<Link>>> {
        self.shared.links.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_links(&self) -> RwLockWriteGuard<'_, FxHashMap<ConnectionId, Arc<Link>>> {
        self.shared.links.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place among the others. Dropping it, by whatever way its task ends, removes and counts it.
#[derive(Debug)]
pub(crate) struct Registered {
    connections: Connections,
    pub(super) link: Arc<Link>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        // A task that was dropped half-way (the gate's stop ran out of time) has given no reason of its own.
        let _ = self.link.close(CloseReason::Stopping);
        let reason = self.link.closed().unwrap_or(CloseReason::Stopping);
        self.connections.write_links().remove(&self.link.id);
        self.connections.counters().closed(self.link.framing, reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections() -> Connections {
        Connections::new(&GateOptions::default(), 1)
    }

    #[test]
    fn a_frame_to_a_connection_that_is_gone_is_an_error_value() {
        let connections = connections();
        let registered = connections.register();
        let id = registered.link.id;
        assert_eq!(connections.send(id, b"hello"), Ok(()));
        assert!(connections.is_open(id));
        assert!(connections.close(id));
        assert!(!connections.close(id) && !connections.is_open(id));
        assert_eq!(connections.send(id, b"late"), Err(SendError::Closed { connection: id }));
        drop(registered);
        assert_eq!(connections.send(id, b"later"), Err(SendError::Unknown { connection: id }));
        assert!(!connections.close(id));
    }

    #[test]
    fn ids_are_never_used_again() {
        let connections = connections();
        let first = connections.register().link.id;
        let second = connections.register().link.id;
        assert_eq!((first, second), (1, 2));
        assert!(first_connection_at(1_000_001) >= first_connection_at(1_000_000) + 4096);
        let new_year_2039_ms = 2_177_452_800_000;
        assert!(first_connection_at(new_year_2039_ms) < 1 << 53);
    }

    #[test]
    fn a_burst_of_sends_asks_for_each_connection_once() {
        let connections = connections();
        let (one, other) = (connections.register(), connections.register());
        for _ in 0..100 {
            connections.send(one.link.id, b"tick").unwrap();
            connections.send(other.link.id, b"tick").unwrap();
        }
        assert_eq!(lock(&connections.shared.to_call).len(), 2);
        assert_eq!(connections.snapshot().frames_out, 200);
    }
}
