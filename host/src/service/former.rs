//! What a service was before it moved to new code, kept for as long as that is on probation: `body` goes back to it when
//! the new code fails. It is let go by itself when the time is over, since each may be as large as a state may be.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle as Runtime;
use tokio::task::AbortHandle;

use super::service_guest::Version;

/// The code that a service ran, and what it was then.
#[derive(Debug)]
pub(super) struct Former {
    pub version: Arc<Version>,
    pub state: Vec<u8>,
    /// The sessions that it had deferred, which its state knows.
    pub deferred: Vec<u64>,
}

/// The place where that is kept. Dropping it lets it go.
#[derive(Debug)]
pub(super) struct Kept {
    former: Arc<Mutex<Option<Arc<Former>>>>,
    end: AbortHandle,
}

impl Kept {
    /// Keeps it for so long.
    pub fn for_a_time(former: Former, time: Duration, runtime: &Runtime) -> Self {
        let former = Arc::new(Mutex::new(Some(Arc::new(former))));
        let kept = Arc::clone(&former);
        let end = runtime.spawn(async move {
            tokio::time::sleep(time).await;
            *lock(&kept) = None;
        });
        Self { former, end: end.abort_handle() }
    }

    /// What is kept, if it still is.
    pub fn get(&self) -> Option<Arc<Former>> {
        lock(&self.former).clone()
    }

    /// Whether it is still kept.
    pub fn is_kept(&self) -> bool {
        lock(&self.former).is_some()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.end.abort();
    }
}

fn lock(former: &Mutex<Option<Arc<Former>>>) -> MutexGuard<'_, Option<Arc<Former>>> {
    // What it guards is whole between any two statements.
    former.lock().unwrap_or_else(PoisonError::into_inner)
}
