//! How a guest's window is filled from the disk and emptied again: the pages that are wanted, what becomes of one that
//! comes, and what has no room. Pages are read by whoever drives the agenda, and there is one at a time for each guest.

use std::sync::Arc;

use super::{Agenda, Listed};
use crate::store::backend::{Claim, Page};
use crate::store::event::{Event, LATEST_MS, Place};

/// What an agenda wants done about the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Read these events and bring them to [`Agenda::page`] under this number.
    Page { number: u64, claim: Claim },
    /// Give these back: they have no room in memory. Before any page that is wished for afterwards.
    Release { guest: Arc<str>, from: Place },
}

/// How far a guest is with its pages.
#[derive(Debug, Default)]
pub(super) struct Paging {
    under_way: Option<UnderWay>,
    /// In a shared store: events before the horizon that are not in memory, since this batch changes them and is not on
    /// disk as far as is known.
    passed_over: Option<PassedOver>,
    /// Whether there is something to claim before the horizon.
    is_wanted_at_once: bool,
    /// In a shared store: the next page begins here, before the horizon, since there are events that this host holds and
    /// does not have.
    again_after: Option<Place>,
    /// In a shared store: what lies behind the horizon is to be given back, once this batch is on disk.
    to_release: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct PassedOver {
    /// The newest batch that changes one of them.
    batch: u64,
    /// Where a page that brings them all begins.
    after: Place,
}

/// A page that was asked for.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    number: u64,
    until: Place,
    /// The newest batch on disk at that time.
    committed: u64,
    /// Where it begins if that is before the horizon.
    again_after: Option<Place>,
    /// The window has shrunk since, so that the page does not begin where the window ends.
    is_stale: bool,
}

impl Paging {
    /// There is something to claim before the horizon.
    fn begin_again(&mut self, after: Place) {
        self.is_wanted_at_once = true;
        self.again_after = Some(self.again_after.map_or(after, |again| again.min(after)));
    }
}

impl Listed {
    /// The window ends earlier than it did; `last_batch` may be the first that tells so of some of its events.
    pub(super) fn has_shrunk(&mut self, last_batch: u64) {
        if let Some(page) = &mut self.paging.under_way {
            page.is_stale = true;
        }
        if !self.is_exclusive {
            self.paging.to_release = Some(last_batch);
        }
    }

    /// The event that a page has, or should have had, there is not taken in, since `batch` changes it.
    fn pass_over(&mut self, batch: Option<u64>, place: Place) {
        let Some(batch) = batch else { return };
        let after = Place { next_ms: place.next_ms, sequence: place.sequence.saturating_sub(1) };
        let passed = self.paging.passed_over.unwrap_or(PassedOver { batch, after });
        self.paging.passed_over = Some(PassedOver { batch: passed.batch.max(batch), after: passed.after.min(after) });
    }

    /// What is to be given back now.
    fn release(&mut self, committed: u64) -> Option<Wish> {
        // A page that is under way may claim some of it again.
        if self.paging.under_way.is_some() {
            return None;
        }
        self.paging.to_release.take_if(|batch| *batch <= committed)?;
        Some(Wish::Release { guest: Arc::clone(&self.name), from: self.window.beyond() })
    }
}

impl Agenda {
    /// What is to be done about the store now, in this order. `committed` is the newest batch on disk.
    pub fn take_wishes(&mut self, now_ms: u64, committed: u64) -> Vec<Wish> {
        self.settle(committed);
        let until = Place { next_ms: self.look_ahead_until(now_ms), ..Place::LAST };
        let mut wishes = Vec::new();
        for number in 0..self.guests.len() {
            wishes.extend(self.guests[number].release(committed));
            if self.page_at_ms(&self.guests[number]).is_none_or(|at_ms| at_ms > now_ms) {
                continue;
            }
            self.last_read += 1;
            let listed = &mut self.guests[number];
            let horizon = listed.window.horizon();
            // There may be something to claim up to the horizon, though the clock was set back.
            let until = horizon.filter(|_| !listed.is_exclusive).map_or(until, |horizon| horizon.max(until));
            listed.paging.is_wanted_at_once = false;
            let again_after = listed.paging.again_after.take();
            listed.paging.under_way =
                Some(UnderWay { number: self.last_read, until, committed, again_after, is_stale: false });
            let claim = Claim {
                guest: Arc::clone(&listed.name),
                after: again_after.map_or(horizon, |again| horizon.min(Some(again))),
                until,
                // A window that has room for a page is less than half full.
                limit: (self.limits.max_in_memory / 4).max(1),
                max_bytes: self.limits.max_in_memory_bytes / 4,
            };
            wishes.push(Wish::Page { number: self.last_read, claim });
        }
        wishes
    }

