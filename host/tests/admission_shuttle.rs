//! The admission queue and the replies under a model checker: the very files of the host, compiled against `shuttle`'s
//! primitives, run in thousands of interleavings. No accepted item is lost, none is run twice, nobody waits for ever
//! (shuttle reports a deadlock as a failure).

#[allow(dead_code)]
#[path = "../src/sim/admission.rs"]
mod admission;
#[allow(dead_code)]
#[path = "../src/sim/reply.rs"]
mod reply;

/// What `admission.rs` reads the time from.
mod clock {
    pub use wheelhouse::clock::SharedClock;
}

/// What `src/sim/sync.rs` is to the host.
mod sync {
    pub use shuttle::sync::atomic::{AtomicU64, Ordering};
    pub use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub use std::sync::PoisonError;
}

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

use admission::{Admission, Post, PostError, Rejected, Take};
use shuttle::thread;
use sync::{Arc, Mutex};
use wheelhouse::clock::ManualClock;

const SCHEDULES: usize = 3_000;

fn queue(capacity: usize) -> Arc<Admission<u32>> {
    Arc::new(Admission::new(capacity, ManualClock::shared()))
}

/// What the loop does: takes until the queue is drained, sleeping in between. Returns what it ran, the final item last.
fn run_loop(queue: &Arc<Admission<u32>>) -> Vec<u32> {
    let mut ran = Vec::new();
    let mut intake = queue.intake();
    loop {
        match intake.take() {
            Take::Item(taken) => ran.push(taken.item),
            Take::Empty => intake.sleep(None, true),
            Take::Drained => break,
        }
    }
    ran.extend(queue.take_final());
    ran
}

fn assert_same_items(mut ran: Vec<u32>, accepted: &Mutex<Vec<u32>>) {
    let mut accepted = accepted.lock().unwrap().clone();
    let once: BTreeSet<u32> = ran.iter().copied().collect();
    assert_eq!(once.len(), ran.len(), "an item ran twice: {ran:?}");
    ran.sort_unstable();
    accepted.sort_unstable();
    assert_eq!(ran, accepted, "what ran is not what was accepted");
}

fn spawn_loop(queue: &Arc<Admission<u32>>) -> thread::JoinHandle<Vec<u32>> {
    let queue = Arc::clone(queue);
    thread::spawn(move || run_loop(&queue))
}

/// Polls a post once without ever waking for it. `true` if it was queued at once.
fn poll_once(post: &mut Post<u32>) -> bool {
    Pin::new(post).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn an_accepted_item_runs_once_whatever_stops_when() {
    shuttle::check_random(
        || {
            let queue = queue(1);
            let accepted = Arc::new(Mutex::new(Vec::new()));
            let the_loop = spawn_loop(&queue);
            let waits = |first: u32| {
                let (queue, accepted) = (Arc::clone(&queue), Arc::clone(&accepted));
                thread::spawn(move || {
                    for item in first..first + 3 {
                        match shuttle::future::block_on(queue.post(item)) {
                            Ok(()) => accepted.lock().unwrap().push(item),
                            Err(PostError::NotRunning(back)) => assert_eq!(back, item),
                            Err(PostError::OnLoopThread(_)) => unreachable!("the queue knows no threads"),
                        }
                    }
                })
            };
            let tries = {
                let (queue, accepted) = (Arc::clone(&queue), Arc::clone(&accepted));
                thread::spawn(move || {
                    for item in 20..23 {
                        match queue.try_post(item) {
                            Ok(()) => accepted.lock().unwrap().push(item),
                            Err(Rejected::Full(back) | Rejected::NotRunning(back)) => assert_eq!(back, item),
                        }
                    }
                })
            };
            let stops = {
                let (queue, accepted) = (Arc::clone(&queue), Arc::clone(&accepted));
                thread::spawn(move || {
                    if queue.close(Some(99)).is_ok() {
                        accepted.lock().unwrap().push(99);
                    }
                })
            };
            for thread in [waits(0), waits(10), tries, stops] {
                thread.join().unwrap();
            }
            let ran = the_loop.join().unwrap();
            assert_eq!(ran.last(), Some(&99), "the final item comes last");
            assert_same_items(ran, &accepted);
        },
        SCHEDULES,
    );
}

#[test]
fn the_items_of_one_producer_run_in_its_order() {
    shuttle::check_random(
        || {
            let queue = queue(1);
            let the_loop = spawn_loop(&queue);
            let producers = [0, 10].map(|first| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    for item in first..first + 4 {
                        shuttle::future::block_on(queue.post(item)).unwrap();
                    }
                })
            });
            producers.into_iter().for_each(|producer| producer.join().unwrap());
            queue.close(None).unwrap();
            let ran = the_loop.join().unwrap();
            for first in [0, 10] {
                let of_one: Vec<u32> = ran.iter().copied().filter(|item| (first..first + 4).contains(item)).collect();
                assert_eq!(of_one, (first..first + 4).collect::<Vec<_>>());
            }
            assert_eq!(ran.len(), 8);
        },
        SCHEDULES,
    );
}

