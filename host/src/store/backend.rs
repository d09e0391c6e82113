//! What the host needs of a database: one that it has for itself, like SQLite in the data directory, or one that several
//! hosts share, like a PostgreSQL server.
//!
//! **Sharing.** A world belongs to one host at a time, but events may be run by whichever host is free. So nobody reads
//! events with a cursor of its own: a host *claims* the next ones ([`StoreReader::claim`]), which in a shared store
//! marks the rows with the host and the end of a lease, and passes over rows whose lease somebody else holds. An event
//! that a host schedules and keeps in memory is leased to it in the same transaction ([`EventChange::Put`]). The
//! implementation renews all leases that it has given to its host, until the event is put unclaimed, removed, or given
//! back ([`StoreReader::release`]) because it has no room in memory. A batch that changes an event whose lease somebody
//! else holds is refused as a whole ([`StoreError::LeaseLost`]), so that an event runs once in effect, whatever a host
//! believed that was away for a while. That is final by design: the world in memory has what the store has refused. So
//! whatever a host is to change it must hold, and [`StoreReader::event`], which is asked before an event is changed that
//! is not in memory, leases it too. A store that belongs to one host grants every claim and has nothing to release.
//!
//! [`EventChange::Put`]: super::batch::EventChange::Put

use std::path::Path;
use std::sync::Arc;

use super::batch::Batch;
use super::error::StoreError;
use super::event::{Event, EventId, Place};
use crate::world::{ThinkerId, WorldSnapshot};

/// A database. It is opened once when a host starts, and then gives one writer and as many readers as are wanted.
pub trait Store: Send + Sync + 'static {
    /// Everything but the events, as it was at the last commit. Thinkers in the answer are numbered as it says itself.
    fn load(&self) -> Result<Loaded, StoreError>;

    /// The one that writes. `thinkers` are the names of the thinkers by the numbers that the batches will use.
    fn writer(&self, thinkers: Vec<(ThinkerId, Arc<str>)>) -> Result<Box<dyn StoreWriter>, StoreError>;

    /// One that reads beside the writer.
    fn reader(&self) -> Result<Box<dyn StoreReader>, StoreError>;
}

/// Writes batches.
pub trait StoreWriter: Send {
    /// Commits batches, all of them or none, and returns when they are safe from a power cut. After an error for which
    /// [`StoreError::is_temporary`] none of them is committed, and they may be tried again. What is found wrong once
    /// they are safe is told by the next call.
    fn commit(&mut self, batches: &[Batch]) -> Result<(), StoreError>;

    /// What is better done between commits than in one for which somebody waits; `others_wait` tells whether the next
    /// is asked for already. Called after each commit. An error for which [`StoreError::is_temporary`] may be passed
    /// over: a commit will tell.
    fn upkeep(&mut self, _others_wait: bool) -> Result<(), StoreError> {
        Ok(())
    }

    /// Tidies up for a long rest. What is committed is safe without it, so that tidying which does not succeed just now is
    /// no error.
    fn close(self: Box<Self>) -> Result<(), StoreError>;
}

/// Reads what is committed at the time of each call.
pub trait StoreReader: Send {
    /// The next events that are to be run, in the order of their places. The caller has them for itself from now on.
    /// After an error nothing is claimed that was not before.
    fn claim(&mut self, claim: &Claim) -> Result<Page, StoreError>;

    /// Gives back the guest's claimed events from `from` on, which are to be claimed again later. Whatever the host has
    /// changed about them before is committed by then.
    fn release(&mut self, guest: &str, from: Place) -> Result<(), StoreError>;

    /// The event with that sequence, if it is pending. The caller may be about to change it: a shared store leases it to
    /// the host, without renewing that, and answers an error while somebody else holds it.
    fn event(&mut self, sequence: u64) -> Result<Option<Event>, StoreError>;

    /// Pending events in the order of their ids.
    fn events(&mut self, query: &EventQuery) -> Result<Page<ListedEvent>, StoreError>;

    /// Writes a copy of everything, as it is at one moment, to a new file.
    fn backup(&mut self, file: &Path) -> Result<(), StoreError>;

    /// What makes the call that this reader is in, a backup for example, end early with an error. Nothing where it cannot
    /// be done: then whoever stops waits for the end.
    fn interrupter(&self) -> Option<Interrupter> {
        None
    }
}

/// Called from any thread, and again until the call that is to end has ended: between two steps of it nothing happens.
pub type Interrupter = Box<dyn Fn() + Send + Sync>;

/// Which events are claimed: the guest's next that are not parked, behind `after` and at most `until`. There are at most
/// `limit` of them, and their payloads are at most `max_bytes` together unless the first alone is longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub guest: Arc<str>,
    /// What the host has already. A shared store answers earlier events as well if nobody holds them: they have become
    /// free since, or were scheduled by another host. Behind it, what the host holds is answered again.
    pub after: Option<Place>,
    pub until: Place,
    pub limit: usize,
    pub max_bytes: usize,
}

/// Which events are listed: the first behind `after`, at most `limit` of them, and their payloads are at most `max_bytes`
/// together unless the first alone is longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventQuery {
    /// Only this guest's.
    pub guest: Option<Arc<str>>,
    /// Only parked ones.
    pub parked_only: bool,
    pub after: Option<EventId>,
    pub limit: usize,
    pub max_bytes: usize,
    /// A payload that is longer is not read, and takes nothing of `max_bytes`.
    pub longest_payload: usize,
}

/// All events with their payloads, in pages of 1,000 and 4 MiB.
impl Default for EventQuery {
    fn default() -> Self {
        Self {
            guest: None,
            parked_only: false,
            after: None,
            limit: 1000,
            max_bytes: 4 << 20,
            longest_payload: usize::MAX,
        }
    }
}

/// The first of the events that were asked for. Only `is_last` tells that there are no more: a page may be short because
/// its events are large. One that is not the last has an event at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<E = Event> {
    pub events: Vec<E>,
    pub is_last: bool,
}

/// An event in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEvent {
    /// Without its payload where that is longer than was asked for.
    pub event: Event,
    /// How long the payload is, whether it was read or not.
    pub payload_bytes: usize,
}

impl<E> Page<E> {
    /// What there is of something that does not exist.
    pub fn nothing() -> Self {
        Self { events: Vec::new(), is_last: true }
    }
}

impl Page<ListedEvent> {
    /// The events alone.
    pub fn into_events(self) -> Page {
        Page { events: self.events.into_iter().map(|listed| listed.event).collect(), is_last: self.is_last }
    }
}

/// What a host starts with.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Whether no other host uses this store while this one does. Only then do the numbers of pending events, as they
    /// were loaded and as this host has changed them, tell that there are no others.
    pub is_exclusive: bool,
    pub world: WorldSnapshot,
    /// Names of the thinkers in `world`.
    pub thinkers: Vec<(ThinkerId, Arc<str>)>,
    pub guests: Vec<StoredGuest>,
    /// The sequence that the next event gets. A shared store gives each host a range of its own, with the host's number
    /// in the upper bits, and keeps what [`Batch::next_sequence`] says for each host: two hosts never give the same.
    pub next_sequence: u64,
}

/// What is kept of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredGuest {
    pub name: Arc<str>,
    /// Whether its first `init` in this world has succeeded.
    pub initialised: bool,
    /// What it saved last.
    pub state: Option<Vec<u8>>,
    /// Pending events, the parked ones among them.
    pub pending: u64,
    pub parked: u64,
}
