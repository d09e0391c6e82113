//! What a service is told beside its messages: to show its state, or to move to other code. It carries an order out
//! between two messages. One order at a time; whoever gives one waits for the answer, and may hurry the service.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use tokio::sync::{Notify, oneshot};

use super::service_guest::Version;

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
    given: Mutex<Option<Order>>,
    /// Whether there is one; looked at before each message.
    is_given: AtomicBool,
    reader: AtomicWaker,
    is_hurried: AtomicBool,
    hurry: Notify,
}

impl Orders {
    /// Gives an order. One that was given before and not taken is dropped.
    pub fn give(&self, order: Order) {
        *self.lock() = Some(order);
        self.is_given.store(true, Ordering::Release);
        self.reader.wake();
    }

    /// Takes an order back that has not been taken yet.
    pub fn withdraw(&self) {
        self.is_given.store(false, Ordering::Release);
        *self.lock() = None;
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
        self.is_given.store(false, Ordering::Release);
        self.lock().take()
    }

    /// Has what the service waits for come to an end, until it is [calmed](Self::calm).
    pub fn hurry(&self) {
        self.is_hurried.store(true, Ordering::Release);
        self.hurry.notify_waiters();
    }

    /// What it waits for may take its time again.
    pub fn calm(&self) {
        self.is_hurried.store(false, Ordering::Release);
    }

    /// Ends when the service is hurried.
    pub async fn until_hurried(&self) {
        loop {
            let hurried = self.hurry.notified();
            if self.is_hurried.load(Ordering::Acquire) {
                return;
            }
            hurried.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Order>> {
        // What it guards is whole between any two statements.
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
