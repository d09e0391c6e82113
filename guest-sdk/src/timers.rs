//! In-memory timers, which call the game's [`on_timer`](crate::Game::on_timer). They are lost when the host stops;
//! what must outlive that is an [event](crate::events).

use std::time::Duration;

pub use crate::bindings::timers::{TimerError, cancel, cancel_named};

use crate::{TimerId, duration};

/// Sets a timer that fires once, after `delay`. `payload` is handed back to it.
pub fn once(name: &str, delay: Duration, payload: &[u8]) -> Result<TimerId, TimerError> {
    let delay_ms = duration::whole_ms(delay);
    crate::bindings::timers::set(name, delay_ms, Some(delay_ms), false, payload)
}

/// Sets a timer that fires after every `interval`, for the first time after one.
pub fn every(name: &str, interval: Duration, payload: &[u8]) -> Result<TimerId, TimerError> {
    crate::bindings::timers::set(name, duration::whole_ms(interval), None, true, payload)
}

/// Sets a timer that fires after `delay`, and from then on after every `interval`.
pub fn every_after(name: &str, delay: Duration, interval: Duration, payload: &[u8]) -> Result<TimerId, TimerError> {
    let (delay_ms, interval_ms) = (duration::whole_ms(delay), duration::whole_ms(interval));
    crate::bindings::timers::set(name, interval_ms, Some(delay_ms), true, payload)
}
