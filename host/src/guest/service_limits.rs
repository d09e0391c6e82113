//! What the contract says of the interfaces `services`, `groups` and `shared` in numbers, and in words that more than one
//! place has to say: loop guests and services live under the same limits.

use bytes::Bytes;

use super::contract::sim::services::ServiceError;

/// The longest name of a service, of a channel and of a shared blob, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// Names that one member has.
pub const MAX_NAMES: usize = 64;

/// Subscriptions of one member.
pub const MAX_SUBSCRIPTIONS: usize = 1024;

/// Shared blobs that one member watches, and those that it puts together at one time.
pub const MAX_BLOB_NAMES: usize = 1024;

/// The longest name of a method, whose length travels in one byte.
const MAX_METHOD_BYTES: usize = u8::MAX as usize;

/// There is nobody with that handle.
pub fn nobody(handle: u64) -> ServiceError {
    ServiceError::Gone(format!("there is no service {handle} (any more)"))
}

/// Checks that a service may have that name.
pub fn check_name(name: &str) -> Result<(), ServiceError> {
    match name.as_bytes() {
        [] => Err(ServiceError::Refused("a name has at least one character".to_owned())),
        [b'@', ..] => Err(ServiceError::Refused("names that begin with @ are kept for clusters of hosts".to_owned())),
        name if name.len() > MAX_NAME_BYTES => Err(ServiceError::TooLarge(MAX_NAME_BYTES as u32)),
        _ => Ok(()),
    }
}

/// The payload by which a method of an object is called.
pub fn invocation(method: &str, arguments: &[u8]) -> Result<Bytes, ServiceError> {
    let length = u8::try_from(method.len()).map_err(|_| ServiceError::TooLarge(MAX_METHOD_BYTES as u32))?;
    Ok(Bytes::from([&[length], method.as_bytes(), arguments].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_cannot_be_is_refused() {
        assert!(matches!(check_name(&"x".repeat(65)), Err(ServiceError::TooLarge(64))));
        assert!(matches!(check_name(""), Err(ServiceError::Refused(_))));
        assert!(matches!(check_name("@world"), Err(ServiceError::Refused(_))));
        assert!(check_name(&"x".repeat(64)).is_ok());
    }

    #[test]
    fn a_method_is_called_by_its_length_its_name_and_the_arguments() {
        assert_eq!(&invocation("add", b"12").unwrap()[..], b"\x03add12");
        assert!(matches!(invocation(&"x".repeat(256), b""), Err(ServiceError::TooLarge(255))));
    }
}
