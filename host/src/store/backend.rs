//! What the host needs of a database: one that it has for itself, like SQLite in the data directory, or one that several
//! hosts share, like a PostgreSQL server.
//!
//! **Sharing.** A world belongs to one host at a time, but events may be run by whichever host is free. So nobody reads
//! events with a cursor of its own: a host *claims* the next ones ([`StoreReader::claim`]), which in a shared store
//! marks the rows with the host and the end of a lease, passes over rows whose lease somebody else holds, and keeps
//! the lease renewed; what it cannot keep in memory it gives back ([`StoreReader::release`]). A batch that changes an
//! event whose lease was lost is refused as a whole ([`StoreError::LeaseLost`]): an event runs once in effect, whatever
//! a host believed that was away for a while. A store that belongs to one host grants every claim and has nothing to
//! release.

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
    fn claim(&mut self, claim: &Claim) -> Result<Vec<Event>, StoreError>;

    /// Gives back the guest's claimed events from `from` on, which are to be claimed again later.
    fn release(&mut self, guest: &str, from: Place) -> Result<(), StoreError>;

    /// The event with that sequence, if it is pending.
    fn event(&mut self, sequence: u64) -> Result<Option<Event>, StoreError>;

    /// Pending events in the order of their ids.
    fn events(&mut self, query: &EventQuery) -> Result<Vec<Event>, StoreError>;

    /// Writes a copy of everything, as it is at one moment, to a new file.
    fn backup(&mut self, file: &Path) -> Result<(), StoreError>;
}

/// Which events are claimed: the first `limit` of the guest's that are not parked, behind `after` and at most `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub guest: Arc<str>,
    pub after: Option<Place>,
    pub until: Place,
    pub limit: usize,
}

/// Which events are listed: the first `limit` behind `after`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// Only this guest's.
    pub guest: Option<Arc<str>>,
    /// Only parked ones.
    pub parked_only: bool,
    pub after: Option<EventId>,
    pub limit: usize,
}

/// What a host starts with.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Whether nothing was ever committed to this store.
    pub is_new: bool,
    pub world: WorldSnapshot,
    /// Names of the thinkers in `world`.
    pub thinkers: Vec<(ThinkerId, Arc<str>)>,
    pub guests: Vec<StoredGuest>,
    /// The sequence that the next event gets.
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
