//! The timers that guests have set: what each carries, and what the handler that runs has set and cancelled so far.
//! The wheel tells when they fire; the server keeps the two in step.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::stage::GuestId;
use crate::sim::TimerId;

/// A guest's timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestTimer {
    pub guest: GuestId,
    pub name: Arc<str>,
    pub interval_ms: u64,
    pub delay_ms: Option<u64>,
    pub repeat: bool,
    pub payload: Arc<[u8]>,
    /// The timer on the wheel, once the server has registered it.
    pub on_wheel: Option<TimerId>,
    /// The batch that what it carries has to wait for; see [`Committed::after`](super::Committed::after).
    pub after: u64,
}

/// All timers of all guests, by the ids that guests know.
#[derive(Debug, Default)]
pub struct TimerBook {
    last_id: u64,
    timers: FxHashMap<u64, GuestTimer>,
    by_name: FxHashMap<(GuestId, Arc<str>), FxHashSet<u64>>,
    /// Set by the handler that runs.
    set_now: FxHashSet<u64>,
    /// Cancelled by the handler that runs; they were set before it.
    cancelled_now: FxHashSet<u64>,
}

impl TimerBook {
    /// How many timers there are, as the handler that runs sees it.
    pub fn len(&self) -> usize {
        self.timers.len() - self.cancelled_now.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a timer for the handler that runs.
    pub(super) fn set(&mut self, timer: GuestTimer) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.put_back(id, timer);
        self.set_now.insert(id);
        id
    }

    /// Puts a timer in under the id that it had before it was taken out.
    pub fn put_back(&mut self, id: u64, timer: GuestTimer) {
        self.by_name.entry((timer.guest, Arc::clone(&timer.name))).or_default().insert(id);
        self.timers.insert(id, timer);
    }

    /// Cancels a timer for the handler that runs. `None` when the guest has none with that id; otherwise whether it
    /// was set before this handler, so that the wheel has to hear of it.
    pub(super) fn cancel(&mut self, guest: GuestId, id: u64) -> Option<bool> {
        if self.timers.get(&id)?.guest != guest || self.cancelled_now.contains(&id) {
            return None;
        }
        if self.set_now.remove(&id) {
            self.remove(id);
            return Some(false);
        }
        self.cancelled_now.insert(id);
        Some(true)
    }

    /// The ids of a guest's timers with that name, as the handler that runs sees them, oldest first.
    pub(super) fn named(&self, guest: GuestId, name: &str) -> Vec<u64> {
        let Some(ids) = self.by_name.get(&(guest, Arc::from(name))) else {
            return Vec::new();
        };
        let mut ids: Vec<u64> = ids.iter().copied().filter(|id| !self.cancelled_now.contains(id)).collect();
        ids.sort_unstable();
        ids
    }

    pub(super) fn commit(&mut self) {
        self.set_now.clear();
        // Cancelled ones stay until the server has taken them off the wheel.
        self.cancelled_now.clear();
    }

    pub(super) fn rollback(&mut self) {
        self.cancelled_now.clear();
        for id in std::mem::take(&mut self.set_now) {
            self.remove(id);
        }
    }

    /// The timer with that id.
    pub fn get(&self, id: u64) -> Option<&GuestTimer> {
        self.timers.get(&id)
    }

    /// Notes what the handler that has set it has to wait for.
    pub(super) fn set_after(&mut self, id: u64, after: u64) {
        if let Some(timer) = self.timers.get_mut(&id) {
            timer.after = after;
        }
    }

    /// Notes which timer of the wheel stands for it.
    pub fn registered(&mut self, id: u64, on_wheel: TimerId) {
        if let Some(timer) = self.timers.get_mut(&id) {
            timer.on_wheel = Some(on_wheel);
        }
    }

    /// Takes a timer out: it has fired for the last time, or is off the wheel.
    pub fn remove(&mut self, id: u64) -> Option<GuestTimer> {
        let timer = self.timers.remove(&id)?;
        let key = (timer.guest, Arc::clone(&timer.name));
        if let Some(ids) = self.by_name.get_mut(&key) {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_name.remove(&key);
            }
        }
        Some(timer)
    }

    /// The ids of all timers of a guest, oldest first.
    pub fn of_guest(&self, guest: GuestId) -> Vec<u64> {
        let mut ids: Vec<u64> =
            self.timers.iter().filter(|(_, timer)| timer.guest == guest).map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids
    }
}
