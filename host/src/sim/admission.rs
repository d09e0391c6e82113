//! The bounded queue through which work reaches the loop. Producers on any thread post to it; the loop takes from its
//! [`Intake`] and sleeps on it. It never runs an item, and it never drops one that it accepted unless the loop has
//! failed and says so.
//!
//! Capacity counts the items that wait. A producer that finds no room and waits hands its item to a line beside the
//! queue; as an item is taken, the first of the line is admitted in its place, so nobody overtakes it.
//!
//! The loop fetches all that is queued at once, so that it meets the producers' lock once a batch, and the count of
//! waiting items, `depth`, is what both sides agree on. A producer joins the line *before* it looks at the count for
//! the last time, and the loop lowers the count *before* it looks whether there is a line, both in one global order
//! (`SeqCst`): so one of the two sees the other, and no room goes unseen by those who wait for it.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use thiserror::Error;

use super::sync::{Arc, AtomicU64, Condvar, Mutex, MutexGuard, Ordering, PoisonError};
use crate::clock::SharedClock;

/// Why an item was not queued, and the item.
#[derive(Debug, Error)]
pub enum Rejected<T> {
    #[error("the loop's queue is full; post again later, or raise loop.queue_capacity")]
    Full(T),
    #[error("the loop is not running")]
    NotRunning(T),
}

impl<T> Rejected<T> {
    /// The item that was not queued.
    pub fn into_item(self) -> T {
        match self {
            Self::Full(item) | Self::NotRunning(item) => item,
        }
    }
}

/// Why a waiting post ended without its item in the queue, and the item.
#[derive(Debug, Error)]
pub enum PostError<T> {
    #[error("the loop is not running")]
    NotRunning(T),
    #[error("waiting for room on the loop thread would never end; use try_post there")]
    OnLoopThread(T),
}

impl<T> PostError<T> {
    /// The item that was not queued.
    pub fn into_item(self) -> T {
        match self {
            Self::NotRunning(item) | Self::OnLoopThread(item) => item,
        }
    }
}

/// An item that the loop took from the queue.
#[derive(Debug)]
pub struct Taken<T> {
    pub item: T,
    /// When it was admitted.
    pub admitted: Duration,
}

impl<T> Taken<T> {
    fn admitted_ns(&self) -> u64 {
        self.admitted.as_nanos() as u64
    }
}

/// What the loop finds in the queue.
#[derive(Debug)]
pub enum Take<T> {
    Item(Taken<T>),
    /// Nothing now.
    Empty,
    /// Nothing now and nothing ever again.
    Drained,
}

/// A producer that waits for room.
struct Waiting<T> {
    item: T,
    waker: Waker,
}

struct State<T> {
    queue: VecDeque<Taken<T>>,
    /// Producers that wait for room, by the number they drew.
    line: BTreeMap<u64, Waiting<T>>,
    next_number: u64,
    closed: bool,
    /// What the loop runs after the last item.
    final_item: Option<T>,
    /// The loop is waiting on `work`, so it must be notified.
    loop_sleeps: bool,
    /// Somebody wants the loop to look around even though there is no item.
    nudged: bool,
}

/// What can be read without the lock. The loop writes the first two at every item, the producers the others, so they
/// lie on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub struct AdmissionGauges {
    /// Items that wait, those that the loop fetched but has not begun included. Raised under the lock before the item
    /// is queued.
    pub depth: AtomicU64,
    /// When the oldest item was admitted; [`NO_ITEM`] when the queue is empty. Written by the loop while it has fetched
    /// items, under the lock otherwise.
    pub oldest_ns: AtomicU64,
    pub posts: PostGauges,
}

/// See [`AdmissionGauges`].
#[derive(Debug)]
#[repr(align(128))]
pub struct PostGauges {
    pub accepted: AtomicU64,
    pub rejected: AtomicU64,
}

/// See [`AdmissionGauges::oldest_ns`].
pub const NO_ITEM: u64 = u64::MAX;

