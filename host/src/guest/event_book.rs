//! The events of guests as a handler sees them: the agenda, and the way to what only the disk has. What a handler
//! schedules and cancels is noted in the agenda and bounded here; looking an event up that is not in memory is the one
//! thing a handler may wait for, no longer than its deadline.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::stage::{GuestId, MAX_EFFECTS};
use crate::clock::SharedClock;
use crate::store::agenda::{Known, NewEvent, TooManyPending};
use crate::store::reader::AskError;
use crate::store::{Agenda, AgendaGuest, Batch, Event, EventId, EventQuery, Page, Reader};

/// The disk has not answered a handler in time, or cannot. It is nobody's fault: neither the guest nor an event is
/// counted as failed for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DiskLate(pub String);

/// How long a handler may wait for the disk in all.
pub struct Patience {
    pub clock: SharedClock,
    /// By the monotonic clock.
    pub until: Duration,
}

impl Patience {
    /// What is left; a moment in any case, since memory may have the answer.
    fn left(&self) -> Duration {
        self.until.saturating_sub(self.clock.now()).max(SHORTEST_WAIT)
    }
}

/// See [`Patience`].
const SHORTEST_WAIT: Duration = Duration::from_millis(2);

/// The way to what the disk has. Each call takes at most the time it is given; an error says why there is no answer.
pub trait EventsOnDisk: Send {
    /// The event with that sequence, if it is pending.
    fn event(&self, sequence: u64, within: Duration) -> Result<Option<Event>, DiskLate>;

    /// Pending events in the order of their ids.
    fn events(&self, query: EventQuery, within: Duration) -> Result<Page, DiskLate>;
}

impl EventsOnDisk for Reader {
    fn event(&self, sequence: u64, within: Duration) -> Result<Option<Event>, DiskLate> {
        Ok(self.ask_within(within, move |store| store.event(sequence))?)
    }

    fn events(&self, query: EventQuery, within: Duration) -> Result<Page, DiskLate> {
        Ok(self.ask_within(within, move |store| store.events(&query).map(Page::into_events))?)
    }
}

impl From<AskError> for DiskLate {
    fn from(error: AskError) -> Self {
        DiskLate(error.to_string())
    }
}

/// Why an event was not scheduled.
#[derive(Debug, thiserror::Error)]
pub enum Unscheduled {
    #[error(transparent)]
    TooManyPending(#[from] TooManyPending),
    /// The handler has done as much as one may.
    #[error("a handler may schedule and cancel at most {MAX_EFFECTS} events, and of {limit_bytes} bytes together")]
    HandlerFull { limit_bytes: usize },
}

/// All events of all guests.
pub struct EventBook {
    pub agenda: Agenda,
    numbers: FxHashMap<GuestId, AgendaGuest>,
    guests: FxHashMap<AgendaGuest, GuestId>,
    disk: Option<Box<dyn EventsOnDisk>>,
    /// Payloads that one handler may schedule.
    max_bytes: usize,
    noted: usize,
    noted_bytes: usize,
}

impl EventBook {
    /// A book over an agenda; `max_bytes` of payloads are what one handler may schedule. Without a disk all events are in
    /// memory.
    pub fn new(agenda: Agenda, disk: Option<Box<dyn EventsOnDisk>>, max_bytes: usize) -> Self {
        Self {
            agenda,
            numbers: FxHashMap::default(),
            guests: FxHashMap::default(),
            disk,
            max_bytes,
            noted: 0,
            noted_bytes: 0,
        }
    }

    /// Lets a guest of this run have events under its name.
    pub fn add_guest(&mut self, guest: GuestId, name: &Arc<str>) {
        let number = self.agenda.guest(name);
        self.agenda.set_running(number, true);
        self.numbers.insert(guest, number);
        self.guests.insert(number, guest);
    }

    /// A guest that will not run again: its events wait for another run of the host.
    pub fn remove_guest(&mut self, guest: GuestId) {
        if let Some(number) = self.numbers.get(&guest) {
            self.agenda.set_running(*number, false);
        }
    }

    /// The guest with that number in the agenda.
    pub fn guest(&self, number: AgendaGuest) -> Option<GuestId> {
        self.guests.get(&number).copied()
    }

    /// Schedules an event for the handler that runs.
    pub(super) fn schedule(&mut self, guest: GuestId, new: NewEvent) -> Result<EventId, Unscheduled> {
        let bytes = new.payload.len() + new.kind.len();
        if self.noted >= MAX_EFFECTS || self.noted_bytes + bytes > self.max_bytes {
            return Err(Unscheduled::HandlerFull { limit_bytes: self.max_bytes });
        }
        let id = self.agenda.schedule(self.number(guest), new)?;
        self.noted += 1;
        self.noted_bytes += bytes;
        Ok(id)
    }

    /// Cancels an event for the handler that runs; false when the guest has none with that id.
    pub(super) fn cancel(&mut self, guest: GuestId, id: EventId, patience: &Patience) -> wasmtime::Result<bool> {
        let Some(event) = self.get(guest, id, patience)? else { return Ok(false) };
        if self.noted >= MAX_EFFECTS {
            return Err(wasmtime::Error::new(Unscheduled::HandlerFull { limit_bytes: self.max_bytes }));
        }
        self.noted += 1;
        self.agenda.replace(&event, None);
        Ok(true)
    }

    /// The event of a guest, as the handler that runs sees it. Every id that a repeating event has had names it.
    pub(super) fn get(&self, guest: GuestId, id: EventId, patience: &Patience) -> Result<Option<Arc<Event>>, DiskLate> {
        let number = self.number(guest);
        let found = match (self.agenda.find(number, id.sequence), &self.disk) {
            (Known::Pending(event), _) => Some(event),
            (Known::NotPending, _) | (Known::AsOnDisk, None) => None,
            (Known::AsOnDisk, Some(disk)) => disk
                .event(id.sequence, patience.left())?
                .filter(|event| self.agenda.name(number) == &event.guest)
                .map(Arc::new),
        };
        Ok(found.filter(|event| event.repeat.is_some() || event.due_ms == id.due_ms))
    }

    /// The guest's first `limit` events behind `after`, with payloads of about `max_bytes` at most, as the handler that runs sees them.
    pub(super) fn pending(
        &self,
        guest: GuestId,
        after: Option<EventId>,
        limit: usize,
        max_bytes: usize,
        patience: &Patience,
    ) -> Result<Vec<Arc<Event>>, DiskLate> {
        let number = self.number(guest);
        self.agenda.list(number, after, limit, max_bytes, |after, limit| match &self.disk {
            None => Ok(Page::nothing()),
            Some(disk) => {
                let guest = Some(Arc::clone(self.agenda.name(number)));
                disk.events(EventQuery { guest, after, limit, max_bytes, ..EventQuery::default() }, patience.left())
            }
        })
    }

    fn number(&self, guest: GuestId) -> AgendaGuest {
        *self.numbers.get(&guest).expect("a guest that is called was added when it was loaded")
    }

    /// Whether the handler that runs has scheduled or cancelled anything.
    pub(super) fn has_noted(&self) -> bool {
        self.noted > 0
    }

    /// What the handler did stands, and is added to the batch. Answers whether there was anything.
    pub(super) fn commit(&mut self, now_ms: u64, batch: &mut Batch) -> bool {
        self.forget_noted();
        self.agenda.commit(now_ms, batch)
    }

    pub(super) fn rollback(&mut self) {
        self.forget_noted();
        self.agenda.rollback();
    }

    fn forget_noted(&mut self) {
        self.noted = 0;
        self.noted_bytes = 0;
    }
}
