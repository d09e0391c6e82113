//! The options of the loop, its timers and its tasks: their defaults, and the check that names what is wrong with them.
//! Configuration is read into them elsewhere; nothing here reads a file.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::timer_wheel::MAX_PENDING_LIMIT;

/// All options of this room, each table under its name in the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SimOptions {
    #[serde(rename = "loop")]
    pub game_loop: LoopOptions,
    pub timers: TimerOptions,
    pub dispatch: DispatchOptions,
}

/// The table `loop`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoopOptions {
    /// Items that may wait; the running one is not counted.
    pub queue_capacity: u64,
    /// Items attempted before timers and tasks have their turn.
    pub max_items_per_batch: u64,
    /// Time after which no further item of the batch is begun.
    pub item_budget_ms: u64,
}

impl Default for LoopOptions {
    fn default() -> Self {
        Self { queue_capacity: 4096, max_items_per_batch: 256, item_budget_ms: 5 }
    }
}

/// The table `timers`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TimerOptions {
    /// Deadlines round up to a multiple of it.
    pub tick_ms: u64,
    /// Ticks in one turn of the wheel, rounded up to a power of two.
    pub wheel_size: u64,
    /// Timers that may be registered at one time.
    pub max_pending: u64,
    /// Callbacks attempted before items and tasks have their turn.
    pub max_callbacks_per_batch: u64,
    /// Time after which no further callback of the pass is begun.
    pub callback_budget_ms: u64,
}

impl Default for TimerOptions {
    fn default() -> Self {
        Self { tick_ms: 8, wheel_size: 512, max_pending: 65_536, max_callbacks_per_batch: 256, callback_budget_ms: 5 }
    }
}

/// The table `dispatch`, and the soft budget of a call from the table `guest`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DispatchOptions {
    /// Frames a second; a frame is what tasks share with items and timers.
    pub target_tps: u64,
    /// After this many frames without a step a task gets one, however dear.
    pub starvation_frames: u64,
    /// The longest time that a task which can be cut anywhere runs in one go.
    pub job_slice_ms: u64,
    /// A step longer than this is counted and logged. In the configuration it is `guest.soft_budget_ms`.
    #[serde(skip)]
    pub soft_budget_ms: u64,
}

impl Default for DispatchOptions {
    fn default() -> Self {
        Self { target_tps: 60, starvation_frames: 8, job_slice_ms: 2, soft_budget_ms: 10 }
    }
}

impl DispatchOptions {
    /// The length of a frame.
    pub fn frame(&self) -> Duration {
        Duration::from_nanos(1_000_000_000 / self.target_tps)
    }
}

/// An option with a value that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key} = {value}: {must}")]
pub struct OptionError {
    pub key: &'static str,
    pub value: u64,
    /// What the value must be.
    pub must: String,
}

/// The most slots of the wheel's lowest level. More would cost memory and help nobody: longer timers are no slower.
const MAX_WHEEL_SIZE: u64 = 1 << 20;

/// A queue longer than this would be memory without a limit under another name.
const MAX_QUEUE_CAPACITY: u64 = 1 << 24;

/// An hour: a budget or tick beyond it is a slip of the pen.
const MAX_MS: u64 = 3_600_000;

const NO_MAXIMUM: u64 = u64::MAX;

impl SimOptions {
    /// Refuses the first option that cannot work.
    pub fn validate(&self) -> Result<(), OptionError> {
        let Self { game_loop, timers, dispatch } = self;
        for (key, value, max) in [
            ("loop.queue_capacity", game_loop.queue_capacity, MAX_QUEUE_CAPACITY),
            ("loop.max_items_per_batch", game_loop.max_items_per_batch, NO_MAXIMUM),
            ("loop.item_budget_ms", game_loop.item_budget_ms, MAX_MS),
            ("timers.tick_ms", timers.tick_ms, MAX_MS),
            ("timers.wheel_size", timers.wheel_size, MAX_WHEEL_SIZE),
            ("timers.max_pending", timers.max_pending, MAX_PENDING_LIMIT as u64),
            ("timers.max_callbacks_per_batch", timers.max_callbacks_per_batch, NO_MAXIMUM),
            ("timers.callback_budget_ms", timers.callback_budget_ms, MAX_MS),
            ("dispatch.target_tps", dispatch.target_tps, 1_000_000),
            ("dispatch.starvation_frames", dispatch.starvation_frames, NO_MAXIMUM),
            ("dispatch.job_slice_ms", dispatch.job_slice_ms, MAX_MS),
            ("guest.soft_budget_ms", dispatch.soft_budget_ms, MAX_MS),
        ] {
            if value == 0 {
                return Err(OptionError { key, value, must: "it must be positive".into() });
            }
            if value > max {
                return Err(OptionError { key, value, must: format!("it must be at most {max}") });
            }
        }
        Ok(())
    }
}
