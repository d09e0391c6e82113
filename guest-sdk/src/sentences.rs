//! What the contract's errors say when they are shown: whole sentences, since a refusal that an author passes on with
//! `?` ends in the host's log or with a player. `build.rs` has the generated code come here.

use std::fmt::{Formatter, Result};

use crate::bindings::bulk::Refusal;
use crate::bindings::entities::EntityError;
use crate::bindings::events::EventError;
use crate::bindings::gate::GateError;
use crate::bindings::kv::KvError;
use crate::bindings::services::ServiceError;
use crate::bindings::shared::SharedError;
use crate::bindings::sockets::SocketError;
use crate::bindings::tasks::{TaskError, TaskFailure};
use crate::bindings::timers::TimerError;

/// An error that can be shown.
pub(crate) trait Sentence {
    /// Writes what is wrong, and where it helps, which setting it hangs on. Without a full stop: others put it behind a
    /// colon.
    fn write(&self, formatter: &mut Formatter<'_>) -> Result;
}

impl Sentence for ServiceError {
    fn write(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::Gone(who) => write!(formatter, "the service is gone: {who}"),
            Self::MailboxFull(limit) => {
                write!(formatter, "the service's mailbox is full: it already holds {limit} messages")
            }
            Self::TooLarge(limit) => write!(formatter, "the payload or the name is longer than {limit} bytes"),
            Self::TimedOut(chain) => write!(formatter, "the answer did not come in time: {chain}"),
            Self::Refused(message) => write!(formatter, "the service refused: {message}"),
            Self::Failed(line) => write!(formatter, "the service failed: {line}"),
            Self::NameTaken => formatter.write_str("another service has that name"),
            Self::NoSuchGuest => {
                formatter.write_str("no guest of kind service has that name, or it is disabled: see [[guests]]")
            }
            Self::TooMany(limit) => write!(formatter, "there may be no more than {limit} of these at a time"),
            Self::NotYours => formatter.write_str("this service has no such message in hand"),
        }
    }
}

impl Sentence for GateError {
    fn write(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::Closed => formatter.write_str("the connection is closed"),
            Self::TooLarge(limit) => {
                write!(formatter, "the packet is longer than {limit} bytes (gate.max_frame_bytes)")
            }
            Self::TooMuch(limit) => write!(formatter, "one handler may send no more than {limit} bytes of packets"),
            Self::NoSuchService => formatter.write_str("there is no service and no game with that handle"),
        }
    }
}

impl Sentence for SharedError {
    fn write(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::TooLarge(limit) => write!(formatter, "the blob or its name is longer than {limit} bytes"),
            Self::Full(limit) => {
                write!(formatter, "all blobs together would be more than {limit} bytes (service.max_shared_mb)")
            }
        }
    }
}

impl Sentence for SocketError {
    fn write(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::NotGranted(wanted) => {
                write!(formatter, "this guest may not connect there: its sockets would have to name {wanted}")
            }
            Self::TooMany(limit) => write!(formatter, "a service may have no more than {limit} sockets open"),
            Self::Closed => formatter.write_str("the socket is closed"),
            Self::TooMuch(limit) => write!(formatter, "more than {limit} bytes would wait to be sent"),
        }
    }
}

impl Sentence for EntityError {
    fn write(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::NotFound => formatter.write_str("there is no such entity"),
            Self::ReadOnly => formatter.write_str("only a game may change the world"),
            Self::TooMany(limit) => {
                write!(formatter, "there are {limit} already: entities (world.max_entities), or data of this entity")
            }
            Self::TooLarge(limit) => write!(formatter, "the name or the data is longer than {limit} bytes"),
            Self::NoSuchThinker => formatter.write_str("no thinker has that name: see [[guests]]"),
            Self::NoSuchConnection => formatter.write_str("the connection is closed, or belongs to another entity"),
        }
    }
}

impl Sentence for KvError {
    fn write(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::ReadOnly => formatter.write_str("only a game may change its keys"),
            Self::TooLarge(limit) => write!(formatter, "the key or the value is longer than {limit} bytes"),
            Self::Full(limit) => write!(formatter, "the keys would take more than {limit} bytes (world.max_kv_mb)"),
        }
    }
}

impl Sentence for EventError {
    fn write(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::TooLarge(limit) => write!(formatter, "the kind or the payload is longer than {limit} bytes"),
            Self::NotPositive => formatter.write_str("the interval is zero"),
            Self::TooMany(limit) => {
                write!(formatter, "{limit} events are pending already (events.max_pending)")
            }
        }
    }
}

impl Sentence for TimerError {
    fn write(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::TooMany(limit) => write!(formatter, "{limit} timers are set already (timers.max_pending)"),
            Self::NotPositive => formatter.write_str("the interval or the delay is zero"),
            Self::TooLarge(limit) => write!(formatter, "the name or the payload is longer than {limit} bytes"),
        }
    }
}

impl Sentence for TaskError {
    fn write(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::NoSuchGuest => {
                formatter.write_str("no step task or job has that name, or it is disabled: see [[guests]]")
            }
            Self::TooMany(limit) => write!(formatter, "{limit} tasks are running already (dispatch.max_tasks)"),
            Self::TooLarge(limit) => write!(formatter, "the arguments are longer than {limit} bytes"),
        }
    }
}

impl Sentence for TaskFailure {
    fn write(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::Failed(message) => write!(formatter, "the task failed: {message}"),
            Self::Crashed(line) => write!(formatter, "the task crashed: {line}"),
            Self::Cancelled => formatter.write_str("the task was cancelled"),
        }
    }
}

impl Sentence for Refusal {
    fn write(&self, formatter: &mut Formatter<'_>) -> Result {
        write!(formatter, "message {} was refused: {}", self.handled, self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(error: impl std::error::Error) -> String {
        crate::Refusal::from(error).message().to_owned()
    }

    #[test]
    fn an_error_that_is_passed_on_says_what_is_wrong_and_not_what_its_case_is_called() {
        assert_eq!(refusal(GateError::Closed), "the connection is closed");
        assert_eq!(refusal(KvError::ReadOnly), "only a game may change its keys");
        assert_eq!(
            refusal(ServiceError::Gone("handle 7 (chat) was killed".into())),
            "the service is gone: handle 7 (chat) was killed"
        );
    }
}
