//! Waiting, in a plain [`Service`](crate::Service): others go on meanwhile, this service's own mailbox waits. An async
//! service has [`async_calls`](crate::async_calls) instead, and may not use these.
//!
//! Two plain services that call each other at the same time wait for each other until their limits are over. Where no
//! limit is given, that is 30 seconds.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::services::{Reference, ServiceError};
use crate::services::{ValueError, decode, encode};
use crate::{Handle, duration};

/// Sends a request and waits for the answer.
pub fn call(
    to: Handle,
    payload: impl AsRef<[u8]>,
    limit: impl Into<Option<Duration>>,
) -> Result<Vec<u8>, ServiceError> {
    crate::bindings::calls::call(to, payload.as_ref(), duration::limit_ms(limit))
}

/// Sends a value as a request, waits, and reads the answer as a value.
///
/// ```no_run
/// # use wheelhouse_guest::prelude::*;
/// # fn price(bank: Handle) -> Result<(), Refusal> {
/// let price: u32 = calls::call_value(bank, &("price", "sheep"), None)?;
/// # Ok(()) }
/// ```
pub fn call_value<A: DeserializeOwned, T: Serialize + ?Sized>(
    to: Handle,
    value: &T,
    limit: impl Into<Option<Duration>>,
) -> Result<A, ValueError> {
    Ok(decode(&call(to, encode(value)?, limit)?)?)
}

/// Calls a method of an object and waits; the [`objects`](crate::objects) do so with types.
pub fn invoke(
    to: Reference,
    method: &str,
    arguments: &[u8],
    limit: impl Into<Option<Duration>>,
) -> Result<Vec<u8>, ServiceError> {
    crate::bindings::calls::invoke(to, method, arguments, duration::limit_ms(limit))
}

/// Waits for a time; with zero, whoever else is ready goes first.
pub fn sleep(duration: Duration) {
    crate::bindings::calls::sleep(duration::short_ms(duration));
}
