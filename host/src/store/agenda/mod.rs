//! Everything that the loop knows of pending events: the next ones of each guest in memory, the changes that are on their
//! way to the disk, and how many there are in all. It is a plain data structure: pages are asked for and brought by
//! whoever drives it, and what has changed goes into a [`Batch`]. It never reads a disk and never looks at a clock.
//!
//! **Completeness.** Each guest's `Window` holds every event up to its horizon. A page moves the horizon on; an event
//! that is scheduled nearer goes into the window at once. A page is read from what was committed when it was asked for
//! or later, and changes that were not committed then are laid over it ([`Unsettled`]), so that no event falls between
//! a page and the memory.
//!
//! **Transactions.** What a handler schedules and cancels is noted, seen by the handler's own reads, and takes effect at
//! [`Agenda::commit`] or not at all. What the host itself does about an event goes the same way.
//!
//! **Sharing.** In a store that several hosts share, the memory holds only what this host has claimed. Then nothing follows
//! from how many events there are, what the host does not hold is left to whoever claims it, and events of other hosts
//! that stand before the horizon come with a later page, which a memory that is half full does not ask for: until then
//! they are left to others.

mod listing;
mod pages;
mod unsettled;
mod window;

#[cfg(test)]
mod model_disk;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use self::pages::Paging;
pub use self::pages::Wish;
use self::unsettled::{Now, Unsettled};
use self::window::Window;
use super::backend::StoredGuest;
use super::batch::{Batch, EventChange, EventCount};
use super::event::{Event, EventId, LATEST_MS, Place, Repetition};

/// How much of the pending events is in memory, and how many there may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgendaLimits {
    /// Events that are due within this time are in memory, as far as there is room.
    pub look_ahead_ms: u64,
    /// Events of one guest in memory.
    pub max_in_memory: usize,
    /// Payloads of one guest's events in memory, in bytes. One event may go beyond it.
    pub max_in_memory_bytes: usize,
    /// Pending events of one guest.
    pub max_pending: u64,
}

/// The number of a guest in an agenda.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgendaGuest(usize);

/// An event that is to be scheduled.
#[derive(Clone, Debug)]
pub struct NewEvent {
    pub kind: Arc<str>,
    pub payload: Arc<[u8]>,
    /// In milliseconds since 1970-01-01 UTC; above [`LATEST_MS`] it is that.
    pub due_ms: u64,
    pub repeat: Option<Repetition>,
}

/// What is known of an event without a look at the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    Pending(Arc<Event>),
    NotPending,
    /// If it is pending, it is as the disk has it.
    AsOnDisk,
}

/// A guest has as many events pending as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{limit} events are pending already; cancel some or raise events.max_pending")]
pub struct TooManyPending {
    pub limit: u64,
}

/// How many events there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgendaCounts {
    /// The parked ones among them.
    pub pending: u64,
    pub in_memory: u64,
    pub parked: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Agenda {
    limits: AgendaLimits,
    /// Whether the store is this host's alone.
    is_exclusive: bool,
    guests: Vec<Listed>,
    numbers: FxHashMap<Arc<str>, usize>,
    next_sequence: u64,
    /// What the open transaction has done, by sequence.
    noted: BTreeMap<u64, Noted>,
    /// Whether it has scheduled anything.
    noted_new: bool,
    /// The newest batch that anything went into.
    last_batch: u64,
    unsettled: Unsettled,
    /// Looks at the disk that are under way, each with the newest batch on disk when it began.
    looks: Vec<(u64, u64)>,
    /// The number of the last page or look.
    last_read: u64,
}

/// What is known of one guest's events.
#[derive(Debug)]
struct Listed {
    name: Arc<str>,
    /// Whether it can run events in this run of the host.
    runs: bool,
    /// Whether the store is this host's alone, so that the numbers below are all there are.
    is_exclusive: bool,
    window: Window,
    pending: u64,
    parked: u64,
    /// By how much the open transaction changes `pending`.
    noted_pending: i64,
    paging: Paging,
}

#[derive(Debug)]
struct Noted {
    before: Option<Arc<Event>>,
    now: Now,
}

