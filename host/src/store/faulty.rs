//! Test doubles of a store's ends: a [`Faulty`] writer that remembers what it committed, fails on command, and can be
//! held in the middle of a commit, so that a test decides what happens while one is under way.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::backend::StoreWriter;
use super::batch::Batch;
use super::error::StoreError;

/// How long a test waits for what must come.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The test's end of a [`Faulty`] writer.
#[derive(Clone, Debug, Default)]
pub struct Faulty {
    shared: Arc<(Mutex<Script>, Condvar)>,
}

#[derive(Debug, Default)]
struct Script {
    /// What the next attempts end with; those after succeed.
    failures: VecDeque<StoreError>,
    is_held: bool,
    panics: bool,
    /// Attempts begun.
    attempts: usize,
    /// The numbers of the batches of each commit that succeeded.
    commits: Vec<Vec<u64>>,
    is_closed: bool,
}

impl Faulty {
    /// The writer that follows this script.
    pub fn writer(&self) -> Box<dyn StoreWriter> {
        Box::new(FaultyWriter { script: self.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.lock());
        self.shared.1.notify_all();
    }

    /// Has the next attempt that has no other end yet fail with `error`.
    pub fn fail(&self, error: StoreError) {
        self.change(|script| script.failures.push_back(error));
    }

    /// Has every attempt from now on panic.
    pub fn panic(&self) {
        self.change(|script| script.panics = true);
    }

    /// Holds attempts in their middle until [`let_go`](Self::let_go).
    pub fn hold(&self) {
        self.change(|script| script.is_held = true);
    }

    /// Lets the attempt that is held, and those after it, come to their end.
    pub fn let_go(&self) {
        self.change(|script| script.is_held = false);
    }

    /// Waits until so many attempts have begun.
    pub fn wait_for_attempts(&self, attempts: usize) {
        self.wait(|script| script.attempts >= attempts);
    }

    /// Waits until so many commits have succeeded.
    pub fn wait_for_commits(&self, commits: usize) {
        self.wait(|script| script.commits.len() >= commits);
    }

    fn wait(&self, is_there: impl Fn(&Script) -> bool) {
        let waited = self.shared.1.wait_timeout_while(self.lock(), PATIENCE, |script| !is_there(script));
        let (script, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "it never came to that: {script:?}");
    }

    /// The numbers of the batches of each commit that succeeded.
    pub fn commits(&self) -> Vec<Vec<u64>> {
        self.lock().commits.clone()
    }

    /// Attempts begun.
    pub fn attempts(&self) -> usize {
        self.lock().attempts
    }

    /// Whether the writer was closed.
    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }
}

struct FaultyWriter {
    script: Faulty,
}

impl StoreWriter for FaultyWriter {
    fn commit(&mut self, batches: &[Batch]) -> Result<(), StoreError> {
        self.script.change(|script| script.attempts += 1);
        let (_, changed) = &*self.script.shared;
        let held = changed.wait_while(self.script.lock(), |script| script.is_held);
        let mut script = held.unwrap_or_else(PoisonError::into_inner);
        assert!(!script.panics, "as the test wants it");
        if let Some(error) = script.failures.pop_front() {
            return Err(error);
        }
        script.commits.push(batches.iter().map(|batch| batch.number).collect());
        drop(script);
        changed.notify_all();
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        self.script.change(|script| script.is_closed = true);
        Ok(())
    }
}

/// The error of a full disk.
pub fn full_disk() -> StoreError {
    StoreError::Unwritable { file: PathBuf::from("data/world.db"), reason: "the disk is full; make room".to_owned() }
}

/// The error of a damaged file.
pub fn damage() -> StoreError {
    StoreError::Damaged { file: PathBuf::from("data/world.db"), reason: "a page is torn".to_owned() }
}
