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

mod listing;
mod unsettled;
mod window;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use self::unsettled::{Now, Unsettled};
use self::window::Window;
use super::backend::{Claim, StoredGuest};
use super::batch::{Batch, EventChange, EventCount};
use super::event::{Event, EventId, LATEST_MS, Place, Repetition};

/// How much of the pending events is in memory, and how many there may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgendaLimits {
    /// Events that are due within this time are in memory, as far as there is room.
    pub look_ahead_ms: u64,
    /// Events of one guest in memory.
    pub max_in_memory: usize,
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

/// What an agenda wants done about the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Read these events and bring them to [`Agenda::page`] under this number.
    Page { number: u64, claim: Claim },
    /// Give these back: they have no room in memory.
    Release { guest: Arc<str>, from: Place },
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
    guests: Vec<Listed>,
    numbers: FxHashMap<Arc<str>, usize>,
    next_sequence: u64,
    /// What the open transaction has done, by sequence.
    noted: BTreeMap<u64, Noted>,
    /// Whether it has scheduled anything.
    noted_new: bool,
    unsettled: Unsettled,
    wishes: Vec<Wish>,
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
    window: Window,
    pending: u64,
    parked: u64,
    /// By how much the open transaction changes `pending`.
    noted_pending: i64,
    paging: Option<Paging>,
}

/// A page that was asked for.
#[derive(Clone, Copy, Debug)]
struct Paging {
    number: u64,
    until: Place,
    /// The newest batch on disk at that time.
    committed: u64,
}

#[derive(Debug)]
struct Noted {
    before: Option<Arc<Event>>,
    now: Now,
}

impl Listed {
    fn new(name: Arc<str>, capacity: usize) -> Self {
        Self { name, runs: false, window: Window::new(capacity), pending: 0, parked: 0, noted_pending: 0, paging: None }
    }

    /// Whether every event that is to be run is in memory.
    fn is_all_in_memory(&self) -> bool {
        self.runs && self.pending - self.parked == self.window.len() as u64
    }

    /// Moves the horizon on where that takes no page.
    fn look_ahead(&mut self, until_ms: u64) {
        if self.is_all_in_memory() {
            self.window.extend_to(Place { next_ms: until_ms, ..Place::LAST });
        }
    }
}

