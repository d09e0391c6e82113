//! What the loop and a connection's task share: the bytes that wait to be written to one client, and whether the
//! connection is closed. The loop pushes, the task takes and writes. No call here waits for a socket.

use std::sync::Mutex;

use bytes::BytesMut;
use tokio::sync::Notify;

use super::connections::SendError;
use super::frame::FrameTooLarge;
use super::framing::Framing;
use super::{CloseReason, ConnectionId, lock, websocket};

/// One connection, as seen from both sides.
#[derive(Debug)]
pub(super) struct Link {
    pub id: ConnectionId,
    pub framing: Framing,
    max_backlog_bytes: usize,
    outgoing: Mutex<Outgoing>,
    /// Wakes the writing half of the task when it rests because nothing waited.
    writer: Notify,
    /// Wakes the reading half of the task when the connection is closed.
    reader: Notify,
}

#[derive(Debug, Default)]
struct Outgoing {
    /// Whole frames, one after another, not yet taken by the writer.
    waiting: BytesMut,
    /// What the writer has taken and not yet written: it counts as backlog too.
    being_written_bytes: usize,
    /// Set once; the first reason stays.
    closed: Option<CloseReason>,
    /// True while a call to the task is on its way or the writer is busy: it then looks again by itself.
    called: bool,
}

/// Whether the task must be called because of what was just done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Call {
    Needed,
    NotNeeded,
}

impl Link {
    pub fn new(id: ConnectionId, framing: Framing, max_backlog_bytes: usize) -> Self {
        let (writer, reader) = (Notify::new(), Notify::new());
        Self { id, framing, max_backlog_bytes, outgoing: Mutex::default(), writer, reader }
    }

    /// Queues one frame. If that breaks the backlog limit the connection is closed and what waited is given up. The
    /// second half of the answer says whether the task must be called, also when the first is an error.
    pub fn push(&self, payload: &[u8]) -> (Result<(), SendError>, Call) {
        self.queue(self.framing.encoded_bytes(payload), |waiting| self.framing.encode(payload, waiting))
    }

    /// Queues the answer to a client's ping, under the same limit: a client that pings and does not read is as slow a
    /// reader as any other.
    pub fn push_pong(&self, ping: &[u8]) -> Call {
        let encode = |waiting: &mut BytesMut| {
            websocket::encode_pong(ping, waiting);
            Ok(())
        };
        self.queue(websocket::encoded_bytes(ping), encode).1
    }

    fn queue(
        &self,
        frame_bytes: usize,
        encode: impl FnOnce(&mut BytesMut) -> Result<(), FrameTooLarge>,
    ) -> (Result<(), SendError>, Call) {
        let mut outgoing = lock(&self.outgoing);
        if outgoing.closed.is_some() {
            return (Err(SendError::Closed { connection: self.id }), Call::NotNeeded);
        }
        let backlog_bytes = outgoing.waiting.len() + outgoing.being_written_bytes;
        if backlog_bytes > 0 && backlog_bytes + frame_bytes > self.max_backlog_bytes {
            let call = outgoing.close(CloseReason::Backlog);
            return (Err(SendError::Backlog { connection: self.id, backlog_bytes }), call);
        }
        if let Err(too_large) = encode(&mut outgoing.waiting) {
            return (Err(SendError::TooLarge(too_large)), Call::NotNeeded);
        }
        let call = if outgoing.called { Call::NotNeeded } else { Call::Needed };
        outgoing.called = true;
        (Ok(()), call)
    }

    /// Closes the connection unless it is closed already. Frames queued before are still written, unless the reason is
    /// a broken limit.
    pub fn close(&self, reason: CloseReason) -> Call {
        lock(&self.outgoing).close(reason)
    }

    /// Why the connection is closed, once it is.
    pub fn closed(&self) -> Option<CloseReason> {
        lock(&self.outgoing).closed
    }

    /// Calls both halves of the task to look at what changed. Made for a thread of the runtime: it may cost a system
    /// call.
    pub fn call(&self) {
        self.writer.notify_one();
        if self.closed().is_some() {
            self.reader.notify_one();
        }
    }

    /// Completes when the connection is closed. For the reading half alone.
    pub async fn until_closed(&self) -> CloseReason {
        loop {
            if let Some(reason) = self.closed() {
                return reason;
            }
            self.reader.notified().await;
        }
    }

    /// Moves all that waits into `into`, which must be empty; false if nothing does. The writer must then wait for
    /// [`Link::until_called`]. What was taken before counts as written.
    pub fn take(&self, into: &mut BytesMut) -> bool {
        debug_assert!(into.is_empty(), "bytes taken before are still unwritten");
        let mut outgoing = lock(&self.outgoing);
        outgoing.being_written_bytes = 0;
        if outgoing.waiting.is_empty() {
            outgoing.called = false;
            return false;
        }
        std::mem::swap(&mut outgoing.waiting, into);
        outgoing.being_written_bytes = into.len();
        true
    }

