//! The thread that commits: it takes the batches that wait, as many as a short transaction holds, commits them together
//! and in order, and tells when they are on disk. Whoever hands a batch over never waits. A disk that is full is tried again until there is room; an
//! error that will not go away ends the writing for good, and everybody can see so.

use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::backend::StoreWriter;
use super::batch::Batch;
use super::error::StoreError;
use crate::clock::SharedClock;
use crate::sim::metrics::{Distribution, Durations};

/// Between two attempts at a commit that failed: the first pause, which doubles, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Attempts at a commit once the writer is to stop. The pauses between them are less than a second together; an attempt
/// takes as long as the store waits for a lock that another program holds, with SQLite two seconds.
const ATTEMPTS_AT_STOP: u32 = 5;

/// How much is committed together at most, unless one batch alone is more. After a flood whoever waits for the backlog
/// to shrink is let go step by step, instead of when all of it is on disk.
const GROUP_ROWS: usize = 8192;
const GROUP_BYTES: usize = 8 << 20;

/// What keeps the writer from writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// For the operator: what, which file, what helps.
    pub text: String,
    /// Whether nothing will be written any more.
    pub is_fatal: bool,
}

/// The writer's figures since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreSnapshot {
    /// Transactions committed.
    pub commits: u64,
    /// Changes to events in the newest commit.
    pub batch_events: u64,
    /// How long commits took.
    pub commit_us: Distribution,
    /// Batches handed over and not yet on disk.
    pub backlog: u64,
    /// `ok`, or what the trouble is.
    pub state: String,
}

/// Called on the writer's thread after each commit and when trouble begins or ends.
pub type OnChange = Box<dyn Fn() + Send + Sync>;

/// The handle on the thread. All clones are of the same writer; when the last is dropped the thread writes what it was
/// handed and ends, and whoever drops it waits for that.
#[derive(Clone, Debug)]
pub struct Writer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    /// Nothing once it has been joined.
    thread: Mutex<Option<JoinHandle<Result<(), StoreError>>>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    /// The number of the newest batch on disk.
    committed: AtomicU64,
    commit_times: Durations,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Batch>,
    /// Batches handed over and not on disk: those in `waiting`, those in the thread's hands, and those that came after
    /// it had ended.
    backlog: usize,
    commits: u64,
    batch_events: u64,
    trouble: Option<Trouble>,
    is_stopping: bool,
    has_ended: bool,
}

