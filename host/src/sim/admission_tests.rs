//! The sentences of the admission's contract that need no loop.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::admission::*;
use crate::clock::ManualClock;

/// A queue, and the loop's end of it.
fn queue(capacity: usize) -> (Arc<Admission<u32>>, Intake<u32>) {
    let queue = Arc::new(Admission::new(capacity, ManualClock::shared()));
    let intake = queue.intake();
    (queue, intake)
}

fn drain(intake: &mut Intake<u32>) -> Vec<u32> {
    let mut items = Vec::new();
    while let Take::Item(taken) = intake.take() {
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
    let (queue, mut intake) = queue(2);
    assert!(queue.try_post(1).is_ok());
    assert!(queue.try_post(2).is_ok());
    assert!(matches!(queue.try_post(3), Err(Rejected::Full(3))));
    assert_eq!(drain(&mut intake), [1, 2]);
}

#[test]
fn the_item_that_was_taken_makes_room() {
    let (queue, mut intake) = queue(1);
    assert!(queue.try_post(1).is_ok());
    assert!(matches!(intake.take(), Take::Item(Taken { item: 1, .. })));
    assert!(queue.try_post(2).is_ok());
}

#[test]
fn items_that_the_loop_fetched_but_did_not_begin_count_as_waiting() {
    let (queue, mut intake) = queue(2);
    assert!(queue.try_post(1).is_ok());
    assert!(queue.try_post(2).is_ok());
    assert!(matches!(intake.take(), Take::Item(Taken { item: 1, .. })));
    assert!(queue.try_post(3).is_ok());
    assert!(matches!(queue.try_post(4), Err(Rejected::Full(4))));
    assert_eq!(queue.gauges().depth.load(Ordering::Relaxed), 2);
    assert_eq!(drain(&mut intake), [2, 3]);
}

#[test]
fn the_age_of_the_oldest_item_follows_the_queue() {
    let clock = ManualClock::shared();
    let queue = Arc::new(Admission::new(8, clock.clone()));
    let mut intake = queue.intake();
    let oldest = || queue.gauges().oldest_ns.load(Ordering::Relaxed);
    for item in 1..=3 {
        clock.advance(std::time::Duration::from_nanos(10));
        assert!(queue.try_post(item).is_ok());
    }
    assert_eq!(oldest(), 10);
    intake.take();
    assert_eq!(oldest(), 20);
    assert!(queue.try_post(4).is_ok());
    intake.take();
    intake.take();
    assert_eq!(oldest(), 30);
    intake.take();
    assert_eq!(oldest(), NO_ITEM);
    clock.advance(std::time::Duration::from_nanos(10));
    assert!(queue.try_post(5).is_ok());
    assert_eq!(oldest(), 40);
}

#[test]
fn a_closed_queue_hands_the_item_back_and_gives_out_what_it_has() {
    let (queue, mut intake) = queue(2);
    assert!(queue.try_post(1).is_ok());
    assert!(queue.close(None).is_ok());
    assert!(matches!(queue.try_post(2), Err(Rejected::NotRunning(2))));
    assert!(matches!(intake.take(), Take::Item(_)));
    assert!(matches!(intake.take(), Take::Drained));
}

#[test]
fn a_post_with_room_completes_at_once_and_before_it_runs() {
    let (queue, mut intake) = queue(1);
    assert!(matches!(poll(&mut queue.post(1)), Poll::Ready(Ok(()))));
    assert_eq!(drain(&mut intake), [1]);
}

#[test]
fn a_post_without_room_completes_when_an_item_is_taken() {
    let (queue, mut intake) = queue(1);
    assert!(queue.try_post(1).is_ok());
    let mut post = queue.post(2);
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    assert!(Pin::new(&mut post).poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(matches!(intake.take(), Take::Item(Taken { item: 1, .. })));
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    // It was admitted already, and nobody can have its place.
    assert!(matches!(queue.try_post(3), Err(Rejected::Full(3))));
    assert!(matches!(poll(&mut post), Poll::Ready(Ok(()))));
    assert_eq!(drain(&mut intake), [2]);
}

#[test]
fn those_who_wait_are_admitted_in_their_order() {
    let (queue, mut intake) = queue(1);
    assert!(queue.try_post(0).is_ok());
    let mut posts: Vec<_> = (1..=3).map(|item| queue.post(item)).collect();
    assert!(posts.iter_mut().all(|post| poll(post).is_pending()));
    assert_eq!(drain(&mut intake), [0, 1, 2, 3]);
}

#[test]
fn a_post_that_is_dropped_before_admission_is_withdrawn() {
    let (queue, mut intake) = queue(1);
    assert!(queue.try_post(1).is_ok());
    let mut post = queue.post(2);
    assert!(poll(&mut post).is_pending());
    drop(post);
    drop(queue.post(3));
    assert_eq!(drain(&mut intake), [1]);
}

#[test]
fn a_post_that_is_dropped_after_admission_stays() {
    let (queue, mut intake) = queue(1);
    assert!(queue.try_post(1).is_ok());
    let mut post = queue.post(2);
    assert!(poll(&mut post).is_pending());
    assert!(matches!(intake.take(), Take::Item(Taken { item: 1, .. })));
    drop(post);
    assert_eq!(drain(&mut intake), [2]);
}

#[test]
fn those_who_wait_get_their_items_back_when_the_queue_closes() {
    let (queue, mut intake) = queue(1);
    assert!(queue.try_post(1).is_ok());
    let mut post = queue.post(2);
    assert!(poll(&mut post).is_pending());
    assert!(queue.close(None).is_ok());
    assert_eq!(drain(&mut intake), [1]);
    assert!(matches!(poll(&mut post), Poll::Ready(Err(PostError::NotRunning(2)))));
}

#[test]
fn waiting_is_no_rejection() {
    let (queue, mut intake) = queue(1);
    assert!(queue.try_post(1).is_ok());
    let mut post = queue.post(2);
    assert!(poll(&mut post).is_pending());
    drain(&mut intake);
    let gauges = queue.gauges();
    assert_eq!((gauges.posts.accepted.load(Ordering::Relaxed), gauges.posts.rejected.load(Ordering::Relaxed)), (2, 0));
}

#[test]
fn the_queue_closes_once_and_keeps_the_first_final_item() {
    let (queue, _intake) = queue(1);
    assert!(queue.close(Some(7)).is_ok());
    assert!(matches!(queue.close(Some(8)), Err(Some(8))));
    assert_eq!(queue.take_final(), Some(7));
    assert_eq!(queue.take_final(), None);
}

#[test]
fn abandoning_counts_what_is_dropped() {
    let (queue, mut intake) = queue(4);
    assert!(queue.try_post(1).is_ok());
    assert!(queue.try_post(2).is_ok());
    assert!(queue.close(Some(3)).is_ok());
    assert_eq!(intake.abandon(), 3);
    assert!(matches!(intake.take(), Take::Drained));
    assert_eq!(queue.gauges().depth.load(Ordering::Relaxed), 0);
}
