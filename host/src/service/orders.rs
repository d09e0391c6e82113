//! What a service is told beside its messages: to show its state, or to move to other code. It carries an order out
//! between two messages. One order at a time; whoever gives one waits for the answer, and may hurry the service.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::sync::{Notify, oneshot};

use super::service_guest::Version;

/// A service that is hurried waits so long and no longer whenever it waits again: one that tries in a loop until it
/// succeeds would else compute until its deadline.
const BREATH: Duration = Duration::from_millis(20);

/// Something that a service is to do between two messages.
#[derive(Debug)]
pub(super) enum Order {
    /// Answer with its state; an error is the reason why it has none.
    Show(oneshot::Sender<Result<Vec<u8>, String>>),
    /// Go on with other code. An error is the reason why it has not.
    Move(Move),
}

/// Where to move.
#[derive(Debug)]
pub(super) struct Move {
    pub to: Arc<Version>,
    /// Whether the code that it runs now is to be kept, for as long as the other has to prove itself.
    pub on_probation: bool,
    pub done: oneshot::Sender<Result<(), String>>,
}

/// The place of one service's order.
#[derive(Debug, Default)]
pub(super) struct Orders {
    state: Mutex<State>,
    /// Whether there is one; looked at before each message.
    is_given: AtomicBool,
    reader: AtomicWaker,
    is_hurried: AtomicBool,
    hurry: Notify,
}

#[derive(Debug, Default)]
struct State {
    given: Option<Order>,
    /// Its `init` is over.
    has_started: bool,
    /// It has ended.
    is_closed: bool,
}

impl Orders {
    /// Gives an order. One that was given before and not taken is dropped, and so is every order to one that has ended.
    pub fn give(&self, order: Order) {
        let mut state = self.lock();
        if state.is_closed {
            return;
        }
        state.given = Some(order);
        self.is_hurried.store(false, Ordering::Release);
        self.is_given.store(true, Ordering::Release);
        drop(state);
        self.reader.wake();
    }

    /// Takes an order back; false where it was taken already.
    pub fn withdraw(&self) -> bool {
        let withdrawn = self.clear(&mut self.lock());
        // It need not come to the end of what it has in hand any more.
        self.reader.wake();
        withdrawn.is_some()
    }

    /// The service has ended: whoever waits for it to carry out an order learns so, and those that come too.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        self.clear(&mut state);
    }

    /// The service has begun to handle messages.
    pub fn note_start(&self) {
        self.lock().has_started = true;
    }

    /// Whether the service has begun to handle messages.
    pub fn has_started(&self) -> bool {
        self.lock().has_started
    }

    /// Whether there is one.
    pub fn is_given(&self) -> bool {
        self.is_given.load(Ordering::Acquire)
    }

    /// Ready when there is one; else the service is woken by the next.
    pub fn poll_given(&self, context: &mut Context<'_>) -> Poll<()> {
        self.reader.register(context.waker());
        if self.is_given() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Takes the order.
    pub fn take(&self) -> Option<Order> {
        if !self.is_given() {
            return None;
        }
        self.clear(&mut self.lock())
    }

    fn clear(&self, state: &mut State) -> Option<Order> {
        self.is_given.store(false, Ordering::Release);
        self.is_hurried.store(false, Ordering::Release);
        state.given.take()
    }

    /// Has what the service waits for come to an end, until it takes its order or that is withdrawn. Nothing where it has
    /// none, and in its `init`, which would fail for that.
    pub fn hurry(&self) {
        let state = self.lock();
        if state.given.is_some() && state.has_started {
            self.is_hurried.store(true, Ordering::Release);
            self.hurry.notify_waiters();
        }
    }

    /// Ends when the service is hurried; a moment later where it is that already.
    pub async fn until_hurried(&self) {
        if self.is_hurried.load(Ordering::Acquire) {
            tokio::time::sleep(BREATH).await;
        }
        loop {
            let hurried = self.hurry.notified();
            if self.is_hurried.load(Ordering::Acquire) {
                return;
            }
            hurried.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What it guards is whole between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