#[test]
fn a_cancelled_post_either_ran_or_was_withdrawn_and_blocks_nobody() {
    shuttle::check_random(
        || {
            let queue = queue(1);
            let the_loop = spawn_loop(&queue);
            let cancels = {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    let mut certain = Vec::new();
                    for item in 0..3 {
                        let mut post = queue.post(item);
                        if poll_once(&mut post) {
                            certain.push(item);
                        }
                        thread::yield_now();
                        drop(post);
                    }
                    certain
                })
            };
            let waits = {
                let queue = Arc::clone(&queue);
                thread::spawn(move || (10..13).for_each(|item| shuttle::future::block_on(queue.post(item)).unwrap()))
            };
            let certain = cancels.join().unwrap();
            waits.join().unwrap();
            queue.close(None).unwrap();
            let ran = the_loop.join().unwrap();
            let once: BTreeSet<u32> = ran.iter().copied().collect();
            assert_eq!(once.len(), ran.len(), "an item ran twice: {ran:?}");
            assert!(certain.iter().all(|item| once.contains(item)), "{certain:?} of {ran:?}");
            assert!((10..13).all(|item| once.contains(&item)), "a post that completed did not run: {ran:?}");
        },
        SCHEDULES,
    );
}

#[test]
fn a_failure_answers_everybody() {
    shuttle::check_random(
        || {
            let queue: Arc<Admission<reply::Reply<u32>>> = Arc::new(Admission::new(1, ManualClock::shared()));
            let fails = {
                let mut intake = queue.intake();
                // Runs one item at most, then fails.
                thread::spawn(move || {
                    loop {
                        match intake.take() {
                            Take::Item(taken) => {
                                taken.item.send(1);
                                break;
                            }
                            Take::Empty => intake.sleep(None, true),
                            Take::Drained => break,
                        }
                    }
                    intake.abandon()
                })
            };
            let asks = [(), ()].map(|()| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    let (reply, receiver) = reply::reply();
                    match shuttle::future::block_on(queue.post(reply)) {
                        Ok(()) => Some(shuttle::future::block_on(receiver)),
                        Err(_) => None,
                    }
                })
            });
            let answers = asks.map(|ask| ask.join().unwrap());
            let abandoned = fails.join().unwrap();
            let lost = answers.iter().filter(|answer| **answer == Some(Err(reply::ReplyLost))).count();
            assert_eq!(lost, abandoned);
            assert_eq!(answers.iter().filter(|answer| **answer == Some(Ok(1))).count(), 1);
        },
        SCHEDULES,
    );
}

#[test]
fn a_nudge_is_never_slept_through() {
    shuttle::check_random(
        || {
            let queue = queue(1);
            let nudges = {
                let queue = Arc::clone(&queue);
                thread::spawn(move || queue.nudge())
            };
            // Would hang if the nudge could come between the look and the sleep.
            queue.intake().sleep(None, true);
            nudges.join().unwrap();
        },
        SCHEDULES,
    );
}
