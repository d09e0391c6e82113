//! The durable state: what a host writes down while it runs and reads when it starts, and the events that wait in it.
//!
//! The way of a change: the server collects what handlers have committed in a [`Batch`] and hands it to the [`Writer`],
//! whose thread commits batches in order, several at a time. What is read, pages of events that come due and whatever
//! operators ask, goes through the [`Reader`], whose thread sees only what is committed. Both stand on a [`Store`]:
//! [`sqlite`] is the one there is. The loop thread does no I/O of its own; what it wants is posted to the
//! two threads.

pub mod agenda;
pub mod backend;
pub mod batch;
pub mod error;
pub mod event;
#[cfg(test)]
pub mod faulty;
pub mod reader;
pub mod sqlite;
pub mod writer;

pub use agenda::{Agenda, AgendaGuest, AgendaLimits};
pub use backend::{
    Claim, EventQuery, Interrupter, ListedEvent, Loaded, Page, Store, StoreReader, StoreWriter, StoredGuest,
};
pub use batch::{Batch, EventChange, EventCount, GuestChange};
pub use error::StoreError;
pub use event::{Event, EventId, LATEST_MS, MissedRuns, Place, Repetition, Run};
pub use reader::{AskError, Reader};
pub use sqlite::SqliteStore;
pub use writer::{StoreSnapshot, Trouble, Writer};
