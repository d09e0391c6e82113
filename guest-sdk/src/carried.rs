//! What is carried of a service when its code is swapped: the author's value with its version, and beside it what the SDK
//! has to remember: the configuration that the service was started with, and the number of the last object that it
//! exported, so that none is used again.

use std::cell::RefCell;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::objects::registry;
use crate::{Refusal, config, instance};

std::thread_local! {
    static CONFIG: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Reads the configuration that the service is started with, and keeps it for the instances after this one.
pub(crate) fn config<C: DeserializeOwned + 'static>(json: String) -> Result<C, Refusal> {
    let config = config::parse(&json)?;
    CONFIG.set(json);
    Ok(config)
}

/// The state as bytes.
pub(crate) fn save(version: u32, value: &impl Serialize) -> Result<Vec<u8>, postcard::Error> {
    let beside =
        CONFIG.with_borrow(|config| postcard::to_extend(&(config, registry::last()), instance::room_for_state()))?;
    postcard::to_extend(value, postcard::to_extend(&version, beside)?)
}

/// The configuration and the value in a state.
pub(crate) fn restore<C: DeserializeOwned + 'static, T: DeserializeOwned>(
    state: &[u8],
    version: u32,
    migrate: impl FnOnce(u32, &[u8]) -> Result<T, Refusal>,
) -> Result<(C, T), Refusal> {
    crate::panic::report_panics();
    let ((json, last), state) = postcard::take_from_bytes::<(String, u64)>(state)
        .map_err(|error| Refusal::new(format_args!("this is not the saved state of a service: {error}")))?;
    let value = instance::read_state(state, version, migrate)?;
    registry::go_on_after(last);
    Ok((config(json)?, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_with_the_configuration_that_the_service_had() {
        config::<serde_json::Value>(r#"{"size": 3}"#.into()).unwrap();
        let state = save(2, &"seven").unwrap();
        let no_migration = |_, _: &[u8]| refuse!("there is no other version");
        let (config, value): (serde_json::Value, String) = restore(&state, 2, no_migration).unwrap();
        assert_eq!((config["size"].as_u64(), value.as_str()), (Some(3), "seven"));
        let older = |version, state: &[u8]| Ok(format!("{version} {}", instance::decode::<String>(state)?));
        let ((), value): ((), String) = restore(&state, 3, older).unwrap();
        assert_eq!(value, "2 seven");
        assert!(restore::<(), String>(b"", 3, older).is_err());
    }
}
