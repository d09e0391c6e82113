//! What only a service may do: it knows its handle, answers when it likes, passes messages on, sets timeouts, and ends.

use std::cell::Cell;
use std::time::Duration;

pub use crate::bindings::actor::{cancel_timeout, defer};

use crate::bindings::services::ServiceError;
use crate::message::Message;
use crate::{Handle, Refusal, Session, TimeoutId, duration};

std::thread_local! {
    /// This service's handle, once it has asked; handles are never 0.
    static THIS: Cell<Handle> = const { Cell::new(0) };

    /// Whether this service has said that it ends.
    static EXITING: Cell<bool> = const { Cell::new(false) };
}

/// This service's own handle.
pub fn this() -> Handle {
    if THIS.get() == 0 {
        THIS.set(crate::bindings::actor::self_());
    }
    THIS.get()
}

/// Ends this service once the current message is handled. What is left in its mailbox is answered
/// [`ServiceError::Gone`].
pub fn exit() {
    note_exit();
    crate::bindings::actor::exit();
}

/// Answers a request, now or after it was [deferred](defer); what the handler returns then counts no more. False when
/// this service has no request under that session to answer.
pub fn reply(session: Session, answer: Result<Vec<u8>, Refusal>) -> bool {
    let answer = answer.map_err(Refusal::into_message);
    crate::bindings::actor::reply(session, answer.as_deref().map_err(String::as_str))
}

/// Hands a message on to another service, perhaps with another payload: that one answers in this one's place.
pub fn forward(to: Handle, message: Message) -> Result<(), ServiceError> {
    crate::bindings::actor::forward(to, &message.into_contract())
}

/// Has this service receive a message whose subject is [`Subject::Timeout`](crate::Subject::Timeout) after a time, with
/// that payload. With zero it goes straight to the mailbox, behind what is there already.
pub fn timeout(delay: Duration, payload: impl AsRef<[u8]>) -> Result<TimeoutId, ServiceError> {
    crate::bindings::actor::timeout(duration::short_ms(delay), payload.as_ref())
}

pub(crate) fn is_exiting() -> bool {
    EXITING.get()
}

pub(crate) fn note_exit() {
    EXITING.set(true);
}

/// Lets a test be the service with that handle.
#[cfg(test)]
pub(crate) fn pretend(handle: Handle) {
    THIS.set(handle);
}
