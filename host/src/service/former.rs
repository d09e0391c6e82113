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
pub(super) struct Kept<F = Former> {
    former: Arc<Mutex<Option<Arc<F>>>>,
    end: AbortHandle,
}

impl<F: Send + Sync + 'static> Kept<F> {
    /// Keeps it for so long.
    pub fn for_a_time(former: F, time: Duration, runtime: &Runtime) -> Self {
        let former = Arc::new(Mutex::new(Some(Arc::new(former))));
        let kept = Arc::clone(&former);
        let end = runtime.spawn(async move {
            tokio::time::sleep(time).await;
            *lock(&kept) = None;
        });
        Self { former, end: end.abort_handle() }
    }

    /// What is kept, if it still is.
    pub fn get(&self) -> Option<Arc<F>> {
        lock(&self.former).clone()
    }

    /// Whether it is still kept.
    pub fn is_kept(&self) -> bool {
        lock(&self.former).is_some()
    }
}

impl<F> Drop for Kept<F> {
    fn drop(&mut self) {
        self.end.abort();
    }
}

fn lock<F>(former: &Mutex<Option<Arc<F>>>) -> MutexGuard<'_, Option<Arc<F>>> {
    // What it guards is whole between any two statements.
    former.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn it_is_let_go_when_its_time_is_over_though_nobody_looks() {
        let kept = Kept::for_a_time("state", TIME, &Runtime::current());
        let former = Arc::downgrade(&kept.get().unwrap());
        tokio::time::sleep(TIME - Duration::from_millis(10)).await;
        assert!(kept.is_kept());
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!kept.is_kept() && former.upgrade().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_let_go_with_its_service() {
        let kept = Kept::for_a_time("state", TIME, &Runtime::current());
        let former = Arc::downgrade(&kept.get().unwrap());
        drop(kept);
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(former.upgrade().is_none());
    }
}
