//! The sentences of the admission's contract that need no loop.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::admission::*;
use crate::clock::ManualClock;

fn queue(capacity: usize) -> Arc<Admission<u32>> {
    Arc::new(Admission::new(capacity, ManualClock::shared()))
}

fn drain(queue: &Admission<u32>) -> Vec<u32> {
    let mut items = Vec::new();
    while let Take::Item(taken) = queue.take() {
        items.push(taken.item);
    }
    items
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_full_queue_hands_the_item_back() {
    let queue = queue(2);
    assert!(queue.try_post(1).is_ok());
    assert!(queue.try_post(2).is_ok());
    assert!(matches!(queue.try_post(3), Err(Rejected::Full(3))));
    assert_eq!(drain(&queue), [1, 2]);
}

#[test]
fn the_item_that_was_taken_makes_room() {
    let queue = queue(1);
    assert!(queue.try_post(1).is_ok());
    assert!(matches!(queue.take(), Take::Item(Taken { item: 1, .. })));
    assert!(queue.try_post(2).is_ok());
}

#[test]
fn a_closed_queue_hands_the_item_back_and_gives_out_what_it_has() {
    let queue = queue(2);
    assert!(queue.try_post(1).is_ok());
    assert!(queue.close(None).is_ok());
    assert!(matches!(queue.try_post(2), Err(Rejected::NotRunning(2))));
    assert!(matches!(queue.take(), Take::Item(_)));
    assert!(matches!(queue.take(), Take::Drained));
}

#[test]
fn a_post_with_room_completes_at_once_and_before_it_runs() {
    let queue = queue(1);
    assert!(matches!(poll(&mut queue.post(1)), Poll::Ready(Ok(()))));
    assert_eq!(drain(&queue), [1]);
}

#[test]
fn a_post_without_room_completes_when_an_item_is_taken() {
    let queue = queue(1);
    assert!(queue.try_post(1).is_ok());
    let mut post = queue.post(2);
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    assert!(Pin::new(&mut post).poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(matches!(queue.take(), Take::Item(Taken { item: 1, .. })));
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    // It was admitted already, and nobody can have its place.
    assert!(matches!(queue.try_post(3), Err(Rejected::Full(3))));
    assert!(matches!(poll(&mut post), Poll::Ready(Ok(()))));
    assert_eq!(drain(&queue), [2]);
}

#[test]
fn those_who_wait_are_admitted_in_their_order() {
    let queue = queue(1);
    assert!(queue.try_post(0).is_ok());
    let mut posts: Vec<_> = (1..=3).map(|item| queue.post(item)).collect();
    assert!(posts.iter_mut().all(|post| poll(post).is_pending()));
    assert_eq!(drain(&queue), [0, 1, 2, 3]);
}

#[test]
fn a_post_that_is_dropped_before_admission_is_withdrawn() {
    let queue = queue(1);
    assert!(queue.try_post(1).is_ok());
    let mut post = queue.post(2);
    assert!(poll(&mut post).is_pending());
    drop(post);
    drop(queue.post(3));
    assert_eq!(drain(&queue), [1]);
}

#[test]
fn a_post_that_is_dropped_after_admission_stays() {
    let queue = queue(1);
    assert!(queue.try_post(1).is_ok());
    let mut post = queue.post(2);
    assert!(poll(&mut post).is_pending());
    assert!(matches!(queue.take(), Take::Item(Taken { item: 1, .. })));
    drop(post);
    assert_eq!(drain(&queue), [2]);
}

#[test]
fn those_who_wait_get_their_items_back_when_the_queue_closes() {
    let queue = queue(1);
    assert!(queue.try_post(1).is_ok());
    let mut post = queue.post(2);
    assert!(poll(&mut post).is_pending());
    assert!(queue.close(None).is_ok());
    assert_eq!(drain(&queue), [1]);
    assert!(matches!(poll(&mut post), Poll::Ready(Err(PostError::NotRunning(2)))));
}

#[test]
fn waiting_is_no_rejection() {
    let queue = queue(1);
    assert!(queue.try_post(1).is_ok());
    let mut post = queue.post(2);
    assert!(poll(&mut post).is_pending());
    drain(&queue);
    let gauges = queue.gauges();
    assert_eq!((gauges.accepted.load(Ordering::Relaxed), gauges.rejected.load(Ordering::Relaxed)), (2, 0));
}

#[test]
fn the_queue_closes_once_and_keeps_the_first_final_item() {
    let queue = queue(1);
    assert!(queue.close(Some(7)).is_ok());
    assert!(matches!(queue.close(Some(8)), Err(Some(8))));
    assert_eq!(queue.take_final(), Some(7));
    assert_eq!(queue.take_final(), None);
}

#[test]
fn abandoning_counts_what_is_dropped() {
    let queue = queue(4);
    assert!(queue.try_post(1).is_ok());
    assert!(queue.try_post(2).is_ok());
    assert!(queue.close(Some(3)).is_ok());
    assert_eq!(queue.abandon(), 3);
    assert!(matches!(queue.take(), Take::Drained));
    assert_eq!(queue.gauges().depth.load(Ordering::Relaxed), 0);
}
