//! The way back to a poster that wants the result of its item: a [`Reply`] travels inside the item, and whoever runs
//! the item answers it. It never leaves a poster waiting: a reply that is dropped unanswered says so.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use thiserror::Error;

use super::sync::{Arc, Mutex, PoisonError};

/// The item was dropped before it answered: the loop failed, or whoever ran it chose not to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the work item was dropped before it answered")]
pub struct ReplyLost;

enum State<R> {
    Open(Option<Waker>),
    Ended(Result<R, ReplyLost>),
    Fetched,
}

type Shared<R> = Arc<Mutex<State<R>>>;

/// The answering end; it travels inside the item.
#[derive(Debug)]
pub struct Reply<R> {
    /// Nothing once it has answered.
    shared: Option<Shared<R>>,
}

/// The asking end: a future of the answer.
#[derive(Debug)]
pub struct ReplyReceiver<R> {
    shared: Shared<R>,
}

impl<R> std::fmt::Debug for State<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Open(_) => "Open",
            Self::Ended(_) => "Ended",
            Self::Fetched => "Fetched",
        })
    }
}

/// Both ends of a reply.
pub fn reply<R>() -> (Reply<R>, ReplyReceiver<R>) {
    let shared = Arc::new(Mutex::new(State::Open(None)));
    (Reply { shared: Some(Arc::clone(&shared)) }, ReplyReceiver { shared })
}

impl<R> Reply<R> {
    /// Answers.
    pub fn send(mut self, result: R) {
        self.end(Ok(result));
    }

    fn end(&mut self, result: Result<R, ReplyLost>) {
        let Some(shared) = self.shared.take() else { return };
        let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *state, State::Ended(result));
        drop(state);
        if let State::Open(Some(waker)) = before {
            waker.wake();
        }
    }
}

impl<R> Drop for Reply<R> {
    fn drop(&mut self) {
        self.end(Err(ReplyLost));
    }
}

impl<R> Future for ReplyReceiver<R> {
    type Output = Result<R, ReplyLost>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Fetched) {
            State::Open(old) => {
                *state = State::Open(Some(cx.waker().clone()));
                drop(state);
                // Outside the lock, because a waker may own the last of a task that holds the other end.
                drop(old);
                Poll::Pending
            }
            State::Ended(result) => Poll::Ready(result),
            State::Fetched => panic!("a reply was polled after it completed"),
        }
    }
}
