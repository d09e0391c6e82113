//! The next events of one guest, in memory, in the order in which they are run. A window is complete up to its horizon:
//! every event that stands before it is here. It holds a bounded number of events, and of bytes of payload, which only one
//! that is larger than a quarter of that can exceed: too many push out those that come last, and the horizon comes
//! nearer.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::store::event::{Event, Place};

/// One guest's window.
#[derive(Debug)]
pub(super) struct Window {
    events: BTreeMap<Place, Arc<Event>>,
    places: FxHashMap<u64, Place>,
    /// The last place up to which nothing is missing; `None` when nothing is known yet.
    horizon: Option<Place>,
    /// Of the payloads.
    bytes: usize,
    max_events: usize,
    max_bytes: usize,
}

impl Window {
    /// An empty window. It has room for one event at least.
    pub fn new(max_events: usize, max_bytes: usize) -> Self {
        let (max_events, max_bytes) = (max_events.max(1), max_bytes.max(1));
        Self { events: BTreeMap::new(), places: FxHashMap::default(), horizon: None, bytes: 0, max_events, max_bytes }
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    pub fn horizon(&self) -> Option<Place> {
        self.horizon
    }

    /// The first place behind the horizon.
    pub fn beyond(&self) -> Place {
        self.horizon.map_or(Place::FIRST, |Place { next_ms, sequence }| Place { next_ms, sequence: sequence + 1 })
    }

    /// Whether less than half of it is taken.
    pub fn has_room(&self) -> bool {
        self.events.len() < self.max_events.div_ceil(2) && self.bytes < self.max_bytes.div_ceil(2)
    }

    /// Nothing is missing up to there: a page has come.
    pub fn extend_to(&mut self, horizon: Place) {
        self.horizon = self.horizon.max(Some(horizon));
    }

    /// Whether an event that stands there belongs into the window.
    pub fn covers(&self, place: Place) -> bool {
        self.horizon.is_some_and(|horizon| place <= horizon)
    }

    pub fn get(&self, sequence: u64) -> Option<&Arc<Event>> {
        self.events.get(self.places.get(&sequence)?)
    }

    /// The event that is run next.
    pub fn first(&self) -> Option<&Arc<Event>> {
        self.events.values().next()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.events.values()
    }

    /// Takes an event in, instead of what the window had under its sequence.
    pub fn insert(&mut self, event: Arc<Event>) {
        self.remove(event.sequence);
        self.bytes += event.payload.len();
        self.places.insert(event.sequence, event.place());
        self.events.insert(event.place(), event);
    }

    pub fn remove(&mut self, sequence: u64) {
        if let Some(event) = self.places.remove(&sequence).and_then(|place| self.events.remove(&place)) {
            self.bytes -= event.payload.len();
        }
    }

    /// Pushes out what is too much, down to about three quarters of what there may be: never so far that it has room, or
    /// what was pushed out would be read again at once. Answers whether anything was pushed out.
    pub fn trim(&mut self) -> bool {
        if self.events.len() <= self.max_events && self.bytes <= self.max_bytes {
            return false;
        }
        let (kept_events, kept_bytes) = ((self.max_events * 3 / 4).max(1), self.max_bytes - self.max_bytes / 4);
        let mut has_shrunk = false;
        while let Some(last) = self.events.last_entry() {
            let (sequence, bytes) = (last.get().sequence, last.get().payload.len());
            if self.events.len() <= kept_events && self.bytes - bytes <= kept_bytes {
                break;
            }
            self.remove(sequence);
            has_shrunk = true;
        }
        if has_shrunk {
            self.horizon = self.horizon.min(self.events.last_key_value().map(|(place, _)| *place));
        }
        has_shrunk
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.events.clear();
        self.places.clear();
        self.bytes = 0;
        self.horizon = None;
    }

    /// Payload bytes in memory.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
