//! How everybody else reaches the loop: a handle that can be cloned and sent anywhere, to post items, to stop the loop
//! and to learn how it ended. It never runs anything itself.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::thread::JoinHandle;

use thiserror::Error;

use super::admission::{Admission, Post, PostError, Rejected};
use super::completion::{Completion, LoopFailure, Outcome};
use super::metrics::{SimMetrics, SimSnapshot};
use super::reply::{Reply, ReplyLost, ReplyReceiver, reply};
use super::wait::block_on;
use crate::clock::SharedClock;

/// Why a stop did not go as asked.
#[derive(Debug, Error)]
pub enum StopError<T> {
    #[error("the loop thread cannot wait for its own end; stop it from another thread")]
    OnLoopThread(Option<T>),
    #[error("the loop was stopped already, so there is no last item to come")]
    AlreadyStopped(T),
    #[error(transparent)]
    Failed(#[from] LoopFailure),
}

/// Why a post with a reply brought none.
#[derive(Debug, Error)]
pub enum AskError<T> {
    #[error(transparent)]
    NotPosted(#[from] PostError<T>),
    #[error(transparent)]
    Lost(#[from] ReplyLost),
}

/// What the handles and the loop share.
pub(super) struct Shared<I> {
    pub admission: Arc<Admission<I>>,
    pub metrics: SimMetrics,
    pub completion: Completion,
    pub clock: SharedClock,
    /// The thread that is running a turn, by its [`thread_number`]; zero between turns that a test drives.
    pub loop_thread: AtomicU64,
    /// Taken by the first `stop`.
    pub thread: Mutex<Option<JoinHandle<()>>>,
}

/// A handle to a loop whose items are `I`.
pub struct LoopHandle<I> {
    shared: Arc<Shared<I>>,
}

impl<I> Clone for LoopHandle<I> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

/// A number of the current thread, above zero.
pub(super) fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}

impl<I: Send + 'static> LoopHandle<I> {
    pub(super) fn new(shared: Arc<Shared<I>>) -> Self {
        Self { shared }
    }

    /// Queues an item if there is room now. It is never run here.
    pub fn try_post(&self, item: I) -> Result<(), Rejected<I>> {
        self.shared.admission.try_post(item)
    }

    /// Waits for room and completes when the item is queued, not when it has run. Dropped before that, the future
    /// withdraws the item; after that, the item stays. On the loop thread it is an error.
    pub fn post(&self, item: I) -> HandlePost<I> {
        if self.is_on_loop_thread() {
            return HandlePost { state: HandlePostState::Refused(item) };
        }
        HandlePost { state: HandlePostState::Posting(self.shared.admission.post(item)) }
    }

    /// [`Self::post`] for callers without a runtime: blocks this thread.
    pub fn post_blocking(&self, item: I) -> Result<(), PostError<I>> {
        block_on(self.post(item))
    }

    /// Posts the item that `build` makes around a [`Reply`], waits for room as [`Self::post`] does, then for the reply.
    /// An item that is dropped unanswered, because the loop failed, gives [`AskError::Lost`].
    pub fn post_with_reply<R>(&self, build: impl FnOnce(Reply<R>) -> I) -> Ask<I, R> {
        let (reply, receiver) = reply();
        Ask { post: Some(self.post(build(reply))), receiver }
    }

    /// Like [`Self::post_with_reply`], but refused at once if there is no room.
    pub fn try_post_with_reply<R>(&self, build: impl FnOnce(Reply<R>) -> I) -> Result<ReplyReceiver<R>, Rejected<I>> {
        let (reply, receiver) = reply();
        self.try_post(build(reply))?;
        Ok(receiver)
    }

    /// Whether the caller runs on the loop thread.
    pub fn is_on_loop_thread(&self) -> bool {
        self.shared.loop_thread.load(Ordering::Relaxed) == thread_number()
    }

