//! Arguments and results of objects' methods as bytes. The table is in the module above.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ObjectError;

const RESULT: u8 = 0;
const GONE: u8 = 1;
const NO_SUCH_METHOD: u8 = 2;
const ARGUMENTS: u8 = 3;
const FAILED: u8 = 4;
const BUSY: u8 = 5;

pub(super) fn write_arguments(arguments: &impl Serialize) -> Result<Vec<u8>, ObjectError> {
    postcard::to_allocvec(arguments).map_err(|error| ObjectError::Failed(format!("the arguments: {error}")))
}

/// A method's arguments; none where they do not fit, or are more than it takes.
#[doc(hidden)]
pub fn arguments<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((arguments, [])) => Some(arguments),
        _ => None,
    }
}

/// The answer to a call that was carried out.
#[doc(hidden)]
pub fn result(result: impl Serialize) -> Vec<u8> {
    postcard::to_extend(&result, vec![RESULT])
        .unwrap_or_else(|error| [&[FAILED], format!("the result: {error}").as_bytes()].concat())
}

pub(super) fn gone() -> Vec<u8> {
    vec![GONE]
}

#[doc(hidden)]
pub fn no_such_method() -> Vec<u8> {
    vec![NO_SUCH_METHOD]
}

#[doc(hidden)]
pub fn arguments_do_not_fit() -> Vec<u8> {
    vec![ARGUMENTS]
}

#[doc(hidden)]
pub fn busy() -> Vec<u8> {
    vec![BUSY]
}

/// What an answer says.
pub(super) fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, ObjectError> {
    Err(match answer {
        [RESULT, value @ ..] => match postcard::from_bytes(value) {
            Ok(value) => return Ok(value),
            Err(error) => ObjectError::Failed(format!("the result is of another type: {error}")),
        },
        [GONE, ..] => ObjectError::Gone,
        [NO_SUCH_METHOD, ..] => ObjectError::NoSuchMethod,
        [ARGUMENTS, ..] => ObjectError::Arguments,
        [FAILED, why @ ..] => ObjectError::Failed(String::from_utf8_lossy(why).into_owned()),
        [BUSY, ..] => ObjectError::Busy,
        _ => ObjectError::Failed("the answer is none that objects give".into()),
    })
}
