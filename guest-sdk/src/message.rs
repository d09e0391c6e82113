//! What comes to the mailbox of a service, or of a game.

use std::borrow::Cow;

use serde::Deserialize;

use crate::bindings::services as contract;
pub use crate::bindings::services::Subject;
use crate::{Handle, Refusal, Session};

/// A message in a mailbox. Its `subject` says what it is about, and what the payload is:
///
/// ```
/// use wheelhouse_guest::prelude::*;
///
/// fn describe(message: &Message) -> Result<String, Refusal> {
///     Ok(match message.subject {
///         Subject::Plain => format!("{} says {}", message.source, message.text()?),
///         Subject::Packet(connection) => format!("client {connection} sent {} bytes", message.payload.len()),
///         Subject::Timeout(id) => format!("timeout {id} is over"),
///         ref other => format!("something else: {other:?}"),
///     })
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Who sent it; 0 for the host.
    pub source: Handle,
    /// The session to answer under, where an answer is expected: what the handler returns is that answer, unless it
    /// [defers](crate::actor::defer) it.
    pub session: Option<Session>,
    /// What it is about.
    pub subject: Subject,
    /// What was sent. Messages that came several at a time lend their payload, others own it.
    pub payload: Cow<'a, [u8]>,
}

impl Message<'_> {
    /// Whether somebody waits for an answer.
    pub fn wants_answer(&self) -> bool {
        self.session.is_some()
    }

    /// The payload as the value that [`send_value`](crate::services::send_value) and its likes made it of.
    pub fn read<'m, T: Deserialize<'m>>(&'m self) -> Result<T, Refusal> {
        postcard::from_bytes(&self.payload).map_err(|error| {
            Refusal::new(format_args!("the payload of a message from {} is of another type: {error}", self.source))
        })
    }

    /// The payload as text.
    pub fn text(&self) -> Result<&str, Refusal> {
        std::str::from_utf8(&self.payload)
            .map_err(|error| Refusal::new(format_args!("the message from {} is no text: {error}", self.source)))
    }

    /// The same with a payload of its own, to be kept.
    pub fn into_owned(self) -> Message<'static> {
        Message { payload: Cow::Owned(self.payload.into_owned()), ..self }
    }

    pub(crate) fn into_contract(self) -> contract::Message {
        contract::Message {
            source: self.source,
            session: self.session,
            subject: self.subject,
            payload: self.payload.into_owned(),
        }
    }
}

impl From<contract::Message> for Message<'static> {
    fn from(message: contract::Message) -> Self {
        let contract::Message { source, session, subject, payload } = message;
        Self { source, session, subject, payload: Cow::Owned(payload) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(payload: &[u8]) -> Message<'_> {
        Message { source: 7, session: None, subject: Subject::Plain, payload: Cow::Borrowed(payload) }
    }

    #[test]
    fn a_payload_is_read_as_the_value_it_was_made_of() {
        let payload = postcard::to_allocvec(&("join", 3_u32)).unwrap();
        assert_eq!(message(&payload).read::<(&str, u32)>().unwrap(), ("join", 3));
    }

    #[test]
    fn a_payload_that_does_not_fit_is_refused_with_its_sender() {
        assert!(message(&[]).read::<u32>().unwrap_err().message().contains("from 7"));
        assert!(message(&[0xFF]).text().unwrap_err().message().contains("from 7 is no text"));
    }
}
