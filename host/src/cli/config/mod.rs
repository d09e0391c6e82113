//! The configuration of a host: plain settings, the rules they keep to, and the loader that reads them from
//! `wheelhouse.toml`. Commands load, programs that embed Wheelhouse build [`Config`] themselves; nothing here opens a
//! port or starts a guest.

mod known_keys;
mod load;
mod problem;
mod rules;

#[cfg(test)]
mod tests;

pub use load::{LoadError, load, parse};
pub use problem::{Invalid, KeyPath, Problem, Step};
pub use crate::guest::{Grant, GuestKind, GuestLimits, GuestSettings};
pub use crate::server::settings::{
    AdminSettings, Config, DispatchSettings, GateSettings, LogFormat, LogLevel, LogSettings, LoopSettings, NpcSettings,
    StoreSettings, TimerSettings, WorldSettings,
};
