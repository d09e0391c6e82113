//! The thread that reads: it owns one reader and runs the jobs that are posted to it, one after another, while the
//! writer writes. Long jobs get a thread and a reader of their own ([`long_jobs`]), so that pages do not wait behind a
//! backup. Whoever posts never waits unless it asks to, and then no longer than it says.

mod long_jobs;

use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use self::long_jobs::LongJobs;
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
    #[error("what was asked of the database has failed, as the log tells")]
    Failed,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The handle on the thread. All clones are of the same reader; when the last is dropped its threads end as by
/// [`stop`](Self::stop).
#[derive(Clone)]
pub struct Reader {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    sender: Sender<Message>,
    /// Nothing once it has been joined.
    thread: Mutex<Option<JoinHandle<()>>>,
    long_jobs: Arc<LongJobs>,
}

type Job = Box<dyn FnOnce(&mut dyn StoreReader) + Send>;

enum Message {
    Job(Job),
    Stop,
}

/// Calls whoever waits for an answer, in every case: where the job is dropped instead of run, too.
struct Answering<R>(Option<OnAnswer<R>>);

/// Called with the answer.
type OnAnswer<R> = Box<dyn FnOnce(Result<R, AskError>) + Send>;

impl<R> Answering<R> {
    fn answer(mut self, answer: Result<R, AskError>) {
        if let Some(on_answer) = self.0.take() {
            on_answer(answer);
        }
    }
}

impl<R> Drop for Answering<R> {
    fn drop(&mut self) {
        if let Some(on_answer) = self.0.take() {
            on_answer(Err(AskError::Closed));
        }
    }
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
        let work = move || run(reader, &receiver);
        let thread = thread::Builder::new().name("wheelhouse-reader".to_owned()).spawn(work);
        let thread = Mutex::new(Some(thread.map_err(StoreError::Thread)?));
        Ok(Self { inner: Arc::new(Inner { store, sender, thread, long_jobs: Arc::default() }) })
    }

    /// Has the thread run a job after those that were posted before. After [`stop`](Self::stop) it is dropped.
    pub fn post(&self, job: impl FnOnce(&mut dyn StoreReader) + Send + 'static) {
        // The thread has ended: the job is dropped, and whoever waits for its answer learns of it by that.
        let _ = self.inner.sender.send(Message::Job(Box::new(job)));
    }

    /// Posts a job and has `on_answer` called with its answer, or with why there is none: once in every case, on the
    /// reader's thread or, where the job is not run any more, on another.
    pub fn post_answering<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut dyn StoreReader) -> Result<R, StoreError> + Send + 'static,
        on_answer: impl FnOnce(Result<R, AskError>) + Send + 'static,
    ) {
        let answering = Answering(Some(Box::new(on_answer)));
        self.post(move |reader| answering.answer(answer_of(job, reader)));
    }

    /// Posts a job and blocks this thread until it has answered, for at most `limit`. A job whose turn comes
    /// later is passed over; one that is late in the middle runs to its end, and nobody hears its answer.
    pub fn ask_within<R: Send + 'static>(
        &self,
        limit: Duration,
        job: impl FnOnce(&mut dyn StoreReader) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, AskError> {
        let (answer, answered) = mpsc::sync_channel(1);
        // Goes with this call.
        let waiting = Arc::new(());
        let is_awaited = Arc::downgrade(&waiting);
        self.post(move |reader| {
            if is_awaited.strong_count() > 0 {
                // Nobody may wait any more.
                let _ = answer.send(answer_of(job, reader));
            }
        });
        answered.recv_timeout(limit).unwrap_or_else(|error| match error {
            RecvTimeoutError::Timeout => Err(AskError::Late { limit }),
            RecvTimeoutError::Disconnected => Err(AskError::Closed),
        })
    }

    /// Posts a job and waits for its answer. A future that is dropped does not take the job back.
    pub async fn ask<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut dyn StoreReader) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, AskError> {
        let (answer, answered) = reply();
        self.post_answering(job, move |answered| answer.send(answered));
        answered.await.unwrap_or(Err(AskError::Closed))
    }

    /// Like [`ask`](Self::ask), on a thread and with a reader of its own: for a job that takes long, like a backup. A
    /// stop interrupts it, and its answer is then whatever it makes of that. What it says itself is told apart from why it
    /// could not be asked.
    pub async fn ask_aside<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut dyn StoreReader) -> R + Send + 'static,
    ) -> Result<R, AskError> {
        let (answer, answered) = reply();
        let store = Arc::clone(&self.inner.store);
        self.inner.long_jobs.start(
            move |long_job| {
                let mut reader = store.reader()?;
                long_job.begin(reader.interrupter())?;
                guarded(|| job(&mut *reader))
            },
            move |answered| answer.send(answered),
        )?;
        answered.await.unwrap_or(Err(AskError::Closed))
    }

    /// Runs what was posted before, interrupts long jobs, ends the threads, and drops what is posted after.
    pub fn stop(&self) {
        self.inner.end();
    }
}

impl Inner {
    fn end(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // It may have been stopped before.
        let _ = self.sender.send(Message::Stop);
        self.long_jobs.end();
        // The last handle may be in the hands of the thread itself.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id())
            && thread.join().is_err()
        {
            tracing::error!("the thread that reads the database has panicked");
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end();
    }
}

fn run(mut reader: Box<dyn StoreReader>, messages: &Receiver<Message>) {
    while let Ok(Message::Job(job)) = messages.recv() {
        // One that was only posted: the others go on.
        let _ = guarded(|| job(&mut *reader));
    }
}

/// What a job says, or why it says nothing.
fn answer_of<R>(
    job: impl FnOnce(&mut dyn StoreReader) -> Result<R, StoreError>,
    reader: &mut dyn StoreReader,
) -> Result<R, AskError> {
    Ok(guarded(|| job(reader))??)
}

/// Has a panic end the job alone.
fn guarded<R>(job: impl FnOnce() -> R) -> Result<R, AskError> {
    panic::catch_unwind(AssertUnwindSafe(job)).map_err(|_| {
        tracing::error!("a job that reads the database has panicked");
        AskError::Failed
    })
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
