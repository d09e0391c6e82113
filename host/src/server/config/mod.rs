//! The configuration of a host: the [settings](Config), the rules that they keep to, and what is wrong where they do not.
//! [`Host::start`](super::Host::start) checks every configuration, so that a program which builds one itself is held to
//! the same rules as a file. Nothing here reads a file.

mod options;
mod problem;
pub(crate) mod rules;
mod settings;

#[cfg(test)]
mod rules_tests;

pub use problem::{Invalid, KeyPath, Problem, Step};
pub use settings::{
    Config, DispatchSettings, EventOptions, GateSettings, LogFormat, LogLevel, LogSettings, StoreSettings,
    WorldSettings,
};
