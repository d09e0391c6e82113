//! What the loop tells of itself: counters and distributions that the loop thread writes and anybody may read at any
//! time. Reading takes no lock and never holds the loop up; figures of one snapshot may be a turn apart.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use histogram::{AtomicHistogram, Histogram, Quantile};
use serde::{Deserialize, Serialize};

use super::admission::{AdmissionGauges, NO_ITEM};
use super::dispatcher::TaskCounts;
use super::timer_wheel::TimerCounts;

/// Buckets are at most 1/64 of their value wide.
const GROUPING_POWER: u8 = 6;

/// The longest duration told apart from longer ones: 2^50 ns, about 13 days.
const LONGEST_NS_POWER: u8 = 50;

/// A distribution of durations.
#[derive(Debug)]
pub struct Durations {
    histogram: AtomicHistogram,
    last_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Durations {
    /// None yet.
    pub(crate) fn new() -> Self {
        let histogram =
            AtomicHistogram::new(GROUPING_POWER, LONGEST_NS_POWER).expect("both powers are within the crate's limits");
        Self { histogram, last_ns: AtomicU64::new(0), max_ns: AtomicU64::new(0) }
    }

    /// Adds one. Only one thread at a time may.
    pub(crate) fn record(&self, duration: Duration) {
        let ns = (duration.as_nanos() as u64).min((1 << LONGEST_NS_POWER) - 1);
        self.histogram.increment(ns).expect("the value was cut to what the histogram takes");
        self.last_ns.store(ns, Relaxed);
        if ns > self.max_ns.load(Relaxed) {
            self.max_ns.store(ns, Relaxed);
        }
    }

    /// The figures as they are now.
    pub(crate) fn micros(&self) -> Distribution {
        let histogram = self.histogram.load();
        let max_ns = self.max_ns.load(Relaxed);
        // A bucket's upper end may lie beyond the greatest value in it.
        let quantile = |quantile: f64| micros(quantile_ns(&histogram, quantile).min(max_ns));
        Distribution {
            last: micros(self.last_ns.load(Relaxed)),
            max: micros(max_ns),
            p50: quantile(0.5),
            p99: quantile(0.99),
        }
    }
}

fn quantile_ns(histogram: &Histogram, quantile: f64) -> u64 {
    let bucket = Quantile::new(quantile).ok().and_then(|quantile| {
        let buckets = histogram.quantile(quantile.as_f64()).ok().flatten()?;
        buckets.get(&quantile).map(|bucket| bucket.end())
    });
    bucket.unwrap_or(0)
}

/// Rounded to the nearest.
fn micros(ns: u64) -> u64 {
    (ns + 500) / 1000
}

/// The live figures of one loop.
#[derive(Debug)]
pub struct SimMetrics {
    pub(super) executed: AtomicU64,
    pub(super) abandoned: AtomicU64,
    pub(super) faults: AtomicU64,
    pub(super) batch: Durations,
    pub(super) queue_delay: Durations,
    pub(super) cpu_ns: AtomicU64,
    pub(super) timer_faults: AtomicU64,
    pub(super) timer_batch_ns: AtomicU64,
    pub(super) lateness: Durations,
    timers_active: AtomicU64,
    timers_registered: AtomicU64,
    timers_fired: AtomicU64,
    timers_cancelled: AtomicU64,
    timers_coalesced: AtomicU64,
    pub(super) task_running: AtomicU64,
    tasks_queued: AtomicU64,
    tasks_steps: AtomicU64,
    tasks_finished: AtomicU64,
    tasks_failed: AtomicU64,
    tasks_over_budget: AtomicU64,
    tasks_average_step_ns: AtomicU64,
}

impl SimMetrics {
    pub(super) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            executed: zero(),
            abandoned: zero(),
            faults: zero(),
            batch: Durations::new(),
            queue_delay: Durations::new(),
            cpu_ns: zero(),
            timer_faults: zero(),
            timer_batch_ns: zero(),
            lateness: Durations::new(),
            timers_active: zero(),
            timers_registered: zero(),
            timers_fired: zero(),
            timers_cancelled: zero(),
            timers_coalesced: zero(),
            task_running: zero(),
            tasks_queued: zero(),
            tasks_steps: zero(),
            tasks_finished: zero(),
            tasks_failed: zero(),
            tasks_over_budget: zero(),
            tasks_average_step_ns: zero(),
        }
    }

    /// Adds to a counter that only the loop thread writes, which spares the bus lock of an atomic addition.
    pub(super) fn add(counter: &AtomicU64, more: u64) {
        counter.store(counter.load(Relaxed) + more, Relaxed);
    }

    pub(super) fn publish_timers(&self, active: usize, counts: TimerCounts) {
        self.timers_active.store(active as u64, Relaxed);
        self.timers_registered.store(counts.registered, Relaxed);
        self.timers_fired.store(counts.fired, Relaxed);
        self.timers_cancelled.store(counts.cancelled, Relaxed);
        self.timers_coalesced.store(counts.coalesced, Relaxed);
    }

    pub(super) fn publish_tasks(&self, queued: usize, counts: TaskCounts) {
        self.tasks_queued.store(queued as u64, Relaxed);
        self.tasks_steps.store(counts.steps, Relaxed);
        self.tasks_finished.store(counts.finished, Relaxed);
        self.tasks_failed.store(counts.failed, Relaxed);
        self.tasks_over_budget.store(counts.over_budget, Relaxed);
        self.tasks_average_step_ns.store(counts.average_step.as_nanos() as u64, Relaxed);
    }

    /// CPU time the loop thread has used, as of its last turn.
    pub fn cpu_time(&self) -> Duration {
        Duration::from_nanos(self.cpu_ns.load(Relaxed))
    }

    pub(super) fn snapshot(&self, admission: &AdmissionGauges, now: Duration) -> SimSnapshot {
        SimSnapshot {
            game_loop: self.loop_snapshot(admission, now),
            timers: self.timers_snapshot(),
            tasks: self.tasks_snapshot(),
            cpu_time: self.cpu_time(),
        }
    }

    fn loop_snapshot(&self, admission: &AdmissionGauges, now: Duration) -> LoopSnapshot {
        let oldest_ns = admission.oldest_ns.load(Relaxed);
        let age_ns = if oldest_ns == NO_ITEM { 0 } else { (now.as_nanos() as u64).saturating_sub(oldest_ns) };
        LoopSnapshot {
            queue_depth: admission.depth.load(Relaxed),
            oldest_age_us: age_ns / 1000,
            accepted: admission.posts.accepted.load(Relaxed),
            rejected: admission.posts.rejected.load(Relaxed),
            abandoned: self.abandoned.load(Relaxed),
            executed: self.executed.load(Relaxed),
            faults: self.faults.load(Relaxed),
            batch_us: self.batch.micros(),
            queue_delay_us: self.queue_delay.micros().into(),
        }
    }

    fn timers_snapshot(&self) -> TimersSnapshot {
        let lateness = self.lateness.micros();
        TimersSnapshot {
            active: self.timers_active.load(Relaxed),
            registered: self.timers_registered.load(Relaxed),
            fired: self.timers_fired.load(Relaxed),
            cancelled: self.timers_cancelled.load(Relaxed),
            coalesced: self.timers_coalesced.load(Relaxed),
            faults: self.timer_faults.load(Relaxed),
            lateness_us: Micros { p50: lateness.p50, p99: lateness.p99, max: lateness.max },
            last_batch_us: micros(self.timer_batch_ns.load(Relaxed)),
        }
    }

    fn tasks_snapshot(&self) -> TasksSnapshot {
        TasksSnapshot {
            queued: self.tasks_queued.load(Relaxed),
            steps: self.tasks_steps.load(Relaxed),
            finished: self.tasks_finished.load(Relaxed),
            failed: self.tasks_failed.load(Relaxed),
            over_budget: self.tasks_over_budget.load(Relaxed),
            running: self.task_running.load(Relaxed),
            average_step_us: micros(self.tasks_average_step_ns.load(Relaxed)),
        }
    }
}

