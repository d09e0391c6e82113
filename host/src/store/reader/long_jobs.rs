//! Long jobs, each on a thread of its own, and their early end: a reader that stops interrupts them and waits until the
//! last of them has answered. Started by the [`Reader`](super::Reader); knows nothing of what they read.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use super::AskError;
use crate::store::backend::Interrupter;
use crate::store::error::StoreError;

/// A job that is between two steps does not notice that it was interrupted; so it is interrupted again.
const INTERRUPT_AGAIN: Duration = Duration::from_millis(5);

/// All long jobs of a reader.
#[derive(Default)]
pub(super) struct LongJobs {
    state: Mutex<State>,
    one_ended: Condvar,
}

#[derive(Default)]
struct State {
    is_stopping: bool,
    /// The number of the last job.
    last: u64,
    running: BTreeMap<u64, Running>,
}

#[derive(Default)]
struct Running {
    thread: Option<ThreadId>,
    interrupter: Option<Interrupter>,
}

/// One of them, as its thread sees it. It has ended when this is dropped.
pub(super) struct LongJob {
    jobs: Arc<LongJobs>,
    number: u64,
}

impl LongJobs {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a thread that does the work and hands its answer on.
    pub fn start<R>(
        self: &Arc<Self>,
        work: impl FnOnce(&LongJob) -> Result<R, AskError> + Send + 'static,
        on_answer: impl FnOnce(Result<R, AskError>) + Send + 'static,
    ) -> Result<(), AskError> {
        let number = {
            let mut state = self.lock();
            if state.is_stopping {
                return Err(AskError::Closed);
            }
            state.last += 1;
            let number = state.last;
            state.running.insert(number, Running::default());
            number
        };
        let long_job = LongJob { jobs: Arc::clone(self), number };
        let run = move || on_answer(work(&long_job));
        thread::Builder::new().name("wheelhouse-aside".to_owned()).spawn(run).map_err(StoreError::Thread)?;
        Ok(())
    }

    /// Interrupts all until they have ended, but for one that itself calls this. None begins afterwards.
    pub fn end(&self) {
        let own = Some(thread::current().id());
        let mut state = self.lock();
        state.is_stopping = true;
        while state.running.values().any(|running| running.thread != own) {
            state.running.values().filter_map(|running| running.interrupter.as_ref()).for_each(|interrupt| interrupt());
            let waited = self.one_ended.wait_timeout(state, INTERRUPT_AGAIN);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl LongJob {
    /// Called on the job's thread when all is ready. An error says that it is too late.
    pub fn begin(&self, interrupter: Option<Interrupter>) -> Result<(), AskError> {
        let mut state = self.jobs.lock();
        if state.is_stopping {
            return Err(AskError::Closed);
        }
        state.running.insert(self.number, Running { thread: Some(thread::current().id()), interrupter });
        Ok(())
    }
}

impl Drop for LongJob {
    fn drop(&mut self) {
        self.jobs.lock().running.remove(&self.number);
        self.jobs.one_ended.notify_all();
    }
}
