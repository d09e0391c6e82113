//! What the gate counts, and why connections end. Connections and the gate add to the [`Counters`]; the status reads
//! a [`ConnectionsSnapshot`], which takes no lock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::Serialize;

use super::framing::Framing;

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseReason {
    /// The client ended its stream between two frames.
    ClientLeft,
    /// The stream broke, or ended within a frame.
    ConnectionLost,
    /// The host asked for it.
    HostClosed,
    /// The gate, or the loop behind it, stopped.
    Stopping,
    /// Limit: a frame longer than `gate.max_frame_bytes`.
    FrameTooLarge,
    /// Limit: more frames than `gate.max_frames_per_second` and its burst allow.
    FrameRate,
    /// Limit: no whole frame for `gate.idle_timeout_s`, or no whole handshake for `gate.handshake_timeout_ms`.
    Idle,
    /// Limit: more than `gate.max_backlog_kb` waiting to be written to a client that does not read.
    Backlog,
    /// Limit: what came is not what this port speaks: TLS, or binary messages over WebSocket.
    Protocol,
}

impl CloseReason {
    /// Every reason, in the order of declaration.
    pub const ALL: [Self; 9] = [
        Self::ClientLeft,
        Self::ConnectionLost,
        Self::HostClosed,
        Self::Stopping,
        Self::FrameTooLarge,
        Self::FrameRate,
        Self::Idle,
        Self::Backlog,
        Self::Protocol,
    ];

    /// Its name in the status, in snake case.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClientLeft => "client_left",
            Self::ConnectionLost => "connection_lost",
            Self::HostClosed => "host_closed",
            Self::Stopping => "stopping",
            Self::FrameTooLarge => "frame_too_large",
            Self::FrameRate => "frame_rate",
            Self::Idle => "idle",
            Self::Backlog => "backlog",
            Self::Protocol => "protocol",
        }
    }

    /// True when the client broke a limit. Such a connection is cut off at once; others are first sent what waits.
    pub fn is_limit(self) -> bool {
        matches!(self, Self::FrameTooLarge | Self::FrameRate | Self::Idle | Self::Backlog | Self::Protocol)
    }
}

/// The running counts, shared by all connections.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub open: AtomicU64,
    /// Of the open ones, those at the port for WebSocket.
    pub websocket: AtomicU64,
    pub accepted: AtomicU64,
    pub refused: AtomicU64,
    pub accept_errors: AtomicU64,
    pub frames_in: AtomicU64,
    pub bytes_in: AtomicU64,
    pub frames_out: AtomicU64,
    pub bytes_out: AtomicU64,
    closed_by: [AtomicU64; CloseReason::ALL.len()],
}

impl Counters {
    /// A connection has come.
    pub fn accepted(&self, framing: Framing) {
        self.accepted.fetch_add(1, Relaxed);
        self.open.fetch_add(1, Relaxed);
        if framing == Framing::WebSocket {
            self.websocket.fetch_add(1, Relaxed);
        }
    }

    /// A connection is gone, socket and all.
    pub fn closed(&self, framing: Framing, reason: CloseReason) {
        self.closed_by[reason as usize].fetch_add(1, Relaxed);
        self.open.fetch_sub(1, Relaxed);
        if framing == Framing::WebSocket {
            self.websocket.fetch_sub(1, Relaxed);
        }
    }

    pub fn snapshot(&self) -> ConnectionsSnapshot {
        let closed_by: BTreeMap<_, _> =
            CloseReason::ALL.iter().map(|&why| (why.name(), self.closed_by[why as usize].load(Relaxed))).collect();
        ConnectionsSnapshot {
            open: self.open.load(Relaxed),
            websocket: self.websocket.load(Relaxed),
            accepted: self.accepted.load(Relaxed),
            closed: closed_by.values().sum(),
            refused: self.refused.load(Relaxed),
            closed_by,
            accept_errors: self.accept_errors.load(Relaxed),
            frames_in: self.frames_in.load(Relaxed),
            bytes_in: self.bytes_in.load(Relaxed),
            frames_out: self.frames_out.load(Relaxed),
            bytes_out: self.bytes_out.load(Relaxed),
        }
    }
}

/// The section `connections` of the status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConnectionsSnapshot {
    /// Connections whose sockets are open now.
    pub open: u64,
    /// Those of them that came by the port for WebSocket.
    pub websocket: u64,
    /// Connections let in since the start.
    pub accepted: u64,
    /// Connections that ended, for whatever reason.
    pub closed: u64,
    /// Clients turned away because `gate.max_connections` were open.
    pub refused: u64,
    /// `closed`, split by [`CloseReason::name`]; every reason is there, also with 0.
    pub closed_by: BTreeMap<&'static str, u64>,
    /// Times that the system failed to hand over a new connection.
    pub accept_errors: u64,
    /// Whole frames received within the limits.
    pub frames_in: u64,
    /// Bytes of their payloads.
    pub bytes_in: u64,
    /// Frames accepted for sending.
    pub frames_out: u64,
    /// Bytes of their payloads.
    pub bytes_out: u64,
}

impl ConnectionsSnapshot {
    /// How many connections ended for `reason`.
    pub fn closed_for(&self, reason: CloseReason) -> u64 {
        self.closed_by.get(reason.name()).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reasons_are_listed_once_each_in_order_and_named_as_they_serialize() {
        for (index, reason) in CloseReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.name());
        }
    }

    #[test]
    fn closed_is_the_sum_of_its_reasons() {
        let counters = Counters::default();
        for framing in [Framing::Lengths, Framing::Lengths, Framing::WebSocket] {
            counters.accepted(framing);
        }
        assert_eq!(counters.snapshot().websocket, 1);
        counters.closed(Framing::Lengths, CloseReason::Idle);
        counters.closed(Framing::WebSocket, CloseReason::Idle);
        counters.closed(Framing::Lengths, CloseReason::ClientLeft);
        let snapshot = counters.snapshot();
        assert_eq!((snapshot.accepted, snapshot.open, snapshot.websocket, snapshot.closed), (3, 0, 0, 3));
        assert_eq!(snapshot.closed_for(CloseReason::Idle), 2);
        assert_eq!(serde_json::to_value(&snapshot).unwrap()["closed_by"]["client_left"], 1);
    }
}
