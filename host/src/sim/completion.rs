//! How the loop ended, for everybody who wants to know: a value that is set once and can be awaited by many, many
//! times, or waited for without a runtime. The loop sets it as its last act; nothing here stops a loop.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use thiserror::Error;

/// The first error that stopped the loop.
#[derive(Clone, Debug, Error)]
#[error("the loop failed while it ran {doing}: {error:#}")]
pub struct LoopFailure {
    /// What it was doing: `a work item`, `the final work item`, …
    pub doing: &'static str,
    pub error: Arc<anyhow::Error>,
    /// How many queued items were dropped without being run.
    pub abandoned: usize,
}

/// How the loop ended.
pub type Outcome = Result<(), LoopFailure>;

#[derive(Debug, Default)]
struct State {
    outcome: Option<Outcome>,
    wakers: Vec<Waker>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A future of the loop's [`Outcome`]. Clones complete alike, and a completed one completes again.
#[derive(Clone, Debug, Default)]
pub struct Completion {
    shared: Arc<Shared>,
}

impl Completion {
    /// The outcome, if the loop has ended.
    pub fn outcome(&self) -> Option<Outcome> {
        self.shared.lock().outcome.clone()
    }

    /// Blocks this thread until the loop has ended.
    pub fn wait(&self) -> Outcome {
        let mut state = self.shared.lock();
        loop {
            if let Some(outcome) = &state.outcome {
                return outcome.clone();
            }
            state = self.shared.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sets the outcome. The first one stays.
    pub(super) fn set(&self, outcome: Outcome) {
        let mut state = self.shared.lock();
        state.outcome.get_or_insert(outcome);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.shared.ended.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Future for Completion {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let mut state = self.shared.lock();
        if let Some(outcome) = &state.outcome {
            return Poll::Ready(outcome.clone());
        }
        if !state.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}
