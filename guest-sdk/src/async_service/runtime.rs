//! How a handler of an async service begins: it is polled once before anything is set up for it to wait with. Most
//! handlers never wait, and then that was all.
//!
//! The generated exports call this in place of `wit-bindgen`'s own runtime, which for every message makes a task with
//! a waker, a set of waitables and a place in the host's books. What waits must not begin to wait in that first poll:
//! `set_up` holds it back until the second, which follows at once.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

pub use wit_bindgen::rt::*;

std::thread_local! {
    /// Whether the first poll of a handler is under way.
    static FIRST_POLL: Cell<bool> = const { Cell::new(false) };
}

/// Returns when a task is set up to wait with. Everything that waits for the host awaits this first.
pub(crate) async fn set_up() {
    poll_fn(|context| {
        if FIRST_POLL.get() {
            // Futures that poll what they are made of only when it was woken must come back to it.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
}

/// `wit-bindgen`'s part for async exports, with another beginning.
pub mod async_support {
    use std::pin::Pin;
    use std::task::{Context, Waker};

    pub use wit_bindgen::rt::async_support::*;

    use super::FIRST_POLL;

    /// What the host reads as: this call has returned, there is nothing to wait for.
    const EXIT: i32 = 0;

    /// Runs an export as far as it goes without waiting, and the rest as a task.
    pub fn start_task(task: impl Future<Output = ()> + 'static) -> i32 {
        let mut task = Box::pin(task);
        if is_ready_at_once(task.as_mut()) { EXIT } else { wit_bindgen::rt::async_support::start_task(task) }
    }

    pub(super) fn is_ready_at_once(task: Pin<&mut impl Future<Output = ()>>) -> bool {
        FIRST_POLL.set(true);
        let is_ready = task.poll(&mut Context::from_waker(Waker::noop())).is_ready();
        FIRST_POLL.set(false);
        is_ready
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::async_support::is_ready_at_once;
    use super::*;

    #[test]
    fn a_handler_that_does_not_wait_is_done_with_the_first_poll() {
        assert!(is_ready_at_once(pin!(async {})));
    }

    #[test]
    fn what_waits_is_held_back_to_the_second_poll() {
        let reached = Cell::new(0);
        let mut handler = pin!(async {
            reached.set(1);
            set_up().await;
            reached.set(2);
        });
        assert!(!is_ready_at_once(handler.as_mut()));
        assert_eq!(reached.get(), 1);
        assert!(handler.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
        assert_eq!(reached.get(), 2);
    }
}