impl Listed {
    fn new(name: Arc<str>, is_exclusive: bool, limits: &AgendaLimits) -> Self {
        let window = Window::new(limits.max_in_memory, limits.max_in_memory_bytes);
        let paging = Paging::default();
        Self { name, runs: false, is_exclusive, window, pending: 0, parked: 0, noted_pending: 0, paging }
    }

    /// Whether it is certain that every event that is to be run is in memory.
    fn is_all_in_memory(&self) -> bool {
        self.runs && self.is_exclusive && self.pending.saturating_sub(self.parked) == self.window.len() as u64
    }

    /// Moves the horizon on where that takes no page.
    fn look_ahead(&mut self, until_ms: u64) {
        if self.is_all_in_memory() {
            self.window.extend_to(Place { next_ms: until_ms, ..Place::LAST });
        }
    }

    /// There are so many more, or fewer, events.
    fn count(&mut self, pending: i64, parked: i64) {
        let counted = self.pending.checked_add_signed(pending).zip(self.parked.checked_add_signed(parked));
        if counted.is_none() && self.is_exclusive {
            tracing::error!(guest = &*self.name, "more events end than were pending; the store has counted wrongly");
        }
        self.pending = self.pending.saturating_add_signed(pending);
        self.parked = self.parked.saturating_add_signed(parked);
    }
}

/// The guests.
impl Agenda {
    /// An agenda for the guests of a store that is this host's alone, none of which runs yet.
    pub fn new(limits: AgendaLimits, stored: &[StoredGuest], next_sequence: u64) -> Self {
        let mut agenda = Self {
            limits,
            is_exclusive: true,
            guests: Vec::new(),
            numbers: FxHashMap::default(),
            next_sequence: next_sequence.max(1),
            noted: BTreeMap::new(),
            noted_new: false,
            last_batch: 0,
            unsettled: Unsettled::default(),
            looks: Vec::new(),
            last_read: 0,
        };
        for guest in stored {
            let number = agenda.guest(&guest.name);
            let listed = &mut agenda.guests[number.0];
            (listed.pending, listed.parked) = (guest.pending, guest.parked);
        }
        agenda
    }

    /// The same agenda for a store that is this host's alone, or is not ([`Loaded::is_exclusive`]).
    ///
    /// [`Loaded::is_exclusive`]: super::Loaded::is_exclusive
    pub fn exclusive(mut self, is_exclusive: bool) -> Self {
        self.is_exclusive = is_exclusive;
        self.guests.iter_mut().for_each(|listed| listed.is_exclusive = is_exclusive);
        self
    }

    /// The number of the guest with that name.
    pub fn guest(&mut self, name: &Arc<str>) -> AgendaGuest {
        let Self { guests, limits, is_exclusive, .. } = self;
        AgendaGuest(*self.numbers.entry(Arc::clone(name)).or_insert_with(|| {
            guests.push(Listed::new(Arc::clone(name), *is_exclusive, limits));
            guests.len() - 1
        }))
    }

    /// The name of a guest.
    pub fn name(&self, guest: AgendaGuest) -> &Arc<str> {
        &self.guests[guest.0].name
    }

    /// Whether this guest's events are run. Those of a guest that does not run wait on disk and cost nothing.
    pub fn set_running(&mut self, guest: AgendaGuest, runs: bool) {
        let listed = &mut self.guests[guest.0];
        if listed.runs != runs {
            listed.runs = runs;
            listed.window.clear();
            listed.has_shrunk(self.last_batch);
        }
    }

    pub fn counts(&self) -> AgendaCounts {
        self.guests.iter().fold(AgendaCounts::default(), |sum, guest| AgendaCounts {
            pending: sum.pending + guest.pending,
            in_memory: sum.in_memory + guest.window.len() as u64,
            parked: sum.parked + guest.parked,
        })
    }
}

/// The transaction.
impl Agenda {
    /// Schedules an event and answers its id.
    pub fn schedule(&mut self, guest: AgendaGuest, new: NewEvent) -> Result<EventId, TooManyPending> {
        let limit = self.limits.max_pending;
        let listed = &mut self.guests[guest.0];
        if listed.pending.saturating_add_signed(listed.noted_pending) >= limit {
            return Err(TooManyPending { limit });
        }
        let due_ms = new.due_ms.min(LATEST_MS);
        let event = Event {
            sequence: self.next_sequence,
            guest: Arc::clone(&listed.name),
            kind: new.kind,
            payload: new.payload,
            due_ms,
            next_ms: due_ms,
            repeat: new.repeat,
            attempts: 0,
            parked: false,
            error: None,
        };
        self.next_sequence += 1;
        self.noted_new = true;
        let id = event.id();
        self.note(None, Some(event));
        Ok(id)
    }

