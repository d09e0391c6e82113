//! Time, as the rest of the host sees it: a [`Clock`] that is handed in wherever time is needed, the real one
//! ([`MonotonicClock`]) and one that a test moves by hand ([`ManualClock`]). No other room asks the operating system
//! what time it is, so one test can drive the whole host step by step and never sleep.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A source of time, shared by every thread of the host.
pub trait Clock: Send + Sync + 'static {
    /// Monotonic time since the clock was made. Never goes back.
    fn now(&self) -> Duration;

    /// Wall-clock time in milliseconds since 1970-01-01 UTC. May jump either way.
    fn wall_ms(&self) -> u64;

    /// How long a thread that wants to go on at `until` should sleep in the real world. Nothing means until it is woken:
    /// nobody knows when a clock that is moved by hand will get there.
    fn real_wait(&self, until: Duration) -> Option<Duration> {
        Some(until.saturating_sub(self.now()))
    }

    /// Has a clock that is moved by hand call `moved` after each move, until it returns `false`. A clock that runs by
    /// itself has no use for it.
    fn on_advance(&self, _moved: Box<dyn FnMut() -> bool + Send>) {}
}

/// How the rooms hold a clock.
pub type SharedClock = Arc<dyn Clock>;

/// The operating system's monotonic clock.
#[derive(Debug)]
pub struct MonotonicClock {
    started: Instant,
}

impl MonotonicClock {
    /// A clock that reads zero now.
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }

    /// The same, ready to be shared.
    pub fn shared() -> SharedClock {
        Arc::new(Self::new())
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn wall_ms(&self) -> u64 {
        // A system clock set before 1970 reads as zero.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
    }
}

/// CPU time that the calling thread has used. It costs a system call.
pub fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A clock that moves only when told to. Its wall clock moves along unless it is set.
#[derive(Default)]
pub struct ManualClock {
    now_ns: AtomicU64,
    wall_at_zero_ms: AtomicU64,
    /// Who sleeps by this clock.
    sleepers: Mutex<Vec<Box<dyn FnMut() -> bool + Send>>>,
}

impl ManualClock {
    /// A clock that reads zero, shared.
    pub fn shared() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Moves the time on.
    pub fn advance(&self, by: Duration) {
        self.now_ns.fetch_add(by.as_nanos() as u64, Ordering::SeqCst);
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner).retain_mut(|moved| moved());
    }

    /// Sets the wall clock to read `wall_ms` now, which may be a step back.
    pub fn set_wall_ms(&self, wall_ms: u64) {
        let now_ms = self.now().as_millis() as u64;
        self.wall_at_zero_ms.store(wall_ms.wrapping_sub(now_ms), Ordering::SeqCst);
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualClock").field("now", &self.now()).finish_non_exhaustive()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns.load(Ordering::SeqCst))
    }

    fn wall_ms(&self) -> u64 {
        self.wall_at_zero_ms.load(Ordering::SeqCst).wrapping_add(self.now().as_millis() as u64)
    }

    fn real_wait(&self, _until: Duration) -> Option<Duration> {
        None
    }

    fn on_advance(&self, moved: Box<dyn FnMut() -> bool + Send>) {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner).push(moved);
    }
}
