//! Lines in the host's log, with the guest's name in front. Every guest may write them.
//!
//! [`info!`](crate::info) and its likes format a line as `println!` does. A line stays in the log even when the handler
//! that wrote it fails; the host drops lines above a number per second, and says how many.

pub use crate::bindings::log::Level;

/// Writes one line. The macros are more convenient.
pub fn write(level: Level, message: &str) {
    crate::bindings::log::write(level, message);
}

/// Writes a line for whoever follows a single call.
#[macro_export]
macro_rules! trace {
    ($($line:tt)+) => { $crate::log::write($crate::log::Level::Trace, &::std::format!($($line)+)) };
}

/// Writes a line for the guest's author.
#[macro_export]
macro_rules! debug {
    ($($line:tt)+) => { $crate::log::write($crate::log::Level::Debug, &::std::format!($($line)+)) };
}

/// Writes a line for the operator, in normal running.
///
/// ```no_run
/// wheelhouse_guest::info!("the meadow has {} sheep", 3);
/// ```
#[macro_export]
macro_rules! info {
    ($($line:tt)+) => { $crate::log::write($crate::log::Level::Info, &::std::format!($($line)+)) };
}

/// Writes a line about something that wants a look.
#[macro_export]
macro_rules! warn {
    ($($line:tt)+) => { $crate::log::write($crate::log::Level::Warn, &::std::format!($($line)+)) };
}

/// Writes a line about something that is broken.
#[macro_export]
macro_rules! error {
    ($($line:tt)+) => { $crate::log::write($crate::log::Level::Error, &::std::format!($($line)+)) };
}
