//! The loop and what runs on it: bounded admission, timers, step tasks, and their metrics. Whoever wires a host gives
//! it a [`Simulation`]; this room never knows what an item, a timer or a task is about.

pub mod admission;
pub mod completion;
pub mod dispatcher;
pub mod frame;
pub mod game_loop;
pub mod loop_core;
pub mod loop_handle;
pub mod metrics;
pub mod options;
pub mod reply;
mod sync;
pub mod timer_wheel;
pub mod wait;

#[cfg(test)]
mod admission_tests;
#[cfg(test)]
mod dispatcher_tests;
#[cfg(test)]
mod holding_tests;
#[cfg(test)]
mod loop_core_tests;
#[cfg(test)]
mod scripted;

use std::time::Duration;

use crate::clock::SharedClock;

pub use admission::{PostError, Rejected};
pub use completion::{Completion, LoopFailure, Outcome};
pub use dispatcher::{Dispatcher, Step, StepBudget, Task, TaskEnd, TaskId};
pub use game_loop::GameLoop;
pub use loop_core::{LoopCore, Next};
pub use loop_handle::{LoopHandle, StopError};
pub use options::{DispatchOptions, LoopOptions, OptionError, SimOptions, TimerOptions};
pub use reply::{Reply, ReplyLost, ReplyReceiver};
pub use timer_wheel::{Firing, NameId, TimerError, TimerId, TimerWheel};

/// What the loop runs. All its methods are called on the loop thread, one at a time.
pub trait Simulation: Send + Sized + 'static {
    /// A work item.
    type Item: Send + 'static;
    /// What a timer carries.
    type Timer: Send + 'static;

    /// Called first in each turn. An error or a panic stops the loop for good.
    fn begin_turn(&mut self, _cx: &mut LoopContext<'_, Self>) -> anyhow::Result<()> {
        Ok(())
    }

    /// Whether this turn takes items from the queue. While it does not, the queue fills and posters wait; the loop then
    /// sleeps through posts, so whoever ends that state has to [nudge](LoopHandle::nudge) it.
    fn takes_items(&self) -> bool {
        true
    }

    /// Runs one item. An error or a panic stops the loop for good.
    fn run_item(&mut self, item: Self::Item, cx: &mut LoopContext<'_, Self>) -> anyhow::Result<()>;

    /// Runs the callback of a timer. An error or a panic is counted and logged, and changes nothing else: a timer that
    /// repeats fires again.
    fn fire_timer(
        &mut self,
        firing: Firing,
        timer: &mut Self::Timer,
        cx: &mut LoopContext<'_, Self>,
    ) -> anyhow::Result<()>;

    /// Called after each pass that fired timers, for work that is better done for all of them at once. A panic counts
    /// as the fault of a timer.
    fn end_timer_pass(&mut self, _cx: &mut LoopContext<'_, Self>) {}

    /// Called once a turn, after everything else. A panic stops the loop for good.
    fn end_turn(&mut self, _cx: &mut LoopContext<'_, Self>) {}
}

/// What the code that runs on the loop may use.
pub struct LoopContext<'a, S: Simulation> {
    pub timers: &'a mut TimerWheel<S::Timer>,
    pub tasks: &'a mut Dispatcher<S>,
    pub clock: &'a SharedClock,
    /// The way to post further items: with `try_post`, since the loop cannot wait for itself.
    pub handle: &'a LoopHandle<S::Item>,
}

impl<S: Simulation> LoopContext<'_, S> {
    /// Registers a timer counted from now; see [`TimerWheel::register_named`].
    pub fn register_timer(
        &mut self,
        name: &str,
        interval: Duration,
        delay: Option<Duration>,
        repeat: bool,
        timer: S::Timer,
    ) -> Result<TimerId, TimerError> {
        self.timers.register_named(self.clock.now(), name, interval, delay, repeat, timer)
    }
}
