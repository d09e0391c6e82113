//! The loop without its thread: everything that happens in one turn, so that a test can take the turns one by one on a
//! clock of its own. [`GameLoop`](super::GameLoop) takes them on a thread.
//!
//! A turn begins with the simulation, which says whether items are taken. It runs a batch of them, a pass of due timers,
//! then step tasks for as long as nothing else is due and the frame has time left; then it tells the simulation,
//! publishes its figures, and says when the next turn is due.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::admission::{Admission, Intake, Take, Taken};
use super::completion::{Completion, LoopFailure};
use super::dispatcher::{AfterStep, Step, StepBudget, TaskEnd};
use super::frame::Frame;
use super::loop_handle::{LoopHandle, Shared, thread_number};
use super::metrics::SimMetrics;
use super::options::{OptionError, SimOptions};
use super::timer_wheel::TimerWheel;
use super::{Dispatcher, LoopContext, Simulation};
use crate::clock::SharedClock;

/// When the next turn is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// There is more to do.
    Now,
    /// Nothing to do before that time of the clock, unless an item comes.
    At(Duration),
    /// Nothing to do unless an item comes.
    WhenPosted,
    /// The loop has ended; the completion says how.
    Ended,
}

/// A loop that is driven turn by turn.
pub struct LoopCore<S: Simulation> {
    simulation: S,
    timers: TimerWheel<S::Timer>,
    tasks: Dispatcher<S>,
    options: SimOptions,
    frame: Frame,
    /// Whether there was a task at some time of the frame.
    frame_used: bool,
    stopping: bool,
    ended: bool,
    clock: SharedClock,
    intake: Intake<S::Item>,
    shared: Arc<Shared<S::Item>>,
    handle: LoopHandle<S::Item>,
}