    /// When a page is wanted, unless one is under way.
    pub(super) fn page_at_ms(&self, listed: &Listed) -> Option<u64> {
        let is_busy = listed.paging.under_way.is_some() || listed.paging.to_release.is_some();
        if !listed.runs || is_busy || !listed.window.has_room() || listed.is_all_in_memory() {
            return None;
        }
        match listed.window.horizon() {
            // Half of the look-ahead is left then.
            Some(horizon) if !listed.paging.is_wanted_at_once => {
                Some(horizon.next_ms.saturating_sub(self.limits.look_ahead_ms / 2))
            }
            _ => Some(0),
        }
    }

    pub(super) fn look_ahead_until(&self, now_ms: u64) -> u64 {
        now_ms.saturating_add(self.limits.look_ahead_ms).min(LATEST_MS)
    }

    /// A page has been read.
    pub fn page(&mut self, number: u64, page: Page) {
        let Some((guest, UnderWay { until, is_stale, .. })) = self.asked_for(number) else { return };
        let listed = &mut self.guests[guest];
        let complete_until = if page.is_last { Some(until) } else { page.events.last().map(Event::place) };
        if let Some(end) = complete_until.filter(|end| !page.is_last && Some(*end) < listed.window.horizon()) {
            // Earlier events have filled it.
            listed.paging.begin_again(end);
        }
        if let Some(horizon) = complete_until.filter(|_| !is_stale) {
            listed.window.extend_to(horizon);
        }
        for event in page.events {
            let is_so = self.unsettled.get(event.sequence).is_none_or(|now| now.as_deref() == Some(&event));
            if is_so && listed.window.covers(event.place()) {
                listed.window.insert(Arc::new(event));
            } else if !is_so && !listed.is_exclusive {
                // Either this host has changed it since, or another has after this one: a page that is read when the
                // change is on disk tells which.
                listed.pass_over(self.unsettled.pending_from(event.sequence), event.place());
            }
        }
        for (batch, event) in self.unsettled.pending() {
            let is_here = listed.window.get(event.sequence).is_some();
            if event.guest != listed.name || event.parked || is_here || !listed.window.covers(event.place()) {
                continue;
            }
            if listed.is_exclusive {
                listed.window.insert(Arc::clone(event));
            } else {
                listed.pass_over(Some(batch), event.place());
            }
        }
        self.trim();
    }

    /// A page could not be read; another will be asked for.
    pub fn page_failed(&mut self, number: u64) {
        if let Some((guest, UnderWay { again_after: Some(after), .. })) = self.asked_for(number) {
            self.guests[guest].paging.begin_again(after);
        }
    }

    /// The guest for which the page was asked; it is no longer under way.
    fn asked_for(&mut self, number: u64) -> Option<(usize, UnderWay)> {
        self.guests.iter_mut().enumerate().find_map(|(guest, listed)| {
            let page = listed.paging.under_way.take_if(|page| page.number == number)?;
            Some((guest, page))
        })
    }

    /// Gives back what has no room in memory.
    pub(super) fn trim(&mut self) {
        for listed in &mut self.guests {
            if listed.window.trim() {
                listed.has_shrunk(self.last_batch);
            }
        }
    }

    /// Everything up to the batch `committed` is on disk.
    pub fn settle(&mut self, committed: u64) {
        // What is being read may have been read before that.
        let pages = self.guests.iter().filter_map(|listed| listed.paging.under_way).map(|page| page.committed);
        let oldest_read = pages.chain(self.looks.iter().map(|(_, committed)| *committed)).min();
        let settled = oldest_read.map_or(committed, |oldest| oldest.min(committed));
        self.unsettled.settle(settled);
        for Listed { paging, .. } in &mut self.guests {
            if let Some(PassedOver { after, .. }) = paging.passed_over.take_if(|passed| passed.batch <= settled) {
                paging.begin_again(after);
            }
        }
    }
}