    /// Lets an event, which is pending as `before`, be `now`, or not be pending any more.
    pub fn replace(&mut self, before: &Arc<Event>, now: Option<Event>) {
        self.note(Some(before), now);
    }

    fn note(&mut self, before: Option<&Arc<Event>>, now: Option<Event>) {
        let Some(any) = before.map(|before| &**before).or(now.as_ref()) else { return };
        let sequence = any.sequence;
        let guest = self.guest(&Arc::clone(&any.guest));
        let noted =
            self.noted.entry(sequence).or_insert_with(|| Noted { before: before.cloned(), now: before.cloned() });
        self.guests[guest.0].noted_pending += i64::from(now.is_some()) - i64::from(noted.now.is_some());
        noted.now = now.map(Arc::new);
    }

    /// What is known of an event of that guest. Others' are none of its business.
    pub fn find(&self, guest: AgendaGuest, sequence: u64) -> Known {
        let listed = &self.guests[guest.0];
        if let Some(now) = self.changed(sequence) {
            let own = now.as_ref().filter(|event| event.guest == listed.name);
            return own.map_or(Known::NotPending, |event| Known::Pending(Arc::clone(event)));
        }
        match listed.window.get(sequence) {
            Some(event) => Known::Pending(Arc::clone(event)),
            None if listed.is_all_in_memory() && listed.parked == 0 => Known::NotPending,
            None => Known::AsOnDisk,
        }
    }

    /// What is known of an event, whoever's it is.
    pub fn find_any(&self, sequence: u64) -> Known {
        if let Some(now) = self.changed(sequence) {
            return now.clone().map_or(Known::NotPending, Known::Pending);
        }
        let in_memory = self.guests.iter().find_map(|listed| listed.window.get(sequence));
        in_memory.map_or(Known::AsOnDisk, |event| Known::Pending(Arc::clone(event)))
    }

    /// Whether the event is pending exactly so, as far as is known: an event of which only the disk knows is.
    pub fn is_current(&self, event: &Event) -> bool {
        let guest = self.numbers.get(&event.guest);
        guest.is_none_or(|guest| self.may_be(AgendaGuest(*guest), event.sequence, Some(event)))
    }

    /// What the open transaction, or one that is not on disk yet, has made of an event.
    fn changed(&self, sequence: u64) -> Option<&Now> {
        self.noted.get(&sequence).map(|noted| &noted.now).or_else(|| self.unsettled.get(sequence))
    }

    /// Somebody looks at the disk. Until [`end_look`](Self::end_look) with the number that this answers, what has
    /// changed meanwhile is known. `committed` is the newest batch on disk.
    pub fn begin_look(&mut self, committed: u64) -> u64 {
        self.last_read += 1;
        self.looks.push((self.last_read, committed));
        self.last_read
    }

    pub fn end_look(&mut self, number: u64) {
        self.looks.retain(|(look, _)| *look != number);
    }

    /// What was noted takes effect, and is added to the batch. Answers whether there was anything.
    pub fn commit(&mut self, now_ms: u64, batch: &mut Batch) -> bool {
        if self.noted.is_empty() {
            return false;
        }
        if std::mem::take(&mut self.noted_new) {
            batch.next_sequence = Some(self.next_sequence);
        }
        let mut noted = std::mem::take(&mut self.noted);
        // What the same handler has scheduled and cancelled never was.
        noted.retain(|_, Noted { before, now }| before.is_some() || now.is_some());
        for (sequence, Noted { before, now }) in &noted {
            self.apply(now_ms, *sequence, before.as_deref(), now, batch);
        }
        self.guests.iter_mut().for_each(|listed| listed.noted_pending = 0);
        self.last_batch = batch.number;
        self.trim();
        for (sequence, Noted { now, .. }) in noted {
            batch.events.push(match &now {
                // Only now is it known what has room in memory.
                Some(event) => EventChange::Put { event: Arc::clone(event), claimed: self.is_in_memory(event) },
                None => EventChange::Removed { sequence },
            });
            self.unsettled.note(batch.number, sequence, now);
        }
        true
    }

