//! Services: actors outside the loop, each with a handle and a mailbox, found by name. A game has a handle and a name as
//! well: whoever sends to it reaches its [`on_message`](crate::Game::on_message).
//!
//! This module is for games and services alike. Who asks for an answer uses [`calls`](crate::calls) in a plain service,
//! [`async_calls`](crate::async_calls) in an async one, and [`requests`](crate::requests) in a game. The forms with
//! `value` in their names carry values of the author's own types through postcard; [`Message::read`] gets them back.
//!
//! [`Message::read`]: crate::Message::read
//!
//! ```no_run
//! use wheelhouse_guest::prelude::*;
//!
//! fn tell_the_chat(line: &str) -> Result<(), Refusal> {
//!     let Some(chat) = services::query("chat") else { refuse!("nobody here is called chat") };
//!     services::send(chat, line)?;
//!     Ok(())
//! }
//! ```

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

pub use crate::bindings::services::{Reference, ServiceError, kill, query, register, unregister};

use crate::Handle;

/// Why a value was not sent, or what came is not one.
#[derive(Debug, Error)]
pub enum ValueError {
    /// The message was not sent, or not answered.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The value has no encoding, or the answer is of another type than asked for.
    #[error("the value: {0}")]
    Encoding(#[from] postcard::Error),
}

/// Starts a service of the guest with that name. Messages may be sent to it at once: they wait until it has started, and
/// are answered [`ServiceError::Failed`] if it does not.
pub fn launch(guest: &str, arguments: impl AsRef<[u8]>) -> Result<Handle, ServiceError> {
    crate::bindings::services::launch(guest, arguments.as_ref())
}

/// Sends a message that wants no answer. Messages from one sender to one service arrive in the order sent.
pub fn send(to: Handle, payload: impl AsRef<[u8]>) -> Result<(), ServiceError> {
    crate::bindings::services::send(to, payload.as_ref())
}

/// Sends a value in a message that wants no answer.
pub fn send_value<T: Serialize + ?Sized>(to: Handle, value: &T) -> Result<(), ValueError> {
    Ok(send(to, encode(value)?)?)
}

/// A value as a payload or an answer.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, postcard::Error> {
    postcard::to_allocvec(value)
}

/// The value that a payload or an answer was made of.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, postcard::Error> {
    postcard::from_bytes(bytes)
}