/// The queue.
pub struct Admission<T> {
    capacity: u64,
    clock: SharedClock,
    state: Mutex<State<T>>,
    work: Condvar,
    /// How many producers are in line, for a look without the lock.
    line_length: AtomicU64,
    gauges: AdmissionGauges,
}

/// The loop's end of the queue.
pub struct Intake<T> {
    admission: Arc<Admission<T>>,
    /// Fetched, but still waiting to be taken.
    fetched: VecDeque<Taken<T>>,
}

impl<T> Admission<T> {
    /// A queue for at most `capacity` items.
    pub fn new(capacity: usize, clock: SharedClock) -> Self {
        Self {
            capacity: capacity as u64,
            clock,
            state: Mutex::new(State {
                queue: VecDeque::new(),
                line: BTreeMap::new(),
                next_number: 0,
                closed: false,
                final_item: None,
                loop_sleeps: false,
                nudged: false,
            }),
            work: Condvar::new(),
            line_length: AtomicU64::new(0),
            gauges: AdmissionGauges {
                depth: AtomicU64::new(0),
                oldest_ns: AtomicU64::new(NO_ITEM),
                posts: PostGauges { accepted: AtomicU64::new(0), rejected: AtomicU64::new(0) },
            },
        }
    }

    pub fn gauges(&self) -> &AdmissionGauges {
        &self.gauges
    }

    /// The state is consistent between any two statements that could panic, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues the item if there is room now.
    pub fn try_post(&self, item: T) -> Result<(), Rejected<T>> {
        let taken = Taken { item, admitted: self.clock.now() };
        let mut state = self.lock();
        let refused = match self.offer(&mut state, taken) {
            Ok(()) => {
                self.wake_loop(state);
                return Ok(());
            }
            Err(refused) => refused,
        };
        drop(state);
        self.gauges.posts.rejected.fetch_add(1, Ordering::Relaxed);
        Err(refused)
    }

    fn offer(&self, state: &mut State<T>, taken: Taken<T>) -> Result<(), Rejected<T>> {
        if state.closed {
            return Err(Rejected::NotRunning(taken.item));
        }
        // Room that came up while somebody is in line is theirs.
        if !state.line.is_empty() || self.is_full() {
            return Err(Rejected::Full(taken.item));
        }
        self.admit(state, taken);
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.gauges.depth.load(Ordering::SeqCst) >= self.capacity
    }

    fn wake_loop(&self, mut state: MutexGuard<'_, State<T>>) {
        let sleeps = std::mem::take(&mut state.loop_sleeps);
        drop(state);
        if sleeps {
            self.work.notify_one();
        }
    }

    /// Puts an item in the queue. Called under the lock.
    fn admit(&self, state: &mut State<T>, taken: Taken<T>) {
        // Raised first: a loop that takes its last item now finds that there is another, and tells its age.
        self.gauges.depth.fetch_add(1, Ordering::SeqCst);
        if self.gauges.oldest_ns.load(Ordering::Relaxed) == NO_ITEM {
            self.gauges.oldest_ns.store(taken.admitted_ns(), Ordering::Relaxed);
        }
        state.queue.push_back(taken);
        let accepted = self.gauges.posts.accepted.load(Ordering::Relaxed) + 1;
        self.gauges.posts.accepted.store(accepted, Ordering::Relaxed);
    }

