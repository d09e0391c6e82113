//! What has been changed about events and may not be on disk yet: laid over whatever is read from there. A change is kept
//! until its batch is committed and no page is under way that was asked for before.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::store::event::Event;

/// What an event is now; `None` when it is not pending any more.
pub(super) type Now = Option<Arc<Event>>;

#[derive(Debug, Default)]
pub(super) struct Unsettled {
    changes: BTreeMap<u64, (u64, Now)>,
    /// The sequences changed in each batch, oldest batch first.
    batches: VecDeque<(u64, Vec<u64>)>,
}

impl Unsettled {
    /// Notes what an event is from the batch with that number on.
    pub fn note(&mut self, batch: u64, sequence: u64, now: Now) {
        self.changes.insert(sequence, (batch, now));
        match self.batches.back_mut() {
            Some((last, sequences)) if *last == batch => sequences.push(sequence),
            _ => self.batches.push_back((batch, vec![sequence])),
        }
    }

    /// What the event is, where that may differ from what is on disk.
    pub fn get(&self, sequence: u64) -> Option<&Now> {
        self.changes.get(&sequence).map(|(_, now)| now)
    }

    /// The batch from which on the event is pending as it is now.
    pub fn pending_from(&self, sequence: u64) -> Option<u64> {
        self.changes.get(&sequence).filter(|(_, now)| now.is_some()).map(|(batch, _)| *batch)
    }

    /// Every event that may differ and is pending, with the batch that makes it what it is.
    pub fn pending(&self) -> impl Iterator<Item = (u64, &Arc<Event>)> {
        self.changes.values().filter_map(|(batch, now)| Some((*batch, now.as_ref()?)))
    }

    /// Everything up to that batch is on disk, and whatever is read from now on sees it.
    pub fn settle(&mut self, committed: u64) {
        while let Some((batch, sequences)) = self.batches.pop_front_if(|(batch, _)| *batch <= committed) {
            for sequence in sequences {
                if self.changes.get(&sequence).is_some_and(|(of, _)| *of == batch) {
                    self.changes.remove(&sequence);
                }
            }
        }
    }
}
