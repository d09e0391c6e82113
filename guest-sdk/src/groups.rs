//! Groups: what is published in a channel goes to every subscriber, as a message whose subject is
//! [`Subject::Published`](crate::Subject::Published) with the id of the subscription.

use serde::Serialize;

pub use crate::bindings::groups::{subscribe, unsubscribe};

use crate::bindings::services::ServiceError;
use crate::services::{ValueError, encode};

/// Sends a payload to all subscribers of a channel, and says how many there are.
pub fn publish(channel: &str, payload: impl AsRef<[u8]>) -> Result<u32, ServiceError> {
    crate::bindings::groups::publish(channel, payload.as_ref())
}

/// Sends a value to all subscribers of a channel, and says how many there are.
pub fn publish_value<T: Serialize + ?Sized>(channel: &str, value: &T) -> Result<u32, ValueError> {
    Ok(publish(channel, encode(value)?)?)
}