    fn is_in_memory(&self, event: &Event) -> bool {
        self.numbers.get(&event.guest).is_some_and(|guest| self.guests[*guest].window.get(event.sequence).is_some())
    }

    /// Nothing of what was noted has happened, but for the sequences that were given out.
    pub fn rollback(&mut self) {
        if !self.noted.is_empty() {
            self.noted.clear();
            self.guests.iter_mut().for_each(|listed| listed.noted_pending = 0);
        }
    }

    fn apply(&mut self, now_ms: u64, sequence: u64, before: Option<&Event>, now: &Now, batch: &mut Batch) {
        let Some(any) = before.or(now.as_deref()) else { return };
        let guest = self.guest(&Arc::clone(&any.guest));
        debug_assert!(self.may_be(guest, sequence, before), "event {sequence} was not {before:?}");
        let until_ms = self.look_ahead_until(now_ms);
        let listed = &mut self.guests[guest.0];
        listed.look_ahead(until_ms);
        let is_parked = |event: Option<&Event>| i64::from(event.is_some_and(|event| event.parked));
        let pending = i64::from(now.is_some()) - i64::from(before.is_some());
        let parked = is_parked(now.as_deref()) - is_parked(before);
        listed.count(pending, parked);
        match now {
            Some(event) if listed.runs && !event.parked && listed.window.covers(event.place()) => {
                listed.window.insert(Arc::clone(event));
            }
            _ => listed.window.remove(sequence),
        }
        batch.bytes += now.as_ref().map_or(0, |event| event.payload.len());
        match batch.counts.iter_mut().find(|of| of.guest == listed.name) {
            Some(of) => (of.pending, of.parked) = (of.pending + pending, of.parked + parked),
            None if (pending, parked) == (0, 0) => {}
            None => batch.counts.push(EventCount { guest: Arc::clone(&listed.name), pending, parked }),
        }
    }

    /// Whether what is known allows that an event is so; `None`: not pending.
    fn may_be(&self, guest: AgendaGuest, sequence: u64, so: Option<&Event>) -> bool {
        match self.find(guest, sequence) {
            Known::Pending(known) => so == Some(&*known),
            Known::NotPending => so.is_none(),
            Known::AsOnDisk => true,
        }
    }
}

/// Running events.
impl Agenda {
    /// The event to be run now, if one is due.
    pub fn next_due(&self, now_ms: u64, is_ready: impl Fn(AgendaGuest) -> bool) -> Option<(AgendaGuest, &Arc<Event>)> {
        self.next(is_ready).filter(|(_, event)| event.next_ms <= now_ms)
    }

    /// When there is something to do, in milliseconds since 1970-01-01 UTC: an event is due, or a page is wanted.
    pub fn next_wake_ms(&self, is_ready: impl Fn(AgendaGuest) -> bool) -> Option<u64> {
        let page_at_ms = self.guests.iter().filter_map(|listed| self.page_at_ms(listed)).min();
        let due_ms = self.next(is_ready).map(|(_, event)| event.next_ms);
        page_at_ms.into_iter().chain(due_ms).min()
    }

    /// The first event of all guests that are ready, so that events which are due together run in the order of their
    /// places whoever they belong to. Nothing while there may be one before it that is not in memory.
    fn next(&self, is_ready: impl Fn(AgendaGuest) -> bool) -> Option<(AgendaGuest, &Arc<Event>)> {
        let ready = || self.guests.iter().enumerate().filter(|(number, of)| of.runs && is_ready(AgendaGuest(*number)));
        let horizon = ready().map(|(_, listed)| listed.known_until()).min()??;
        let firsts = ready().filter_map(|(number, listed)| Some((AgendaGuest(number), listed.window.first()?)));
        firsts.min_by_key(|(_, event)| event.place()).filter(|(_, event)| event.place() <= horizon)
    }
}

impl Listed {
    /// Up to which place every event is known.
    fn known_until(&self) -> Option<Place> {
        if self.is_all_in_memory() { Some(Place::LAST) } else { self.window.horizon() }
    }
}