    /// Admits those in line for whom there is room, and returns what wakes them. Called under the lock.
    fn admit_line(&self, state: &mut State<T>) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while !state.closed && !self.is_full() {
            let Some((_, waiting)) = state.line.pop_first() else { break };
            self.admit(state, Taken { item: waiting.item, admitted: self.clock.now() });
            wakers.push(waiting.waker);
        }
        self.publish_line(state);
        wakers
    }

    fn publish_line(&self, state: &State<T>) {
        self.line_length.store(state.line.len() as u64, Ordering::SeqCst);
    }

    /// Waits for room and completes when the item is queued. Dropped before that, it withdraws the item.
    pub fn post(self: &Arc<Self>, item: T) -> Post<T> {
        Post { admission: Arc::clone(self), state: PostState::Fresh(item) }
    }

    /// The loop's end. There is one.
    pub fn intake(self: &Arc<Self>) -> Intake<T> {
        Intake { admission: Arc::clone(self), fetched: VecDeque::new() }
    }

    /// Whether an item waits, as far as can be seen without the lock.
    pub fn has_items(&self) -> bool {
        self.gauges.depth.load(Ordering::Relaxed) > 0
    }

    /// Refuses items from now on; producers in line get theirs back. What is queued stays, and `final_item` comes
    /// after it. Closed before, it hands the final item back.
    pub fn close(&self, final_item: Option<T>) -> Result<(), Option<T>> {
        let mut state = self.lock();
        if state.closed {
            return Err(final_item);
        }
        state.closed = true;
        state.final_item = final_item;
        state.loop_sleeps = false;
        // The items stay in line until their producers fetch them.
        let wakers: Vec<Waker> = state.line.values().map(|waiting| waiting.waker.clone()).collect();
        drop(state);
        self.work.notify_one();
        wakers.into_iter().for_each(Waker::wake);
        Ok(())
    }

    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// The final item, once.
    pub fn take_final(&self) -> Option<T> {
        self.lock().final_item.take()
    }

    /// Ends the loop's sleep, or its next one.
    pub fn nudge(&self) {
        let mut state = self.lock();
        state.nudged = true;
        drop(state);
        self.work.notify_one();
    }
}

impl<T> Intake<T> {
    /// Takes the oldest item, and has the first producer in line admitted in its place.
    pub fn take(&mut self) -> Take<T> {
        if self.fetched.is_empty()
            && let Some(nothing) = self.fetch()
        {
            return nothing;
        }
        let Some(taken) = self.fetched.pop_front() else { return Take::Empty };
        let gauges = &self.admission.gauges;
        gauges.oldest_ns.store(self.fetched.front().map_or(NO_ITEM, Taken::admitted_ns), Ordering::Relaxed);
        let left = gauges.depth.fetch_sub(1, Ordering::SeqCst) - 1;
        if self.admission.line_length.load(Ordering::SeqCst) > 0 {
            let wakers = self.admission.admit_line(&mut self.admission.lock());
            wakers.into_iter().for_each(Waker::wake);
        }
        if left > 0 && self.fetched.is_empty() {
            self.fetch();
        }
        Take::Item(taken)
    }

    /// Fetches all that is queued, or says why there is nothing.
    fn fetch(&mut self) -> Option<Take<T>> {
        let mut state = self.admission.lock();
        std::mem::swap(&mut state.queue, &mut self.fetched);
        match self.fetched.front() {
            Some(front) => {
                self.admission.gauges.oldest_ns.store(front.admitted_ns(), Ordering::Relaxed);
                None
            }
            None if state.closed => Some(Take::Drained),
            None => Some(Take::Empty),
        }
    }

    /// Closes, and drops what is queued. Returns how many items were dropped.
    pub fn abandon(&mut self) -> usize {
        // An error says that it was closed before, which is as well.
        let _ = self.admission.close(None);
        let mut state = self.admission.lock();
        let queue = std::mem::take(&mut state.queue);
        let final_item = state.final_item.take();
        self.admission.gauges.oldest_ns.store(NO_ITEM, Ordering::Relaxed);
        self.admission.gauges.depth.store(0, Ordering::SeqCst);
        drop(state);
        // Dropped outside the lock: an item's drop may well ask this queue something.
        let fetched = std::mem::take(&mut self.fetched);
        fetched.len() + queue.len() + usize::from(final_item.is_some())
    }

