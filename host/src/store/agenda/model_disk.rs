//! The disk of the model: a plain map of what is committed, and who holds what of it where several hosts share it. It does
//! what the contract in `store::backend` says of a store, and nothing in a clever way.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::store::backend::{Claim, Page};
use crate::store::batch::{Batch, EventChange, EventCount};
use crate::store::event::{Event, EventId, Place};
use crate::world::WorldChange;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// By a claim, or by a look which a release leaves alone.
    Us {
        claimed: bool,
        looked: bool,
    },
    Others,
}

pub const CLAIMED: Holder = Holder::Us { claimed: true, looked: false };

/// What is on disk.
#[derive(Clone, Default)]
pub struct Disk {
    pub events: BTreeMap<u64, Event>,
    /// Leases.
    pub holders: BTreeMap<u64, Holder>,
    pub next_sequence: u64,
    /// Pending and parked events of each guest.
    pub counts: BTreeMap<Arc<str>, (i64, i64)>,
    /// How often each run of each event took effect.
    pub ran: BTreeMap<String, u32>,
}

impl Disk {
    pub fn apply(&mut self, batch: &Batch) {
        for change in &batch.events {
            let (sequence, claimed) = match change {
                EventChange::Put { event, claimed } => (event.sequence, *claimed),
                EventChange::Removed { sequence } => (*sequence, false),
            };
            assert_ne!(self.holders.get(&sequence), Some(&Holder::Others), "the lease of {sequence} was lost");
            match claimed {
                true => self.holders.insert(sequence, CLAIMED),
                false => self.holders.remove(&sequence),
            };
            match change {
                EventChange::Put { event, .. } => drop(self.events.insert(sequence, (**event).clone())),
                EventChange::Removed { .. } => drop(self.events.remove(&sequence)),
            }
        }
        if let Some(next_sequence) = batch.next_sequence {
            self.next_sequence = next_sequence;
        }
        for EventCount { guest, pending, parked } in &batch.counts {
            let counts = self.counts.entry(Arc::clone(guest)).or_default();
            *counts = (counts.0 + pending, counts.1 + parked);
        }
        for change in &batch.world {
            if let WorldChange::Kv { key, .. } = change {
                *self.ran.entry(key.to_string()).or_default() += 1;
            }
        }
    }

    pub fn claim(&mut self, claim: &Claim, is_exclusive: bool) -> Page {
        let mut events: Vec<Event> = self.events.values().cloned().collect();
        events.retain(|event| {
            let is_behind = claim.after.is_none_or(|after| event.place() > after);
            let may_be_had = match self.holders.get(&event.sequence) {
                None => is_behind || !is_exclusive,
                Some(Holder::Us { .. }) => is_behind,
                Some(Holder::Others) => false,
            };
            event.guest == claim.guest && !event.parked && event.place() <= claim.until && may_be_had
        });
        events.sort_by_key(Event::place);
        let page = cut(events, claim.limit, claim.max_bytes);
        for event in &page.events {
            let looked = self.is_looked_at(event.sequence);
            self.holders.insert(event.sequence, Holder::Us { claimed: true, looked });
        }
        page
    }

    pub fn release(&mut self, guest: &str, from: Place) {
        let events = &self.events;
        self.holders.retain(|sequence, holder| {
            let is_meant = events.get(sequence).is_some_and(|event| &*event.guest == guest && event.place() >= from);
            match holder {
                Holder::Us { claimed, looked } if is_meant => {
                    *claimed = false;
                    *looked
                }
                _ => true,
            }
        });
    }

    /// Looks an event up that may then be changed; an error while somebody else holds it.
    pub fn event(&mut self, sequence: u64) -> Result<Option<Event>, ()> {
        let claimed = match self.holders.get(&sequence) {
            Some(Holder::Others) => return Err(()),
            Some(Holder::Us { claimed, .. }) => *claimed,
            None => false,
        };
        let found = self.events.get(&sequence).cloned();
        if found.is_some() {
            self.holders.insert(sequence, Holder::Us { claimed, looked: true });
        }
        Ok(found)
    }

    pub fn is_looked_at(&self, sequence: u64) -> bool {
        matches!(self.holders.get(&sequence), Some(Holder::Us { looked: true, .. }))
    }

    /// Nothing came of the look: its lease runs out.
    pub fn let_go(&mut self, sequence: u64) {
        match self.holders.get_mut(&sequence) {
            Some(Holder::Us { claimed: true, looked }) => *looked = false,
            Some(Holder::Us { claimed: false, .. }) => drop(self.holders.remove(&sequence)),
            Some(Holder::Others) | None => {}
        }
    }

    pub fn list(&self, guest: &str, after: Option<EventId>, limit: usize) -> Page {
        let mut events: Vec<Event> = self.events.values().cloned().collect();
        events.retain(|event| &*event.guest == guest && after.is_none_or(|after| event.id() > after));
        events.sort_by_key(Event::id);
        cut(events, limit, 25)
    }

    pub fn held_by_others(&self) -> Vec<Event> {
        let is_theirs = |event: &&Event| self.holders.get(&event.sequence) == Some(&Holder::Others);
        self.events.values().filter(is_theirs).cloned().collect()
    }
}

pub fn cut(mut events: Vec<Event>, limit: usize, max_bytes: usize) -> Page {
    let mut bytes = 0;
    let fitting = events.iter().enumerate().take_while(|(at, event)| {
        bytes += event.payload.len();
        *at < limit && (*at == 0 || bytes <= max_bytes)
    });
    let fitting = fitting.count();
    let is_last = fitting == events.len();
    events.truncate(fitting);
    Page { events, is_last }
}
