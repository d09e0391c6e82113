//! What is committed together: all that handlers have changed since the batch before. A batch is in the store as a whole
//! or not at all, and batches are committed in the order of their numbers, so that what a handler changed, the event it
//! was called for and the events it scheduled are never apart.

use std::sync::Arc;

use super::event::Event;
use crate::world::WorldChange;

/// One batch. Of entries about the same thing the later counts, but for `counts`, of which each does.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Counted up by one from batch to batch of a run, from 1.
    pub number: u64,
    pub world: Vec<WorldChange>,
    pub events: Vec<EventChange>,
    /// By how much the numbers of pending events have changed, once for each guest.
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
    /// event never change. `claimed` tells whether the host keeps it in memory to run it: in a store that several hosts
    /// share, the same transaction then leases it to this host, and otherwise leaves it to whoever claims it.
    Put { event: Arc<Event>, claimed: bool },
    /// It is not pending any more.
    Removed { sequence: u64 },
}

/// By how much the numbers of a guest's pending events change. Not the numbers themselves: of a store that several hosts
/// share, no host knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventCount {
    pub guest: Arc<str>,
    pub pending: i64,
    /// The parked ones among them.
    pub parked: i64,
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