    /// Tells that only `remaining_bytes` of what was taken are still unwritten.
    pub fn wrote_all_but(&self, remaining_bytes: usize) {
        lock(&self.outgoing).being_written_bytes = remaining_bytes;
    }

    /// Completes when there may be something to take. For the writing half alone.
    pub async fn until_called(&self) {
        self.writer.notified().await;
    }
}

impl Outgoing {
    fn close(&mut self, reason: CloseReason) -> Call {
        if self.closed.is_some() {
            return Call::NotNeeded;
        }
        self.closed = Some(reason);
        if reason.is_limit() {
            self.waiting = BytesMut::new();
        }
        // Needed even if the writer was called before: the reader was not.
        self.called = true;
        Call::Needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 100;

    fn link() -> Link {
        Link::new(1, Framing::Lengths, LIMIT)
    }

    #[test]
    fn the_writer_is_called_once_until_it_found_nothing_left() {
        let link = link();
        let mut taken = BytesMut::new();
        assert_eq!(link.push(b"a"), (Ok(()), Call::Needed));
        assert_eq!(link.push(b"b"), (Ok(()), Call::NotNeeded));
        assert!(link.take(&mut taken));
        assert_eq!(&taken[..], b"\0\x01a\0\x01b", "both frames travel in one write");
        assert_eq!(link.push(b"c"), (Ok(()), Call::NotNeeded), "the writer is busy and will look again");
        taken.clear();
        assert!(link.take(&mut taken));
        taken.clear();
        assert!(!link.take(&mut taken));
        assert_eq!(link.push(b"d"), (Ok(()), Call::Needed));
    }

    #[test]
    fn bytes_taken_but_not_written_count_as_backlog() {
        let link = link();
        let mut taken = BytesMut::new();
        assert!(link.push(&[0; 58]).0.is_ok());
        assert!(link.take(&mut taken));
        assert!(link.push(&[0; 30]).0.is_ok(), "60 being written and 32 waiting are within {LIMIT}");
        link.wrote_all_but(50);
        assert!(link.push(&[0; 16]).0.is_ok(), "50 being written and 50 waiting are exactly {LIMIT}");
        assert_eq!(
            link.push(&[]),
            (Err(SendError::Backlog { connection: 1, backlog_bytes: 100 }), Call::Needed),
            "two bytes more are too many"
        );
        assert_eq!(link.closed(), Some(CloseReason::Backlog));
    }

    #[test]
    fn a_writer_that_has_not_written_anything_yet_leaves_no_more_room() {
        let link = link();
        assert!(link.push(&[0; 58]).0.is_ok());
        assert!(link.take(&mut BytesMut::new()));
        let over = SendError::Backlog { connection: 1, backlog_bytes: 60 };
        assert_eq!(link.push(&[0; 39]), (Err(over), Call::Needed), "60 being written and 41 more are over {LIMIT}");
    }

    #[test]
    fn one_frame_longer_than_the_backlog_is_taken_when_nothing_else_waits() {
        let link = link();
        assert!(link.push(&[0; 5000]).0.is_ok());
        assert!(link.push(&[0; 1]).0.is_err());
    }

    #[test]
    fn pongs_that_nobody_reads_break_the_backlog_as_frames_do() {
        let link = Link::new(1, Framing::WebSocket, LIMIT);
        for _ in 0..5 {
            assert_ne!((link.push_pong(&[7; 18]), link.closed()), (Call::Needed, Some(CloseReason::Backlog)));
        }
        assert_eq!(link.closed(), None, "five times 20 bytes are exactly {LIMIT}");
        assert_eq!(link.push_pong(&[]), Call::Needed);
        assert_eq!(link.closed(), Some(CloseReason::Backlog));
    }

    #[test]
    fn closing_keeps_what_was_sent_before_and_the_first_reason() {
        let link = link();
        assert!(link.push(b"bye").0.is_ok());
        assert_eq!(link.close(CloseReason::HostClosed), Call::Needed);
        assert_eq!(link.close(CloseReason::Stopping), Call::NotNeeded);
        assert_eq!(link.closed(), Some(CloseReason::HostClosed));
        assert_eq!(link.push(b"late"), (Err(SendError::Closed { connection: 1 }), Call::NotNeeded));
        let mut taken = BytesMut::new();
        assert!(link.take(&mut taken));
        assert_eq!(&taken[..], b"\0\x03bye");
    }

    #[test]
    fn a_payload_too_long_for_the_framing_is_refused_and_the_connection_stays() {
        let link = Link::new(1, Framing::Lengths, 1 << 20);
        assert!(matches!(link.push(&vec![0; 65536]), (Err(SendError::TooLarge(_)), Call::NotNeeded)));
        assert_eq!(link.push(b"fine"), (Ok(()), Call::Needed));
    }
}
