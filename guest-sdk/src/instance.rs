//! Where the one instance of a guest lives between two calls, and how its state becomes bytes and comes back.
//!
//! The macros implement [`Hosted`] for the author's type; the kinds' exports use it. A state is a version number and
//! what postcard makes of the value.

use std::cell::Cell;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Refusal;

/// A type that a macro has made into a guest: it knows where its one instance is.
#[doc(hidden)]
pub trait Hosted: Sized {
    /// What lives from call to call.
    type Instance: 'static;

    /// Lends the slot that holds the instance, which is empty until the guest was started.
    fn with_slot<R>(use_slot: impl FnOnce(&mut Option<Self::Instance>) -> R) -> R;
}

/// Implements [`Hosted`] with a slot of the type's own. A guest runs on one thread, so that a thread's local is the
/// whole guest's.
#[doc(hidden)]
#[macro_export]
macro_rules! __hosted {
    ($guest:ty, $instance:ty) => {
        impl $crate::instance::Hosted for $guest {
            type Instance = $instance;

            fn with_slot<R>(use_slot: impl FnOnce(&mut ::core::option::Option<$instance>) -> R) -> R {
                ::std::thread_local! {
                    static SLOT: ::core::cell::RefCell<::core::option::Option<$instance>> =
                        const { ::core::cell::RefCell::new(::core::option::Option::None) };
                }
                SLOT.with_borrow_mut(use_slot)
            }
        }
    };
}

/// What a guest answers that is called before its start.
pub(crate) const NOT_STARTED: &str = "the guest has not been started";

/// Lends the running instance.
pub(crate) fn with_instance<H: Hosted, R>(
    use_instance: impl FnOnce(&mut H::Instance) -> Result<R, Refusal>,
) -> Result<R, String> {
    H::with_slot(|slot| match slot {
        Some(instance) => use_instance(instance).map_err(Refusal::into_message),
        None => Err(NOT_STARTED.into()),
    })
}

/// Puts a new instance in place.
pub(crate) fn start<H: Hosted>(make: impl FnOnce() -> Result<H::Instance, Refusal>) -> Result<(), String> {
    crate::panic::report_panics();
    let instance = make().map_err(Refusal::into_message)?;
    H::with_slot(|slot| *slot = Some(instance));
    Ok(())
}

/// The running instance as bytes; none when there is none. A value that cannot be encoded is the author's mistake: the
/// log tells of it, and nothing is carried.
pub(crate) fn save<H: Hosted>(encode: impl FnOnce(&H::Instance) -> Result<Vec<u8>, postcard::Error>) -> Vec<u8> {
    H::with_slot(|slot| match slot.as_ref().map(encode) {
        Some(Ok(state)) => {
            LAST_BYTES.set(state.len());
            state
        }
        Some(Err(error)) => {
            crate::error!("the state cannot be saved: {error}");
            Vec::new()
        }
        None => Vec::new(),
    })
}

std::thread_local! {
    /// How long the last state was.
    static LAST_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Where a state is written to: with room for one as long as the last, since growing means copying, and the host waits.
pub(crate) fn room_for_state() -> Vec<u8> {
    let last = LAST_BYTES.get();
    Vec::with_capacity(last + last / 16)
}

/// A version and a value as bytes.
pub(crate) fn encode(version: u32, value: &impl Serialize) -> Result<Vec<u8>, postcard::Error> {
    postcard::to_extend(value, postcard::to_extend(&version, room_for_state())?)
}

/// The version of a state and the bytes of its value.
pub(crate) fn split_version(state: &[u8]) -> Result<(u32, &[u8]), Refusal> {
    postcard::take_from_bytes(state)
        .map_err(|error| Refusal::new(format_args!("the saved state has no version: {error}")))
}

/// The value in the bytes behind the version.
pub(crate) fn decode<T: DeserializeOwned>(value: &[u8]) -> Result<T, Refusal> {
    postcard::from_bytes(value)
        .map_err(|error| Refusal::new(format_args!("the saved state does not fit this guest: {error}")))
}

/// Nobody knows how to read what newer code has saved: at a swap back, the host then has what this code saved itself.
pub(crate) fn newer(found: u32, version: u32) -> Refusal {
    Refusal::new(format_args!(
        "the saved state has version {found}, which is newer than this guest's version {version}"
    ))
}

/// A saved state as a value of the version that this guest has: decoded, or what `migrate` makes of one of another version.
pub(crate) fn read_state<T: DeserializeOwned>(
    state: &[u8],
    version: u32,
    migrate: impl FnOnce(u32, &[u8]) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    match split_version(state)? {
        (found, value) if found == version => decode(value),
        (found, _) if found > version => Err(newer(found, version)),
        (found, value) => migrate(found, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_with_its_version() {
        let state = encode(300, &("meadow", 7_u64)).unwrap();
        let (version, value) = split_version(&state).unwrap();
        assert_eq!(version, 300);
        assert_eq!(decode::<(String, u64)>(value).unwrap(), ("meadow".into(), 7));
    }

    #[test]
    fn a_state_that_is_cut_short_is_refused() {
        let state = encode(1, &"meadow").unwrap();
        let (_, value) = split_version(&state[..4]).unwrap();
        assert!(decode::<String>(value).is_err());
        assert!(split_version(&[]).is_err());
    }
}
