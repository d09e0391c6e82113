//! Step tasks: long work done in steps, in what each frame leaves. The dispatcher chooses which task gets the next step
//! and learns what its steps cost; the loop runs the step. It never measures time itself and never runs a task that
//! has nothing to do.
//!
//! Tasks stand in a queue, and one that has had a step goes to its end, so of the tasks that fit no one gets two steps
//! while another waits. A task whose average step does not fit what is left of the frame keeps its place for the next
//! frame; after `dispatch.starvation_frames` frames without a step it gets one however dear it is. A task that was
//! never measured is tried.

use std::collections::VecDeque;
use std::time::Duration;

use super::{DispatchOptions, LoopContext, Simulation};

/// Work done in steps on the loop thread.
pub trait Task<S: Simulation>: Send + 'static {
    /// What logs call it.
    fn name(&self) -> &str;

    /// Whether the host can cut it anywhere. Such a task is not judged by its average: it gets slices of what is left,
    /// and keeps to them.
    fn can_be_cut(&self) -> bool {
        false
    }

    /// Does a part of the work. A panic is a failure.
    fn step(&mut self, budget: StepBudget, simulation: &mut S, cx: &mut LoopContext<'_, S>) -> Step;

    /// Called when the task is over, unless it was cancelled: whoever cancels knows.
    fn ended(&mut self, _end: TaskEnd, _simulation: &mut S, _cx: &mut LoopContext<'_, S>) {}
}

/// What a step may spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepBudget {
    /// How long the previous frame was: the time that a task which keeps pace with the world moves on by.
    pub timeslice: Duration,
    /// How long this step may take.
    pub budget: Duration,
}

/// What came of a step.
#[derive(Debug)]
pub enum Step {
    /// There is more to do.
    InProgress,
    /// It did nothing; ask again in the next frame.
    Waiting,
    /// It is done. The task has delivered its result itself.
    Finished,
    /// It cannot go on.
    Failed(anyhow::Error),
}

/// How a task ended.
#[derive(Clone, Copy, Debug)]
pub enum TaskEnd<'a> {
    Finished,
    Failed(&'a anyhow::Error),
}

/// A task's id. None is given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(u64);

impl TaskId {
    /// The id as a number, for those who keep ids outside this process's types.
    pub fn as_u64(self) -> u64 {
        self.0
    }

    /// The id of that number. One that was never given out names no task.
    pub fn from_u64(id: u64) -> Self {
        Self(id)
    }
}

/// What the dispatcher has seen since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounts {
    pub steps: u64,
    pub finished: u64,
    pub failed: u64,
    pub over_budget: u64,
    /// Moving average over the steps of all tasks.
    pub average_step: Duration,
}

/// A slice shorter than this is not worth its switch; less is given only where the configured slice is shorter.
const SHORTEST_SLICE: Duration = Duration::from_micros(500);

/// A new step counts for one part in this many of the moving average.
const AVERAGE_OVER: i64 = 8;

/// A moving average of durations.
#[derive(Clone, Copy, Debug, Default)]
struct MovingAverage {
    /// Nothing until something was measured.
    nanos: Option<i64>,
}

impl MovingAverage {
    fn add(&mut self, sample: Duration) {
        let sample = sample.as_nanos().min(i64::MAX as u128) as i64;
        self.nanos = Some(match self.nanos {
            None => sample,
            Some(average) => average + (sample - average) / AVERAGE_OVER,
        });
    }

    fn get(self) -> Option<Duration> {
        self.nanos.map(|nanos| Duration::from_nanos(nanos as u64))
    }
}

/// A task and what is known of it.
struct Entry<S: Simulation> {
    id: TaskId,
    task: Box<dyn Task<S>>,
    average: MovingAverage,
    /// The frame of its last step, or of its arrival.
    last_frame: u64,
    /// Steps over the soft budget.
    over_budget: u64,
}

/// A task that was chosen for a step; hand it back with [`Dispatcher::finish_step`].
pub(super) struct Chosen<S: Simulation> {
    entry: Entry<S>,
    pub budget: Duration,
}

impl<S: Simulation> Chosen<S> {
    pub fn task(&mut self) -> &mut dyn Task<S> {
        &mut *self.entry.task
    }
}

/// What a finished step means for its task.
pub(super) enum AfterStep<S: Simulation> {
    Goes,
    /// It is over; the task, to be told.
    Ended(Box<dyn Task<S>>),
}

/// The tasks of the loop.
pub struct Dispatcher<S: Simulation> {
    slice: Duration,
    shortest_slice: Duration,
    soft_budget: Duration,
    starvation_frames: u64,
    frame: u64,
    /// To be looked at in this frame, the one longest without a step first.
    ready: VecDeque<Entry<S>>,
    /// Did not fit this frame.
    too_dear: VecDeque<Entry<S>>,
    /// Asked to be looked at in the next frame.
    waiting: VecDeque<Entry<S>>,
    /// The task whose step runs, and whether it was cancelled meanwhile.
    running: Option<(TaskId, bool)>,
    stepped_in_frame: bool,
    spawned: u64,
    closed: bool,
    counts: TaskCounts,
    average_step: MovingAverage,
}

impl<S: Simulation> Dispatcher<S> {
    pub fn new(options: &DispatchOptions) -> Self {
        let slice = Duration::from_millis(options.job_slice_ms);
        Self {
            slice,
            shortest_slice: SHORTEST_SLICE.min(slice),
            soft_budget: Duration::from_millis(options.soft_budget_ms),
            starvation_frames: options.starvation_frames,
            frame: 0,
            ready: VecDeque::new(),
            too_dear: VecDeque::new(),
            waiting: VecDeque::new(),
            running: None,
            stepped_in_frame: false,
            spawned: 0,
            closed: false,
            counts: TaskCounts::default(),
            average_step: MovingAverage::default(),
        }
    }

