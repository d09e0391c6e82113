//! The error of a handler: a deliberate refusal, which rolls the handler back and keeps the instance.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a guest refuses: a line for the log, or for whoever waits for the answer.
///
/// Any error turns into a refusal with `?`; [`refuse!`](crate::refuse) makes one from a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal(String);

impl Refusal {
    /// A refusal with this message.
    pub fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_message(self) -> String {
        self.0
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

// `Refusal` is not an `Error` itself: then this blanket conversion would collide with the one from itself.
impl<E: std::error::Error> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

/// Leaves the function with a [`Refusal`] whose message is formatted as by `format!`.
///
/// ```
/// use wheelhouse_guest::{Refusal, refuse};
///
/// fn halve(number: u32) -> Result<u32, Refusal> {
///     if number % 2 == 1 {
///         refuse!("{number} is odd");
///     }
///     Ok(number / 2)
/// }
///
/// assert_eq!(halve(3).unwrap_err().message(), "3 is odd");
/// ```
#[macro_export]
macro_rules! refuse {
    ($($message:tt)+) => {
        return ::core::result::Result::Err($crate::Refusal::new(::core::format_args!($($message)+)))
    };
}
