//! Requests of a game, which cannot wait: the answer, or why there is none, comes to its
//! [`on_reply`](crate::Game::on_reply) with the session. Services use [`calls`](crate::calls) or
//! [`async_calls`](crate::async_calls).
//!
//! Where no limit is given, the answer is waited for 30 seconds.
//!
//! ```no_run
//! use serde::{Deserialize, Serialize};
//! use wheelhouse_guest::prelude::*;
//!
//! # #[derive(Serialize, Deserialize)]
//! # struct Arena { asked: Option<Session> }
//! # impl Arena {
//! fn ask(&mut self) -> Result<(), Refusal> {
//!     let Some(ranking) = services::query("ranking") else { refuse!("nobody keeps a ranking") };
//!     self.asked = Some(requests::request(ranking, "best", None)?);
//!     Ok(())
//! }
//! # }
//! ```

use std::time::Duration;

use serde::Serialize;

use crate::bindings::services::{Reference, ServiceError};
use crate::services::{ValueError, encode};
use crate::{Handle, Session, duration};

/// Sends a request.
pub fn request(
    to: Handle,
    payload: impl AsRef<[u8]>,
    limit: impl Into<Option<Duration>>,
) -> Result<Session, ServiceError> {
    crate::bindings::requests::request(to, payload.as_ref(), duration::limit_ms(limit))
}

/// Sends a value as a request. The answer is read with [`services::decode`](crate::services::decode).
pub fn request_value<T: Serialize + ?Sized>(
    to: Handle,
    value: &T,
    limit: impl Into<Option<Duration>>,
) -> Result<Session, ValueError> {
    Ok(request(to, encode(value)?, limit)?)
}

/// Calls a method of an object; the [`objects`](crate::objects) do so with types.
pub fn invoke(
    to: Reference,
    method: &str,
    arguments: &[u8],
    limit: impl Into<Option<Duration>>,
) -> Result<Session, ServiceError> {
    crate::bindings::requests::invoke(to, method, arguments, duration::limit_ms(limit))
}