    /// Sleeps until there is work or a [nudge](Admission::nudge), or for `at_most`. Work that is there already keeps only
    /// those awake who are `awake_for_work`.
    pub fn sleep(&self, at_most: Option<Duration>, awake_for_work: bool) {
        let admission = &*self.admission;
        let mut state = admission.lock();
        let has_work = !self.fetched.is_empty() || !state.queue.is_empty() || state.closed;
        if state.nudged || (awake_for_work && has_work) {
            state.nudged = false;
            return;
        }
        state.loop_sleeps = true;
        // A wake-up for no reason costs the loop one empty turn, so one wait is enough.
        let mut state = match at_most {
            Some(at_most) => admission.work.wait_timeout(state, at_most).unwrap_or_else(PoisonError::into_inner).0,
            None => admission.work.wait(state).unwrap_or_else(PoisonError::into_inner),
        };
        state.loop_sleeps = false;
        state.nudged = false;
    }
}

enum PostState<T> {
    Fresh(T),
    InLine(u64),
    Done,
}

/// A post that waits for room; see [`Admission::post`].
#[must_use = "an item is posted when this is awaited"]
pub struct Post<T> {
    admission: Arc<Admission<T>>,
    state: PostState<T>,
}

// The item is never pinned: it moves from here to the queue.
impl<T> Unpin for Post<T> {}

impl<T> Future for Post<T> {
    type Output = Result<(), PostError<T>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match std::mem::replace(&mut self.state, PostState::Done) {
            PostState::Fresh(item) => self.enter(item, cx),
            PostState::InLine(number) => self.look(number, cx),
            PostState::Done => panic!("a post was polled after it completed"),
        }
    }
}

impl<T> Post<T> {
    fn enter(&mut self, item: T, cx: &mut Context<'_>) -> Poll<Result<(), PostError<T>>> {
        let admission = Arc::clone(&self.admission);
        let taken = Taken { item, admitted: admission.clock.now() };
        let mut state = admission.lock();
        match admission.offer(&mut state, taken) {
            Ok(()) => {
                admission.wake_loop(state);
                Poll::Ready(Ok(()))
            }
            Err(Rejected::NotRunning(item)) => {
                admission.gauges.posts.rejected.fetch_add(1, Ordering::Relaxed);
                Poll::Ready(Err(PostError::NotRunning(item)))
            }
            Err(Rejected::Full(item)) => {
                let number = state.next_number;
                state.next_number += 1;
                state.line.insert(number, Waiting { item, waker: cx.waker().clone() });
                admission.publish_line(&state);
                // Room may have come up before the loop could see the line.
                let wakers = admission.admit_line(&mut state);
                let admitted = !state.line.contains_key(&number);
                if wakers.is_empty() {
                    drop(state);
                } else {
                    admission.wake_loop(state);
                }
                wakers.into_iter().for_each(Waker::wake);
                if admitted {
                    return Poll::Ready(Ok(()));
                }
                self.state = PostState::InLine(number);
                Poll::Pending
            }
        }
    }

    fn look(&mut self, number: u64, cx: &mut Context<'_>) -> Poll<Result<(), PostError<T>>> {
        let admission = Arc::clone(&self.admission);
        let mut state = admission.lock();
        if state.closed {
            let waiting = state.line.remove(&number);
            admission.publish_line(&state);
            drop(state);
            // Whoever left the line before it closed was admitted.
            return Poll::Ready(match waiting {
                Some(waiting) => {
                    admission.gauges.posts.rejected.fetch_add(1, Ordering::Relaxed);
                    Err(PostError::NotRunning(waiting.item))
                }
                None => Ok(()),
            });
        }
        let Some(waiting) = state.line.get_mut(&number) else { return Poll::Ready(Ok(())) };
        let old = std::mem::replace(&mut waiting.waker, cx.waker().clone());
        drop(state);
        // Outside the lock: a waker may own the last of a task, and that task another post.
        drop(old);
        self.state = PostState::InLine(number);
        Poll::Pending
    }
}

impl<T> Drop for Post<T> {
    fn drop(&mut self) {
        if let PostState::InLine(number) = self.state {
            let mut state = self.admission.lock();
            let withdrawn = state.line.remove(&number);
            self.admission.publish_line(&state);
            drop(state);
            // Outside the lock, as an item's drop may ask this queue something.
            drop(withdrawn);
        }
    }
}