impl Writer {
    /// Starts the thread.
    pub fn start(writer: Box<dyn StoreWriter>, clock: SharedClock, on_change: OnChange) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            wake: Condvar::new(),
            committed: AtomicU64::new(0),
            commit_times: Durations::new(),
        });
        let sleeper = Arc::downgrade(&shared);
        clock.on_advance(Box::new(move || sleeper.upgrade().is_some_and(|shared| shared.wake_up())));
        let work = Work { writer, shared: Arc::clone(&shared), clock, on_change };
        let thread = thread::Builder::new().name("wheelhouse-store".to_owned()).spawn(move || work.run());
        let thread = Mutex::new(Some(thread.map_err(StoreError::Thread)?));
        Ok(Self { inner: Arc::new(Inner { shared, thread }) })
    }

    /// Hands a batch over. Batches are committed in the order in which they are handed over.
    pub fn submit(&self, batch: Batch) {
        let mut state = self.inner.shared.lock();
        state.backlog += 1;
        if !state.has_ended {
            state.waiting.push_back(batch);
            drop(state);
            self.inner.shared.wake.notify_all();
        }
    }

    /// The number of the newest batch on disk; all before it are there too.
    pub fn committed(&self) -> u64 {
        self.inner.shared.committed.load(Ordering::Acquire)
    }

    /// What keeps it from writing just now, if anything does.
    pub fn trouble(&self) -> Option<Trouble> {
        self.inner.shared.lock().trouble.clone()
    }

    /// The figures.
    pub fn snapshot(&self) -> StoreSnapshot {
        let commit_us = self.inner.shared.commit_times.micros();
        let state = self.inner.shared.lock();
        StoreSnapshot {
            commits: state.commits,
            batch_events: state.batch_events,
            commit_us,
            backlog: state.backlog as u64,
            state: state.trouble.as_ref().map_or_else(|| "ok".to_owned(), |trouble| trouble.text.clone()),
        }
    }

    /// Commits what was handed over, closes the store and ends the thread. A disk that is full is tried a few times
    /// more. The second call answers [`StoreError::Closed`].
    pub fn stop(&self) -> Result<(), StoreError> {
        let thread = self.inner.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = thread.ok_or(StoreError::Closed)?;
        self.inner.shared.stop();
        thread.join().unwrap_or_else(|panic| Err(failed(&*panic)))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.stop();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // The last handle may be in the hands of the thread itself.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id())
            && let Err(error) = thread.join().unwrap_or_else(|panic| Err(failed(&*panic)))
        {
            tracing::error!("the database is closed with an error: {error}");
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.wake.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the thread look again. Answers that it wants to be told of the next time too.
    fn wake_up(&self) -> bool {
        // With the lock, so that it cannot fall between a look and the sleep after it.
        drop(self.lock());
        self.wake.notify_all();
        true
    }

    fn stop(&self) {
        self.lock().is_stopping = true;
        self.wake.notify_all();
    }

    /// The first batches that wait, once there are any; nothing when there will be none.
    fn next_group(&self) -> Option<Vec<Batch>> {
        let mut state = self.lock();
        while state.waiting.is_empty() {
            if state.is_stopping {
                state.has_ended = true;
                return None;
            }
            state = self.wait(state);
        }
        let group = group_length(&state.waiting);
        Some(state.waiting.drain(..group).collect())
    }

    /// Rests until the clock shows `until`, or until the writer is to stop if it was not before.
    fn pause(&self, clock: &SharedClock, until: Duration) {
        let mut state = self.lock();
        let was_stopping = state.is_stopping;
        while state.is_stopping == was_stopping && clock.now() < until {
            state = match clock.real_wait(until) {
                Some(wait) => self.wake.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0,
                None => self.wait(state),
            };
        }
    }
}

/// How many of the batches, of which there are some, are committed together: those within the bounds, but one at least.
fn group_length(waiting: &VecDeque<Batch>) -> usize {
    let (mut rows, mut bytes) = (0, 0);
    let fits = |batch: &&Batch| {
        rows += batch.rows();
        bytes += batch.bytes;
        rows <= GROUP_ROWS && bytes <= GROUP_BYTES
    };
    waiting.iter().take_while(fits).count().max(1)
}

/// What the thread holds.
struct Work {
    writer: Box<dyn StoreWriter>,
    shared: Arc<Shared>,
    clock: SharedClock,
    on_change: OnChange,
}

impl Work {
    fn run(mut self) -> Result<(), StoreError> {
        while let Some(group) = self.shared.next_group() {
            if let Err(error) = self.write(&group) {
                return Err(self.give_up(error));
            }
        }
        let writer = self.writer;
        guarded(|| writer.close())
    }

    fn write(&mut self, group: &[Batch]) -> Result<(), StoreError> {
        self.commit(group)?;
        let others_wait = !self.shared.lock().waiting.is_empty();
        match guarded(|| self.writer.upkeep(others_wait)) {
            Err(error) if !error.is_temporary() => Err(error),
            _ => Ok(()),
        }
    }

    /// Commits the batches, however often it takes, unless the writer is to stop.
    fn commit(&mut self, group: &[Batch]) -> Result<(), StoreError> {
        let mut pause = FIRST_PAUSE;
        let mut attempts_at_stop = 0;
        loop {
            let began = self.clock.now();
            match guarded(|| self.writer.commit(group)) {
                Ok(()) => {
                    self.shared.commit_times.record(self.clock.now().saturating_sub(began));
                    self.tell_committed(group);
                    return Ok(());
                }
                Err(error) if error.is_temporary() => {
                    self.begin_trouble(&error);
                    if self.shared.lock().is_stopping {
                        attempts_at_stop += 1;
                        if attempts_at_stop == 1 {
                            pause = FIRST_PAUSE;
                        } else if attempts_at_stop >= ATTEMPTS_AT_STOP {
                            return Err(error);
                        }
                    }
                }
                Err(error) => return Err(error),
            }
            self.shared.pause(&self.clock, self.clock.now() + pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn tell_committed(&self, group: &[Batch]) {
        let mut state = self.shared.lock();
        state.backlog -= group.len();
        state.commits += 1;
        state.batch_events = group.iter().map(|batch| batch.events.len() as u64).sum();
        let trouble = state.trouble.take();
        drop(state);
        if let Some(last) = group.last() {
            self.shared.committed.store(last.number, Ordering::Release);
        }
        if trouble.is_some() {
            tracing::info!("the database can be written again, and everything that waited is committed");
        }
        (self.on_change)();
    }

    fn begin_trouble(&self, error: &StoreError) {
        let trouble = Trouble { text: error.to_string(), is_fatal: false };
        let before = self.shared.lock().trouble.replace(trouble);
        if before.is_none() {
            tracing::error!("{error}. What was acknowledged is safe; the work goes on as soon as it can be written");
            (self.on_change)();
        }
    }

    fn give_up(&self, error: StoreError) -> StoreError {
        let mut state = self.shared.lock();
        state.trouble = Some(Trouble { text: error.to_string(), is_fatal: true });
        state.has_ended = true;
        state.waiting = VecDeque::new();
        let lost = state.backlog;
        drop(state);
        tracing::error!(
            "{error}. Nothing more is written, and {lost} batches of changes may be lost{}",
            error.consolation()
        );
        (self.on_change)();
        error
    }
}

/// Has a panic end the writing like any other error that will not go away, instead of unseen.
fn guarded<R>(action: impl FnOnce() -> Result<R, StoreError>) -> Result<R, StoreError> {
    panic::catch_unwind(AssertUnwindSafe(action)).unwrap_or_else(|panic| Err(failed(&*panic)))
}

fn failed(panic: &(dyn std::any::Any + Send)) -> StoreError {
    let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    StoreError::WriterFailed { reason: said.unwrap_or("it said nothing").to_owned() }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
