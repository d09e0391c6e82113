//! The thread that reads: it owns one reader and runs the jobs that are posted to it, one after another, while the
//! writer writes. Long jobs get a thread and a reader of their own, so that pages do not wait behind a backup. Whoever
//! posts never waits unless it asks to, and then no longer than it says.

use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::backend::{Store, StoreReader};
use super::error::StoreError;
use crate::sim::reply::reply;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("the database did not answer within {} ms; try again", limit.as_millis())]
    Late { limit: Duration },
    #[error("the database was closed before it answered")]
    Closed,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The handle on the thread. All clones are of the same reader; the thread ends with the last.
#[derive(Clone)]
pub struct Reader {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    sender: Sender<Message>,
    threads: Mutex<Threads>,
}

struct Threads {
    is_stopping: bool,
    reader: Option<JoinHandle<()>>,
    /// Those of long jobs, some of which may have ended.
    aside: Vec<JoinHandle<()>>,
}

type Job = Box<dyn FnOnce(&mut dyn StoreReader) + Send>;

enum Message {
    Job(Job),
    Stop,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Reader").finish_non_exhaustive()
    }
}

impl Reader {
    /// Starts the thread with a reader of `store`.
    pub fn start(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let reader = store.reader()?;
        let (sender, receiver) = mpsc::channel();
        let thread = spawn("wheelhouse-reader", move || run(reader, &receiver))?;
        let threads = Mutex::new(Threads { is_stopping: false, reader: Some(thread), aside: Vec::new() });
        Ok(Self { inner: Arc::new(Inner { store, sender, threads }) })
    }

    /// Has the thread run a job after those that were posted before. After [`stop`](Self::stop) it is dropped.
    pub fn post(&self, job: impl FnOnce(&mut dyn StoreReader) + Send + 'static) {
        // The thread has ended: the job is dropped, and whoever waits for its answer learns of it by that.
        let _ = self.inner.sender.send(Message::Job(Box::new(job)));
    }

    /// Posts a job and blocks this thread until it has answered, for at most `limit`. A job that is late runs all the
    /// same, and nobody hears its answer.
    pub fn ask_within<R: Send + 'static>(
        &self,
        limit: Duration,
        job: impl FnOnce(&mut dyn StoreReader) -> R + Send + 'static,
    ) -> Result<R, AskError> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.post(move |reader| {
            // Nobody waits any more.
            let _ = answer.send(job(reader));
        });
        answered.recv_timeout(limit).map_err(|error| match error {
            RecvTimeoutError::Timeout => AskError::Late { limit },
            RecvTimeoutError::Disconnected => AskError::Closed,
        })
    }

    /// Posts a job and waits for its answer. A future that is dropped does not take the job back.
    pub async fn ask<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut dyn StoreReader) -> R + Send + 'static,
    ) -> Result<R, AskError> {
        let (answer, answered) = reply();
        self.post(move |reader| answer.send(job(reader)));
        answered.await.map_err(|_| AskError::Closed)
    }

    /// Like [`ask`](Self::ask), on a thread and with a reader of its own: for a job that takes long, like a backup.
    pub async fn ask_aside<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut dyn StoreReader) -> R + Send + 'static,
    ) -> Result<R, AskError> {
        let (answer, answered) = reply();
        let store = Arc::clone(&self.inner.store);
        self.start_aside(move || {
            answer.send(store.reader().map(|mut reader| job(&mut *reader)));
        })?;
        Ok(answered.await.map_err(|_| AskError::Closed)??)
    }

    fn start_aside(&self, work: impl FnOnce() + Send + 'static) -> Result<(), AskError> {
        let mut threads = self.inner.threads();
        if threads.is_stopping {
            return Err(AskError::Closed);
        }
        threads.aside.retain(|thread| !thread.is_finished());
        threads.aside.push(spawn("wheelhouse-aside", work)?);
        Ok(())
    }

    /// Runs what was posted before, ends the threads, long jobs included, and drops what is posted after.
    pub fn stop(&self) {
        let (reader, aside) = {
            let mut threads = self.inner.threads();
            threads.is_stopping = true;
            (threads.reader.take(), std::mem::take(&mut threads.aside))
        };
        // It may have been stopped before.
        let _ = self.inner.sender.send(Message::Stop);
        for thread in reader.into_iter().chain(aside) {
            if thread.join().is_err() {
                tracing::error!("a thread that reads the database has panicked");
            }
        }
    }
}

impl Inner {
    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn run(mut reader: Box<dyn StoreReader>, messages: &Receiver<Message>) {
    while let Ok(Message::Job(job)) = messages.recv() {
        // Whoever posted it learns of a panic by the answer that does not come; the others go on.
        if panic::catch_unwind(AssertUnwindSafe(|| job(&mut *reader))).is_err() {
            tracing::error!("a job that reads the database has panicked");
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map_err(StoreError::Thread)
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
