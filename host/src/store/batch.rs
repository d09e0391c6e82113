//! What is committed together: all that handlers have changed since the batch before. A batch is in the store as a whole
//! or not at all, and batches are committed in the order of their numbers, so that what a handler changed, the event it
//! was called for and the events it scheduled are never apart.

use std::sync::Arc;

use super::event::Event;
use crate::world::WorldChange;

/// One batch. Within each list the later entry counts.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Counted up by one from batch to batch of a run, from 1.
    pub number: u64,
    pub world: Vec<WorldChange>,
    pub events: Vec<EventChange>,
    /// How many events are pending now, for guests for which that has changed.
    pub counts: Vec<EventCount>,
    pub guests: Vec<GuestChange>,
    /// The sequence that the next event gets, where that has changed.
    pub next_sequence: Option<u64>,
    /// Values and payloads in it, more or less: what its size is judged by beside its rows.
    pub bytes: usize,
}

/// A change to the pending events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventChange {
    /// A new event, or one that is pending already and now looks like this. Guest, kind, payload and repetition of an
    /// event never change.
    Put(Arc<Event>),
    /// It is not pending any more.
    Removed { sequence: u64 },
}

/// The pending events of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventCount {
    pub guest: Arc<str>,
    /// The parked ones among them.
    pub pending: u64,
    pub parked: u64,
}

/// A change to what is kept of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuestChange {
    /// Its first `init` in this world has succeeded.
    Initialised { guest: Arc<str> },
    /// What its `save` answered; `None` where it has nothing to carry.
    Saved { guest: Arc<str>, state: Option<Vec<u8>> },
}

impl Batch {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.world.is_empty()
            && self.events.is_empty()
            && self.counts.is_empty()
            && self.guests.is_empty()
            && self.next_sequence.is_none()
    }

    /// Rows that it changes, more or less.
    pub fn rows(&self) -> usize {
        self.world.len() + self.events.len() + self.counts.len() + self.guests.len()
    }
}
