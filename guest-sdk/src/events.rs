//! Delayed events, which call the game's [`on_event`](crate::Game::on_event). They are stored durably and run when due
//! even if the host was down in between, each exactly once in effect.

use std::time::Duration;

pub use crate::bindings::events::{
    DueEvent, EventError, EventId, MissedRuns, PendingEvent, Repetition, When, cancel, get, pending, schedule,
};

use crate::duration;

/// Schedules an event that runs once, after `delay`.
pub fn after(kind: &str, delay: Duration, payload: &[u8]) -> Result<EventId, EventError> {
    schedule(kind, When::AfterMs(duration::whole_ms(delay)), payload, None)
}

/// Schedules an event that runs after every `interval`, for the first time after one.
pub fn every(kind: &str, interval: Duration, missed: MissedRuns, payload: &[u8]) -> Result<EventId, EventError> {
    let interval_ms = duration::whole_ms(interval);
    schedule(kind, When::AfterMs(interval_ms), payload, Some(Repetition { interval_ms, missed }))
}