/// The figures of a loop at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimSnapshot {
    #[serde(rename = "loop")]
    pub game_loop: LoopSnapshot,
    pub timers: TimersSnapshot,
    pub tasks: TasksSnapshot,
    /// CPU time of the loop thread, for those who compare it with the time that passed.
    #[serde(skip)]
    pub cpu_time: Duration,
}

/// The loop and its queue, since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopSnapshot {
    pub queue_depth: u64,
    /// How long the first item of the queue has waited.
    pub oldest_age_us: u64,
    pub accepted: u64,
    /// Posts refused because the queue was full or the loop was not running.
    pub rejected: u64,
    /// Accepted items dropped because the loop failed.
    pub abandoned: u64,
    pub executed: u64,
    /// Failures that stopped the loop.
    pub faults: u64,
    pub batch_us: Distribution,
    pub queue_delay_us: Micros,
}

/// The timers, since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimersSnapshot {
    pub active: u64,
    pub registered: u64,
    pub fired: u64,
    pub cancelled: u64,
    pub coalesced: u64,
    /// Callbacks that failed.
    pub faults: u64,
    /// From the nominal deadline to the firing.
    pub lateness_us: Micros,
    /// How long the last pass of callbacks took.
    pub last_batch_us: u64,
}

/// The step tasks, since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TasksSnapshot {
    pub queued: u64,
    pub steps: u64,
    pub finished: u64,
    pub failed: u64,
    /// Steps longer than the soft budget.
    pub over_budget: u64,
    /// Whether one has a step just now: 1 or 0.
    pub running: u64,
    /// The moving average over all tasks.
    pub average_step_us: u64,
}

/// A distribution in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Micros {
    pub p50: u64,
    pub p99: u64,
    pub max: u64,
}

impl From<Distribution> for Micros {
    fn from(Distribution { p50, p99, max, .. }: Distribution) -> Self {
        Micros { p50, p99, max }
    }
}

/// A distribution in microseconds, with the newest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    pub last: u64,
    pub max: u64,
    pub p50: u64,
    pub p99: u64,
}
