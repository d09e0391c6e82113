//! Several things to wait for at a time.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Waits for all of several futures, such as calls to many services, and gives what they came to in their order. Only
/// those are looked at again for which something has come.
///
/// ```no_run
/// # use wheelhouse_guest::prelude::*;
/// # async fn ask(shards: Vec<Handle>) {
/// let counts = async_calls::join_all(shards.iter().map(|shard| async_calls::call(*shard, "count", None))).await;
/// # }
/// ```
pub async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let whole = Arc::new(Mutex::new(Waker::noop().clone()));
    let mut parts: Vec<_> = futures.into_iter().map(|future| Part::new(future, &whole)).collect();
    poll_fn(|context| {
        whole.lock().unwrap_or_else(PoisonError::into_inner).clone_from(context.waker());
        let waiting = parts.iter_mut().filter_map(Part::poll).count();
        if waiting > 0 { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    parts.into_iter().filter_map(|part| part.output).collect()
}

/// One of the futures.
struct Part<F: Future> {
    future: Pin<Box<F>>,
    signal: Arc<Signal>,
    waker: Waker,
    output: Option<F::Output>,
}

/// What a part's waker does: it notes for which part something has come, and wakes the whole.
struct Signal {
    has_come: AtomicBool,
    whole: Arc<Mutex<Waker>>,
}

impl<F: Future> Part<F> {
    fn new(future: F, whole: &Arc<Mutex<Waker>>) -> Self {
        let signal = Arc::new(Signal { has_come: AtomicBool::new(true), whole: whole.clone() });
        Self { future: Box::pin(future), waker: signal.clone().into(), signal, output: None }
    }

    /// Goes on if something has come. None once it has its output.
    fn poll(&mut self) -> Option<()> {
        if self.output.is_some() {
            return None;
        }
        if self.signal.has_come.swap(false, Ordering::Relaxed)
            && let Poll::Ready(output) = self.future.as_mut().poll(&mut Context::from_waker(&self.waker))
        {
            self.output = Some(output);
            return None;
        }
        Some(())
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.has_come.store(true, Ordering::Relaxed);
        let whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner).clone();
        whole.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::pin::pin;

    use super::*;

    #[test]
    fn all_are_waited_for_and_only_those_for_which_something_came_are_looked_at() {
        let wakers = RefCell::new(vec![None; 3]);
        let open = Cell::new([false; 3]);
        let looks = Cell::new([0; 3]);
        let (wakers_of, open_of, looks_of) = (&wakers, &open, &looks);
        let part = |number: usize| {
            poll_fn(move |context: &mut Context| {
                let mut counted = looks_of.get();
                counted[number] += 1;
                looks_of.set(counted);
                wakers_of.borrow_mut()[number] = Some(context.waker().clone());
                if open_of.get()[number] { Poll::Ready(number) } else { Poll::Pending }
            })
        };
        let mut whole = pin!(join_all((0..3).map(part)));
        let mut poll = || whole.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll().is_pending());
        for number in [1, 2, 0] {
            let mut opened = open.get();
            opened[number] = true;
            open.set(opened);
            let waker: Option<Waker> = wakers.borrow_mut()[number].take();
            waker.unwrap().wake();
            let polled = poll();
            assert_eq!(polled.is_ready(), number == 0);
            if let Poll::Ready(outputs) = polled {
                assert_eq!(outputs, [0, 1, 2]);
            }
        }
        assert_eq!(looks.get(), [2, 2, 2]);
    }
}
