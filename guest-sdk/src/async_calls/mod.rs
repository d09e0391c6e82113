//! Waiting, in an [`AsyncService`](crate::AsyncService), which takes the next message meanwhile. A plain service has
//! [`calls`](crate::calls) instead, and may not use these.
//!
//! Where no limit is given, an answer is waited for 30 seconds.

mod join;

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use join::join_all;

use crate::async_service::runtime::set_up;
use crate::bindings::async_calls as contract;
use crate::bindings::services::{Reference, ServiceError};
use crate::services::{ValueError, decode, encode};
use crate::{Handle, duration};

/// Sends a request and waits for the answer.
pub async fn call(
    to: Handle,
    payload: impl AsRef<[u8]>,
    limit: impl Into<Option<Duration>>,
) -> Result<Vec<u8>, ServiceError> {
    let limit_ms = duration::limit_ms(limit);
    set_up().await;
    contract::call(to, payload.as_ref().to_vec(), limit_ms).await
}

/// Sends a value as a request, waits, and reads the answer as a value.
pub async fn call_value<A: DeserializeOwned, T: Serialize + ?Sized>(
    to: Handle,
    value: &T,
    limit: impl Into<Option<Duration>>,
) -> Result<A, ValueError> {
    Ok(decode(&call(to, encode(value)?, limit).await?)?)
}

/// Calls a method of an object and waits; the [`objects`](crate::objects) do so with types.
pub async fn invoke(
    to: Reference,
    method: &str,
    arguments: Vec<u8>,
    limit: impl Into<Option<Duration>>,
) -> Result<Vec<u8>, ServiceError> {
    let limit_ms = duration::limit_ms(limit);
    set_up().await;
    contract::invoke(to, method.into(), arguments, limit_ms).await
}

/// Waits for a time; with zero, until the messages that are in the mailbox now have been taken up.
pub async fn sleep(duration: Duration) {
    set_up().await;
    contract::sleep(duration::short_ms(duration)).await;
}