/// An error that stops the loop, and what it was doing.
type Fatal = (&'static str, anyhow::Error);

impl<S: Simulation> LoopCore<S> {
    /// A loop around `simulation`. It accepts items from now on and runs them when it is driven.
    pub fn new(simulation: S, options: SimOptions, clock: SharedClock) -> Result<Self, OptionError> {
        options.validate()?;
        let shared = Arc::new(Shared {
            admission: Arc::new(Admission::new(options.game_loop.queue_capacity as usize, Arc::clone(&clock))),
            metrics: SimMetrics::new(),
            completion: Completion::default(),
            clock: Arc::clone(&clock),
            loop_thread: AtomicU64::new(0),
            thread: Mutex::new(None),
        });
        let tick = Duration::from_millis(options.timers.tick_ms);
        Ok(Self {
            simulation,
            timers: TimerWheel::new(tick, options.timers.wheel_size as usize, options.timers.max_pending as usize),
            tasks: Dispatcher::new(&options.dispatch),
            frame: Frame::new(options.dispatch.frame(), clock.now()),
            frame_used: false,
            stopping: false,
            ended: false,
            clock,
            intake: shared.admission.intake(),
            handle: LoopHandle::new(Arc::clone(&shared)),
            shared,
            options,
        })
    }

    /// A handle to this loop.
    pub fn handle(&self) -> LoopHandle<S::Item> {
        self.handle.clone()
    }

    /// The simulation, and what its callbacks would be given: to register timers and tasks before the start.
    pub fn parts(&mut self) -> (&mut S, LoopContext<'_, S>) {
        let Self { simulation, timers, tasks, clock, handle, .. } = self;
        (simulation, LoopContext { timers, tasks, clock, handle })
    }

    /// The simulation.
    pub fn simulation(&mut self) -> &mut S {
        &mut self.simulation
    }

    /// The clock.
    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// Sleeps until there is an item that the simulation takes or a nudge, or for `at_most` of real time.
    pub(super) fn sleep(&self, at_most: Option<Duration>) {
        self.intake.sleep(at_most, self.simulation.takes_items());
    }

    pub(super) fn shared(&self) -> &Arc<Shared<S::Item>> {
        &self.shared
    }

    /// Takes one turn. While it runs, its thread counts as the loop thread.
    pub fn turn(&mut self) -> Next {
        if self.ended {
            return Next::Ended;
        }
        let before = self.shared.loop_thread.swap(thread_number(), Ordering::Relaxed);
        let next = match self.take_turn() {
            Ok(next) => next,
            Err(fatal) => {
                self.fail(fatal);
                Next::Ended
            }
        };
        self.publish();
        self.shared.loop_thread.store(before, Ordering::Relaxed);
        next
    }

    fn take_turn(&mut self) -> Result<Next, Fatal> {
        let started = self.clock.now();
        if self.frame.advance(started, self.frame_used) {
            self.tasks.begin_frame();
            self.frame_used = false;
        }
        self.stopping |= self.shared.admission.is_closed();
        if self.stopping {
            self.timers.close();
            self.tasks.close();
        }
        self.call(|simulation, cx| simulation.begin_turn(cx))
            .and_then(|began| began)
            .map_err(|error| ("the beginning of a turn", error))?;
        let drained = self.simulation.takes_items() && self.run_batch(started)?;
        self.run_timers();
        self.run_tasks();
        self.call(|simulation, cx| simulation.end_turn(cx)).map_err(|error| ("the end of a turn", error))?;
        if drained {
            self.finish()?;
            return Ok(Next::Ended);
        }
        Ok(self.next_turn())
    }

    /// Runs the items of one batch. `true` if the queue is closed and empty.
    fn run_batch(&mut self, started: Duration) -> Result<bool, Fatal> {
        let budget = Duration::from_millis(self.options.game_loop.item_budget_ms);
        let mut now = started;
        let mut attempted = 0;
        let mut drained = false;
        while attempted < self.options.game_loop.max_items_per_batch && (attempted == 0 || now - started < budget) {
            let Taken { item, admitted } = match self.intake.take() {
                Take::Item(taken) => taken,
                Take::Empty => break,
                Take::Drained => {
                    drained = true;
                    break;
                }
            };
            attempted += 1;
            self.shared.metrics.queue_delay.record(now.saturating_sub(admitted));
            self.run_item("a work item", item)?;
            now = self.clock.now();
        }
        if attempted > 0 {
            self.shared.metrics.batch.record(now - started);
        }
        Ok(drained)
    }

    fn run_item(&mut self, doing: &'static str, item: S::Item) -> Result<(), Fatal> {
        SimMetrics::add(&self.shared.metrics.executed, 1);
        self.call(|simulation, cx| simulation.run_item(item, cx)).and_then(|ran| ran).map_err(|error| (doing, error))
    }

    /// Calls the simulation and turns a panic into an error.
    fn call<R>(&mut self, call: impl FnOnce(&mut S, &mut LoopContext<'_, S>) -> R) -> anyhow::Result<R> {
        let (simulation, mut cx) = self.parts();
        // A simulation that panicked is either stopped for good, or its panic was that of a callback, whose state is
        // the simulation's own to keep consistent.
        catch_unwind(AssertUnwindSafe(|| call(simulation, &mut cx))).map_err(panic_error)
    }

    fn run_timers(&mut self) {
        let started = self.clock.now();
        let budget = Duration::from_millis(self.options.timers.callback_budget_ms);
        let mut now = started;
        let mut attempted = 0;
        while attempted < self.options.timers.max_callbacks_per_batch && (attempted == 0 || now - started < budget) {
            let Some((firing, mut timer)) = self.timers.pop_due(now) else { break };
            attempted += 1;
            self.shared.metrics.lateness.record(firing.late);
            let fired =
                self.call(|simulation, cx| simulation.fire_timer(firing, &mut timer, cx)).and_then(|fired| fired);
            if let Err(error) = fired {
                SimMetrics::add(&self.shared.metrics.timer_faults, 1);
                let name = self.timers.name_text(firing.name);
                tracing::error!(timer = name, id = firing.id.as_u64(), "a timer's callback failed: {error:#}");
            }
            self.timers.put_back(firing.id, timer);
            now = self.clock.now();
        }
        if attempted == 0 {
            return;
        }
        if let Err(error) = self.call(|simulation, cx| simulation.end_timer_pass(cx)) {
            SimMetrics::add(&self.shared.metrics.timer_faults, 1);
            tracing::error!("the end of a timer pass failed: {error:#}");
        }
        let took = self.clock.now() - started;
        self.shared.metrics.timer_batch_ns.store(took.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Gives steps to tasks until the frame is spent or an item or a timer wants the loop.
    fn run_tasks(&mut self) {
        self.frame_used |= !self.tasks.is_empty();
        loop {
            let now = self.clock.now();
            let Some(mut chosen) = self.tasks.choose(self.frame.left(now)) else { break };
            self.shared.metrics.task_running.store(1, Ordering::Relaxed);
            let budget = StepBudget { timeslice: self.frame.previous_length(), budget: chosen.budget };
            let step =
                self.call(|simulation, cx| chosen.task().step(budget, simulation, cx)).unwrap_or_else(Step::Failed);
            let ended_at = self.clock.now();
            let after = self.tasks.finish_step(chosen, &step, ended_at - now);
            if let AfterStep::Ended(mut task) = after {
                let end = if let Step::Failed(error) = &step { TaskEnd::Failed(error) } else { TaskEnd::Finished };
                if let Err(error) = self.call(|simulation, cx| task.ended(end, simulation, cx)) {
                    self.tasks.count_failure();
                    tracing::error!(task = task.name(), "a task failed after its last step: {error:#}");
                }
            }
            self.shared.metrics.task_running.store(0, Ordering::Relaxed);
            if self.something_else_is_due(ended_at) {
                break;
            }
        }
    }

    fn something_else_is_due(&mut self, now: Duration) -> bool {
        now >= self.frame.end()
            || (self.simulation.takes_items() && self.shared.admission.has_items())
            || self.timers.next_wakeup(now).is_some_and(|wait| wait.is_zero())
    }

    fn next_turn(&mut self) -> Next {
        let admission = &self.shared.admission;
        // A closed queue announces no item that would wake the loop, and the end is a turn's work.
        let wanted = self.simulation.takes_items() && (admission.has_items() || admission.is_closed());
        if wanted || self.tasks.has_ready() {
            return Next::Now;
        }
        let now = self.clock.now();
        let timer = self.timers.next_wakeup(now).map(|wait| now + wait);
        // The tasks that are left did not fit, or wait for the next frame.
        let frame = (!self.tasks.is_empty()).then(|| self.frame.end());
        match timer.into_iter().chain(frame).min() {
            Some(at) if at <= now => Next::Now,
            Some(at) => Next::At(at),
            None => Next::WhenPosted,
        }
    }

    /// The end that was asked for: the final item, then the completion.
    fn finish(&mut self) -> Result<(), Fatal> {
        if let Some(item) = self.shared.admission.take_final() {
            self.run_item("the final work item", item)?;
            self.call(|simulation, cx| simulation.end_turn(cx)).map_err(|error| ("the end of a turn", error))?;
        }
        self.publish();
        self.ended = true;
        self.shared.completion.set(Ok(()));
        Ok(())
    }

    /// The end nobody asked for.
    fn fail(&mut self, (doing, error): Fatal) {
        self.ended = true;
        SimMetrics::add(&self.shared.metrics.faults, 1);
        let error = Arc::new(error);
        // Whatever may panic while things are dropped or logged, whoever waits for the loop hears of its end.
        let abandoned = catch_unwind(AssertUnwindSafe(|| self.clean_up())).unwrap_or_default();
        self.shared.completion.set(Err(LoopFailure { doing, error: Arc::clone(&error), abandoned }));
        tracing::error!("the loop stops: it failed while it ran {doing}: {error:#}");
    }

    /// Drops whatever has not run, and says how many items that were.
    fn clean_up(&mut self) -> usize {
        let abandoned = self.intake.abandon();
        SimMetrics::add(&self.shared.metrics.abandoned, abandoned as u64);
        self.timers.close();
        self.tasks.close();
        self.publish();
        abandoned
    }

    fn publish(&self) {
        self.shared.metrics.publish_timers(self.timers.active(), self.timers.counts());
        self.shared.metrics.publish_tasks(self.tasks.queued(), self.tasks.counts());
    }
}

/// A core that is dropped before its end has items that nobody will run.
impl<S: Simulation> Drop for LoopCore<S> {
    fn drop(&mut self) {
        if !self.ended {
            let abandoned = self.clean_up();
            let error = Arc::new(anyhow::anyhow!("it was dropped before it was stopped"));
            self.shared.completion.set(Err(LoopFailure { doing: "nothing", error, abandoned }));
        }
    }
}

/// The message of a panic.
fn panic_error(panic: Box<dyn Any + Send>) -> anyhow::Error {
    let message = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    anyhow::anyhow!("panic: {}", message.unwrap_or("(without a message)"))
}
