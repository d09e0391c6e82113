//! The next events of one guest, in memory, in the order in which they are run. A window is complete up to its horizon:
//! every event that stands before it is here. It holds a bounded number of events: one too many pushes out those that
//! come last, and the horizon comes nearer.

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
    capacity: usize,
}

impl Window {
    pub fn new(capacity: usize) -> Self {
        Self { events: BTreeMap::new(), places: FxHashMap::default(), horizon: None, capacity }
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    pub fn horizon(&self) -> Option<Place> {
        self.horizon
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
        self.places.insert(event.sequence, event.place());
        self.events.insert(event.place(), event);
    }

    pub fn remove(&mut self, sequence: u64) {
        if let Some(place) = self.places.remove(&sequence) {
            self.events.remove(&place);
        }
    }

    /// Pushes out what is too much, down to three quarters of what there may be. Answers the first place that is not
    /// in memory any more.
    pub fn trim(&mut self) -> Option<Place> {
        if self.events.len() <= self.capacity {
            return None;
        }
        let mut pushed_out = None;
        while self.events.len() > (self.capacity / 4 * 3).max(1)
            && let Some((place, event)) = self.events.pop_last()
        {
            self.places.remove(&event.sequence);
            pushed_out = Some(place);
        }
        let last = self.events.last_key_value().map(|(place, _)| *place);
        self.horizon = self.horizon.min(last);
        pushed_out
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.events.clear();
        self.places.clear();
        self.horizon = None;
    }
}
