//! A mailbox: a bounded queue that many send to and one reads. Every message that was taken in is either read or handed
//! back when the mailbox is closed; after that nothing is taken in. It knows nothing of what reads it: a service's task,
//! the loop, or a native service.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use super::message::Message;

/// The first length that is told as overload; it doubles with each line.
const OVERLOAD_FROM: usize = 1024;

/// Messages that an empty mailbox keeps memory for: a burst is not paid for ever after.
const KEPT: usize = 256;

/// The queue and who waits for it.
#[derive(Debug)]
pub struct Mailbox {
    state: Mutex<State>,
    capacity: usize,
    max_bytes: usize,
    /// For those who wait for room.
    room: Notify,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Message>,
    /// Bytes of their payloads.
    bytes: usize,
    is_closed: bool,
    reader: Option<Waker>,
    /// Those who wait for room.
    waiting_for_room: usize,
    /// The longest that it has been.
    longest: usize,
    /// The length that is told next.
    overload: usize,
}

/// Why a message was not taken in, with the message.
#[derive(Debug)]
pub enum Refused {
    Closed(Message),
    Full(Message),
}

/// A message was taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// How long the mailbox is now, where that is worth a line in the log.
    pub overload: Option<usize>,
}

impl Mailbox {
    /// An empty mailbox for at most `capacity` messages, whose payloads have at most `max_bytes` together. One message is
    /// taken however long it is.
    pub fn new(capacity: usize, max_bytes: usize) -> Self {
        let state = State { overload: OVERLOAD_FROM, ..State::default() };
        Self { state: Mutex::new(state), capacity, max_bytes, room: Notify::new() }
    }

    /// How many messages it takes.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many are in it, and how many there have been at most.
    pub fn lengths(&self) -> (usize, usize) {
        let state = self.lock();
        (state.queue.len(), state.longest)
    }

    /// Puts a message at the end.
    pub fn push(&self, message: Message) -> Result<Taken, Refused> {
        self.push_within(self.capacity, self.max_bytes, message)
    }

    /// Puts a message at the end however many are there: for what the reader itself has asked for, which is bounded
    /// elsewhere.
    pub fn push_always(&self, message: Message) -> Result<Taken, Refused> {
        self.push_within(usize::MAX, usize::MAX, message)
    }

    fn push_within(&self, capacity: usize, max_bytes: usize, message: Message) -> Result<Taken, Refused> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(Refused::Closed(message));
        }
        if state.is_full(capacity, max_bytes, message.payload.len()) {
            return Err(Refused::Full(message));
        }
        state.bytes += message.payload.len();
        state.queue.push_back(message);
        let length = state.queue.len();
        state.longest = state.longest.max(length);
        let overload = (length >= state.overload).then_some(length);
        if overload.is_some() {
            state.overload = length * 2;
        }
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        Ok(Taken { overload })
    }

    /// Puts a message at the end as soon as there is room. `Err` hands it back when the mailbox is closed.
    pub async fn push_when_there_is_room(&self, mut message: Message) -> Result<Taken, Message> {
        loop {
            let room = self.room.notified();
            match self.push(message) {
                Ok(taken) => return Ok(taken),
                Err(Refused::Closed(message)) => return Err(message),
                Err(Refused::Full(back)) => message = back,
            }
            let waits = Waits::begin(self);
            // There may have been room since the look above, when nobody was counted as waiting yet.
            if self.lock().is_full(self.capacity, self.max_bytes, message.payload.len()) {
                room.await;
            }
            drop(waits);
        }
    }

    /// Moves at most `limit` messages from the front to the end of `into`. Pending, with the reader's waker kept, when
    /// there are none; ready with nothing when it is closed.
    pub fn poll_take(&self, context: &mut Context<'_>, into: &mut VecDeque<Message>, limit: usize) -> Poll<usize> {
        let mut state = self.lock();
        let count = state.queue.len().min(limit);
        if count == 0 && !state.is_closed {
            if !state.reader.as_ref().is_some_and(|reader| reader.will_wake(context.waker())) {
                state.reader = Some(context.waker().clone());
            }
            return Poll::Pending;
        }
        let taken_from = into.len();
        into.extend(state.queue.drain(..count));
        state.bytes -= into.iter().skip(taken_from).map(|message| message.payload.len()).sum::<usize>();
        if state.queue.is_empty() {
            state.overload = OVERLOAD_FROM;
            if state.queue.capacity() > 4 * KEPT {
                state.queue.shrink_to(KEPT);
            }
        }
        let has_waiting = state.waiting_for_room > 0;
        drop(state);
        if has_waiting {
            self.room.notify_waiters();
        }
        Poll::Ready(count)
    }

    /// Takes nothing in any more, and hands back what is there.
    pub fn close(&self) -> VecDeque<Message> {
        let mut state = self.lock();
        state.is_closed = true;
        state.bytes = 0;
        let left = std::mem::take(&mut state.queue);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        self.room.notify_waiters();
        left
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What it guards is whole between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether a message with such a payload does not fit.
    fn is_full(&self, capacity: usize, max_bytes: usize, bytes: usize) -> bool {
        self.queue.len() >= capacity || (!self.queue.is_empty() && self.bytes.saturating_add(bytes) > max_bytes)
    }
}

/// Counts somebody who waits for room.
struct Waits<'a>(&'a Mailbox);

impl<'a> Waits<'a> {
    fn begin(mailbox: &'a Mailbox) -> Self {
        mailbox.lock().waiting_for_room += 1;
        Self(mailbox)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting_for_room -= 1;
    }
}

#[cfg(test)]
#[path = "mailbox_tests.rs"]
mod tests;