    /// Adds a task. Once the loop stops, its task is refused and dropped.
    pub fn spawn(&mut self, task: impl Task<S>) -> Result<TaskId, TaskRefused> {
        if self.closed {
            return Err(TaskRefused { name: task.name().into() });
        }
        self.spawned += 1;
        let id = TaskId(self.spawned);
        self.ready.push_back(Entry {
            id,
            task: Box::new(task),
            average: MovingAverage::default(),
            last_frame: self.frame,
            over_budget: 0,
        });
        Ok(id)
    }

    /// Ends a task without another step. `false` if there is no such task (any more).
    pub fn cancel(&mut self, id: TaskId) -> bool {
        if let Some((running, cancelled)) = &mut self.running
            && *running == id
        {
            return !std::mem::replace(cancelled, true);
        }
        [&mut self.ready, &mut self.too_dear, &mut self.waiting].into_iter().any(|queue| {
            let found = queue.iter().position(|entry| entry.id == id);
            found.and_then(|position| queue.remove(position)).is_some()
        })
    }

    /// How many tasks wait for a step.
    pub fn queued(&self) -> usize {
        self.ready.len() + self.too_dear.len() + self.waiting.len()
    }

    /// Whether there are no tasks at all.
    pub fn is_empty(&self) -> bool {
        self.queued() == 0 && self.running.is_none()
    }

    pub fn counts(&self) -> TaskCounts {
        TaskCounts { average_step: self.average_step.get().unwrap_or_default(), ..self.counts }
    }

    /// Whether some task may be stepped in this frame.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Begins a frame: every task is looked at again.
    pub(super) fn begin_frame(&mut self) {
        self.frame += 1;
        self.stepped_in_frame = false;
        // Who did not fit comes first, who asked to wait comes after those that have not been looked at.
        self.too_dear.append(&mut self.ready);
        std::mem::swap(&mut self.too_dear, &mut self.ready);
        self.ready.append(&mut self.waiting);
    }

    /// Chooses the task for the next step, if one fits in `left`.
    pub(super) fn choose(&mut self, left: Duration) -> Option<Chosen<S>> {
        while let Some(entry) = self.ready.pop_front() {
            let Some(budget) = self.budget_for(&entry, left) else {
                self.too_dear.push_back(entry);
                continue;
            };
            self.running = Some((entry.id, false));
            self.stepped_in_frame = true;
            return Some(Chosen { entry, budget });
        }
        None
    }

    fn budget_for(&self, entry: &Entry<S>, left: Duration) -> Option<Duration> {
        let starved = self.frame - entry.last_frame >= self.starvation_frames;
        if entry.task.can_be_cut() {
            let fits = left >= self.shortest_slice;
            return (fits || starved).then(|| left.clamp(self.shortest_slice, self.slice));
        }
        let fits = match entry.average.get() {
            Some(average) => average <= left,
            None => !left.is_zero() || !self.stepped_in_frame,
        };
        (fits || starved).then_some(left)
    }

    /// Takes a task back after its step, which took `took`.
    pub(super) fn finish_step(&mut self, chosen: Chosen<S>, step: &Step, took: Duration) -> AfterStep<S> {
        let Chosen { mut entry, budget } = chosen;
        let cancelled = self.running.take().is_some_and(|(_, cancelled)| cancelled);
        entry.last_frame = self.frame;
        if !matches!(step, Step::Waiting) {
            self.count_step(&mut entry, budget, took);
        }
        if cancelled {
            return AfterStep::Goes;
        }
        match step {
            Step::InProgress => self.ready.push_back(entry),
            Step::Waiting => self.waiting.push_back(entry),
            Step::Finished => {
                self.counts.finished += 1;
                return AfterStep::Ended(entry.task);
            }
            Step::Failed(error) => {
                self.counts.failed += 1;
                tracing::error!(task = entry.task.name(), "a task failed: {error:#}");
                return AfterStep::Ended(entry.task);
            }
        }
        AfterStep::Goes
    }

    fn count_step(&mut self, entry: &mut Entry<S>, budget: Duration, took: Duration) {
        self.counts.steps += 1;
        entry.average.add(took);
        self.average_step.add(took);
        let kept_slice = entry.task.can_be_cut() && took <= budget;
        if took > self.soft_budget && !kept_slice {
            self.counts.over_budget += 1;
            entry.over_budget += 1;
            // A task that is always slow must not drown the log: it is told at each doubling.
            if entry.over_budget.is_power_of_two() {
                tracing::warn!(
                    task = entry.task.name(),
                    times = entry.over_budget,
                    took_ms = took.as_secs_f64() * 1e3,
                    soft_budget_ms = self.soft_budget.as_secs_f64() * 1e3,
                    "a step of a task took longer than the soft budget, guest.soft_budget_ms; cut it into smaller ones"
                );
            }
        }
    }

    /// Counts a failure that came after a task's last step.
    pub(super) fn count_failure(&mut self) {
        self.counts.failed += 1;
    }

    /// Drops every task and refuses new ones.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.ready.clear();
        self.too_dear.clear();
        self.waiting.clear();
    }
}

/// A task came too late.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("task `{name}`: the loop has stopped, so it would never run")]
pub struct TaskRefused {
    pub name: String,
}
