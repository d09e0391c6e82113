//! What lies in mailboxes: messages, and the way back for those who ask.

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::handle::Handle;
pub use crate::guest::contract::sim::services::{ServiceError, Subject};

/// What comes of a request.
pub type Answer = Result<Bytes, ServiceError>;

/// A message on its way to a service or a game.
#[derive(Debug)]
pub struct Message {
    /// Who sent it.
    pub source: Handle,
    /// What it is about.
    pub subject: Subject,
    /// What was sent.
    pub payload: Bytes,
    /// Where an answer goes, if one is expected.
    pub request: Option<Request>,
    /// Its place among those of its client or socket.
    pub place: Option<Place>,
}

/// The place of a message among those of its client or socket, given back when it has been handled.
#[derive(Debug)]
pub struct Place {
    pub permit: OwnedSemaphorePermit,
    /// It was passed on: whoever has it now is not the one that its connection was bound to when it came, or
    /// whose socket it came from.
    pub is_passed_on: bool,
}

impl Message {
    /// A message that wants no answer.
    pub fn new(source: Handle, subject: Subject, payload: Bytes) -> Self {
        Self { source, subject, payload, request: None, place: None }
    }

    /// Whether it has a place, and has not been passed on since it got that.
    pub(super) fn has_its_own_place(&self) -> bool {
        self.place.as_ref().is_some_and(|place| !place.is_passed_on)
    }
}

/// The right to answer somebody, once. Dropping it tells whoever waits that nobody will.
#[derive(Debug)]
pub struct Request {
    /// The session to answer under.
    pub session: u64,
    /// Who asked.
    pub source: Handle,
    waiting: oneshot::Sender<Answer>,
}

impl Request {
    /// A request under that session, and where its answer comes.
    pub fn new(session: u64, source: Handle) -> (Self, oneshot::Receiver<Answer>) {
        let (waiting, answer) = oneshot::channel();
        (Self { session, source, waiting }, answer)
    }

    /// Answers. False when nobody waits any more.
    pub fn answer(self, answer: Answer) -> bool {
        self.waiting.send(answer).is_ok()
    }
}

/// What a handler's result says to whoever asked `title`, as far as it is no longer than `limit` bytes.
pub fn answer_of(result: Result<Vec<u8>, String>, limit: usize, title: impl FnOnce() -> String) -> Answer {
    let bytes = result.as_ref().map_or_else(String::len, Vec::len);
    if bytes > limit {
        let reason = format!("its answer has {bytes} bytes; guest.max_payload_kb allows {limit}");
        return Err(ServiceError::Failed(format!("{}: {reason}", title())));
    }
    result.map(Bytes::from).map_err(ServiceError::Refused)
}