/// The guests.
impl Agenda {
    /// An agenda for the guests of a store, none of which runs yet.
    pub fn new(limits: AgendaLimits, stored: &[StoredGuest], next_sequence: u64) -> Self {
        let mut agenda = Self {
            limits,
            guests: Vec::new(),
            numbers: FxHashMap::default(),
            next_sequence: next_sequence.max(1),
            noted: BTreeMap::new(),
            noted_new: false,
            unsettled: Unsettled::default(),
            wishes: Vec::new(),
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

    /// The number of the guest with that name.
    pub fn guest(&mut self, name: &Arc<str>) -> AgendaGuest {
        let (guests, capacity) = (&mut self.guests, self.limits.max_in_memory);
        AgendaGuest(*self.numbers.entry(Arc::clone(name)).or_insert_with(|| {
            guests.push(Listed::new(Arc::clone(name), capacity));
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
            listed.paging = None;
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
        let changed = self.noted.get(&sequence).map(|noted| &noted.now).or_else(|| self.unsettled.get(sequence));
        if let Some(now) = changed {
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
        if let Some(now) = self.noted.get(&sequence).map(|noted| &noted.now).or_else(|| self.unsettled.get(sequence)) {
            return now.clone().map_or(Known::NotPending, Known::Pending);
        }
        let in_memory = self.guests.iter().find_map(|listed| listed.window.get(sequence));
        in_memory.map_or(Known::AsOnDisk, |event| Known::Pending(Arc::clone(event)))
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
        for (sequence, Noted { before, now }) in std::mem::take(&mut self.noted) {
            self.apply(now_ms, sequence, before.as_deref(), now, batch);
        }
        self.guests.iter_mut().for_each(|listed| listed.noted_pending = 0);
        self.trim();
        true
    }

    /// Nothing of what was noted has happened, but for the sequences that were given out.
    pub fn rollback(&mut self) {
        if !self.noted.is_empty() {
            self.noted.clear();
            self.guests.iter_mut().for_each(|listed| listed.noted_pending = 0);
        }
    }

    fn apply(&mut self, now_ms: u64, sequence: u64, before: Option<&Event>, now: Now, batch: &mut Batch) {
        let Some(any) = before.or(now.as_deref()) else {
            // Scheduled and cancelled by the same handler.
            return;
        };
        let until_ms = self.look_ahead_until(now_ms);
        let number = self.guest(&Arc::clone(&any.guest)).0;
        let listed = &mut self.guests[number];
        listed.look_ahead(until_ms);
        let is_parked = |event: Option<&Event>| u64::from(event.is_some_and(|event| event.parked));
        listed.pending = listed.pending + u64::from(now.is_some()) - u64::from(before.is_some());
        listed.parked = listed.parked + is_parked(now.as_deref()) - is_parked(before);
        match &now {
            Some(event) if listed.runs && !event.parked && listed.window.covers(event.place()) => {
                listed.window.insert(Arc::clone(event));
            }
            _ => listed.window.remove(sequence),
        }
        batch.bytes += now.as_ref().map_or(0, |event| event.payload.len());
        batch.events.push(match &now {
            Some(event) => EventChange::Put(Arc::clone(event)),
            None => EventChange::Removed { sequence },
        });
        let count = EventCount { guest: Arc::clone(&listed.name), pending: listed.pending, parked: listed.parked };
        match batch.counts.iter_mut().find(|of| of.guest == count.guest) {
            Some(of) => *of = count,
            None => batch.counts.push(count),
        }
        self.unsettled.note(batch.number, sequence, now);
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

/// Pages.
impl Agenda {
    /// What is to be done about the store now. `committed` is the newest batch on disk.
    pub fn take_wishes(&mut self, now_ms: u64, committed: u64) -> Vec<Wish> {
        let until = Place { next_ms: self.look_ahead_until(now_ms), ..Place::LAST };
        for number in 0..self.guests.len() {
            let listed = &self.guests[number];
            if self.page_at_ms(listed).is_none_or(|at_ms| at_ms > now_ms) {
                continue;
            }
            let claim = Claim {
                guest: Arc::clone(&listed.name),
                after: listed.window.horizon(),
                until,
                limit: self.page_limit(),
            };
            self.last_read += 1;
            self.guests[number].paging = Some(Paging { number: self.last_read, until, committed });
            self.wishes.push(Wish::Page { number: self.last_read, claim });
        }
        std::mem::take(&mut self.wishes)
    }

    /// When a page is wanted, unless one is under way.
    fn page_at_ms(&self, listed: &Listed) -> Option<u64> {
        let is_full = listed.window.len() >= self.limits.max_in_memory.div_ceil(2);
        if !listed.runs || listed.paging.is_some() || is_full || listed.is_all_in_memory() {
            return None;
        }
        // Half of the look-ahead is left then.
        Some(listed.window.horizon().map_or(0, |horizon| horizon.next_ms.saturating_sub(self.limits.look_ahead_ms / 2)))
    }

    fn page_limit(&self) -> usize {
        (self.limits.max_in_memory / 4).max(1)
    }

    fn look_ahead_until(&self, now_ms: u64) -> u64 {
        now_ms.saturating_add(self.limits.look_ahead_ms).min(LATEST_MS)
    }

    /// A page has been read. One whose window has changed meanwhile, so that it does not begin where the window ends, is
    /// of no use.
    pub fn page(&mut self, number: u64, events: Vec<Event>) {
        let limit = self.page_limit();
        let Some((listed, paging)) = self.asked_for(number) else { return };
        let horizon = match events.last() {
            Some(last) if events.len() >= limit => last.place(),
            _ => paging.until,
        };
        let listed = &mut self.guests[listed];
        listed.window.extend_to(horizon);
        let unchanged = events.into_iter().filter(|event| self.unsettled.get(event.sequence).is_none());
        unchanged.for_each(|event| listed.window.insert(Arc::new(event)));
        for event in self.unsettled.pending() {
            if event.guest == listed.name && !event.parked && listed.window.covers(event.place()) {
                listed.window.insert(Arc::clone(event));
            }
        }
        self.trim();
    }

    /// A page could not be read; another will be asked for.
    pub fn page_failed(&mut self, number: u64) {
        self.asked_for(number);
    }

    /// The guest for which the page was asked; it is no longer under way.
    fn asked_for(&mut self, number: u64) -> Option<(usize, Paging)> {
        self.guests.iter_mut().enumerate().find_map(|(guest, listed)| {
            let paging = listed.paging.take_if(|paging| paging.number == number)?;
            Some((guest, paging))
        })
    }

    /// Gives back what has no room in memory.
    fn trim(&mut self) {
        for listed in &mut self.guests {
            if let Some(from) = listed.window.trim() {
                // A page that is under way begins behind events that are not in memory any more.
                listed.paging = None;
                self.wishes.push(Wish::Release { guest: Arc::clone(&listed.name), from });
            }
        }
    }

    /// Everything up to the batch `committed` is on disk.
    pub fn settle(&mut self, committed: u64) {
        // What is being read may have been read before that.
        let pages = self.guests.iter().filter_map(|listed| listed.paging).map(|paging| paging.committed);
        let oldest_read = pages.chain(self.looks.iter().map(|(_, committed)| *committed)).min();
        self.unsettled.settle(oldest_read.map_or(committed, |oldest| oldest.min(committed)));
    }
}