    /// How the loop ended, once it has.
    pub fn completion(&self) -> Completion {
        self.shared.completion.clone()
    }

    /// The loop's figures now. Takes no lock.
    pub fn metrics(&self) -> SimSnapshot {
        self.shared.metrics.snapshot(self.shared.admission.gauges(), self.shared.clock.now())
    }

    /// Whether the loop takes items.
    pub fn is_running(&self) -> bool {
        !self.shared.admission.is_closed()
    }

    /// Has the loop take a turn though no item has come: a clock was moved by hand, or something that the simulation waits
    /// for elsewhere has happened.
    pub fn nudge(&self) {
        self.shared.admission.nudge();
    }

    /// Closes the queue and the timers, lets the loop finish what it accepted, and waits for its thread to end. It may
    /// be called again, and after a failure, which it then returns.
    pub fn stop(&self) -> Result<(), StopError<I>> {
        self.refuse_on_loop_thread(None)?;
        self.begin_stop();
        Ok(self.join()?)
    }

    /// [`Self::stop`], with one last item after everything else. A loop that has failed does not run it.
    pub fn stop_with(&self, final_item: I) -> Result<(), StopError<I>> {
        let final_item = self.refuse_on_loop_thread(Some(final_item))?;
        let refused = self.shared.admission.close(final_item);
        let outcome = self.join();
        match refused {
            Err(Some(item)) if outcome.is_ok() => Err(StopError::AlreadyStopped(item)),
            _ => Ok(outcome?),
        }
    }

    fn refuse_on_loop_thread(&self, final_item: Option<I>) -> Result<Option<I>, StopError<I>> {
        if self.is_on_loop_thread() { Err(StopError::OnLoopThread(final_item)) } else { Ok(final_item) }
    }

    /// Has the loop stop as [`Self::stop`] does, without waiting. The loop thread may call it.
    pub fn begin_stop(&self) {
        // It may be closed already, and then it is stopping.
        let _ = self.shared.admission.close(None);
    }

    /// [`Self::stop_with`] without waiting. Hands the item back if the loop was stopping already.
    pub fn begin_stop_with(&self, final_item: I) -> Result<(), I> {
        match self.shared.admission.close(Some(final_item)) {
            Err(Some(final_item)) => Err(final_item),
            _ => Ok(()),
        }
    }

    fn join(&self) -> Outcome {
        let outcome = self.shared.completion.wait();
        let thread = self.shared.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // The thread catches every panic and reports it through the completion.
            let _ = thread.join();
        }
        outcome
    }
}

enum HandlePostState<I> {
    Posting(Post<I>),
    Refused(I),
    Done,
}

/// See [`LoopHandle::post`].
#[must_use = "an item is posted when this is awaited"]
pub struct HandlePost<I> {
    state: HandlePostState<I>,
}

// The item is never pinned: it moves from here to the queue.
impl<I> Unpin for HandlePost<I> {}

impl<I> Future for HandlePost<I> {
    type Output = Result<(), PostError<I>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let HandlePostState::Posting(post) = &mut self.state {
            return Pin::new(post).poll(cx);
        }
        match std::mem::replace(&mut self.state, HandlePostState::Done) {
            HandlePostState::Refused(item) => Poll::Ready(Err(PostError::OnLoopThread(item))),
            _ => panic!("a post was polled after it completed"),
        }
    }
}

/// See [`LoopHandle::post_with_reply`].
#[must_use = "an item is posted when this is awaited"]
pub struct Ask<I, R> {
    /// Until the item is queued.
    post: Option<HandlePost<I>>,
    receiver: ReplyReceiver<R>,
}

impl<I, R> Future for Ask<I, R> {
    type Output = Result<R, AskError<I>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(post) = &mut self.post {
            ready!(Pin::new(post).poll(cx))?;
            self.post = None;
        }
        let reply = ready!(Pin::new(&mut self.receiver).poll(cx));
        Poll::Ready(reply.map_err(AskError::from))
    }
}
