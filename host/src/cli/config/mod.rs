//! The configuration of a host: plain settings, the rules they keep to, and the loader that reads them from
//! `wheelhouse.toml`. Commands load, programs that embed Wheelhouse build [`Config`] themselves; nothing here opens a
//! port or starts a guest.

mod known_keys;
mod load;
mod problem;
mod rules;
mod settings;

#[cfg(test)]
mod tests;

pub use load::{LoadError, load, parse};
pub use problem::{Invalid, KeyPath, Problem, Step};
pub use settings::{
    AdminSettings, Config, DispatchSettings, GateSettings, Grant, GuestKind, GuestLimits, GuestSettings, LogFormat,
    LogLevel, LogSettings, LoopSettings, NpcSettings, StoreSettings, TimerSettings, WorldSettings,
};
