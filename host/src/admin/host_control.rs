//! What can be asked of a running host, and how it says no. The server implements [`HostControl`], the routes of the
//! control port call it. How long an answer may take is fixed here, so that the port gives up before its client does.

use std::path::PathBuf;
use std::time::Duration;

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use crate::guest::{Generation, Swapped};
use crate::service::{DeadLetter, MemberKind, ServiceEntry, ServicesSnapshot};
use crate::store::{Event, EventQuery, ListedEvent, Page};

/// How long the host may take over an answer: long for a loop that is alive, short for a person who waits.
pub(super) const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// How long a save may take until it is on disk: what is written is what changed since the last checkpoint.
pub(super) const SAVE_LIMIT: Duration = Duration::from_secs(60);

/// How long a backup may take, which copies everything.
pub(super) const BACKUP_LIMIT: Duration = Duration::from_secs(3600);

/// How long a swap may take: a large component compiles for seconds, and services are given time to finish.
pub(super) const SWAP_LIMIT: Duration = Duration::from_secs(600);

/// What can be asked of a running host.
pub trait HostControl: Send + Sync + 'static {
    /// The status object.
    fn status(&self) -> impl Future<Output = Result<Value, ControlError>> + Send;

    /// Cancels a task or job.
    fn cancel_task(&self, task: u64) -> impl Future<Output = Result<(), ControlError>> + Send;

    /// Everybody who has a mailbox: services, games and parts of the host.
    fn services(&self) -> impl Future<Output = Result<ServiceList, ControlError>> + Send;

    /// The messages that reached nobody.
    fn dead_letters(&self) -> impl Future<Output = Result<LostMessages, ControlError>> + Send;

    /// Ends a service that is named by its handle, or else by a name that it has, and answers with its handle. It ends as
    /// soon as it gives control back.
    fn kill_service(&self, service: String) -> impl Future<Output = Result<u64, ControlError>> + Send;

    /// Has a guest run the code in a file from here on. The path is absolute.
    fn swap(&self, guest: String, file: PathBuf) -> impl Future<Output = Result<Swapped, ControlError>> + Send;

    /// Has a guest run the code that it ran before.
    fn swap_back(&self, guest: String) -> impl Future<Output = Result<Swapped, ControlError>> + Send;

    /// The generations of a guest's code that are kept, oldest first.
    fn history(&self, guest: String) -> impl Future<Output = Result<Vec<Generation>, ControlError>> + Send;

    /// Pending events, parked or not, in the order of their ids.
    fn events(&self, query: EventQuery) -> impl Future<Output = Result<Page<ListedEvent>, ControlError>> + Send;

    /// The pending event with that sequence.
    fn event(&self, sequence: u64) -> impl Future<Output = Result<Event, ControlError>> + Send;

    /// Removes a pending event, parked or not.
    fn cancel_event(&self, sequence: u64) -> impl Future<Output = Result<(), ControlError>> + Send;

    /// Sends an event that is parked, or waits for its next attempt, on its way again.
    fn retry_event(&self, sequence: u64) -> impl Future<Output = Result<(), ControlError>> + Send;

    /// Removes an event only if it is parked.
    fn drop_event(&self, sequence: u64) -> impl Future<Output = Result<(), ControlError>> + Send;

    /// Writes down everything that is not yet, and answers when it is on disk.
    fn save(&self) -> impl Future<Output = Result<(), ControlError>> + Send;

    /// Writes a copy of everything that is durable, as it is at one moment, to a new file. The path is absolute.
    fn backup(&self, file: PathBuf) -> impl Future<Output = Result<(), ControlError>> + Send;
}

/// Everybody who has a mailbox, and the totals.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ServiceList {
    /// One for each, oldest first.
    pub list: Vec<ServiceEntry>,
    /// The totals.
    pub services: ServicesSnapshot,
}

/// Messages that reached nobody.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LostMessages {
    /// How many there were.
    pub count: u64,
    /// The last ones, oldest first.
    pub last: Vec<DeadLetter>,
}

/// Why the host did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ControlError {
    /// The task has ended, or never was.
    #[error("there is no task {task}: it has ended, or never was")]
    NoSuchTask {
        /// The id given.
        task: u64,
    },
    /// Nobody has that handle or name.
    #[error("there is no service {service:?}: it has ended, or never was; `wheelhouse services` lists those there are")]
    NoSuchService {
        /// The handle or name given.
        service: String,
    },
    /// Whoever has that handle or name is not to be ended.
    #[error("{service:?} is {}, and only services are killed", in_words(.kind))]
    NotAService {
        /// The handle or name given.
        service: String,
        /// What it is.
        kind: MemberKind,
    },
    /// The configuration has no such guest.
    #[error("there is no guest {guest:?}; the configuration has {known}")]
    NoSuchGuest {
        /// The name given.
        guest: String,
        /// Those there are.
        known: String,
    },
    /// The guest keeps running what it ran.
    #[error("{guest} is not swapped: {reason}")]
    SwapRefused {
        /// The guest.
        guest: String,
        /// Why.
        reason: String,
    },
    /// The event is not pending.
    #[error("there is no event {sequence}: it has run, was cancelled, or never was")]
    NoSuchEvent {
        /// The sequence given.
        sequence: u64,
    },
    /// The event may still run, so that it is not dropped.
    #[error("event {sequence} is not parked; `wheelhouse events cancel {sequence}` removes it all the same")]
    NotParked {
        /// The sequence given.
        sequence: u64,
    },
    /// The event has not failed, so that there is nothing to retry.
    #[error("event {sequence} has not failed; it runs when it is due")]
    NotFailed {
        /// The sequence given.
        sequence: u64,
    },
    /// Not everything is on disk.
    #[error("the world is not saved: {reason}")]
    SaveFailed {
        /// What the store says.
        reason: String,
    },
    /// There is no backup.
    #[error("{reason}")]
    BackupRefused {
        /// What the store says, which names the file.
        reason: String,
    },
    /// The host is starting, stopping or has failed.
    #[error("the host cannot answer now: {reason}")]
    Unavailable {
        /// What keeps it.
        reason: String,
    },
}

impl ControlError {
    /// How HTTP calls it.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NoSuchTask { .. }
            | Self::NoSuchService { .. }
            | Self::NoSuchGuest { .. }
            | Self::NoSuchEvent { .. } => StatusCode::NOT_FOUND,
            Self::NotAService { .. } | Self::NotParked { .. } | Self::NotFailed { .. } => StatusCode::CONFLICT,
            Self::BackupRefused { .. } | Self::SwapRefused { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::SaveFailed { .. } | Self::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

fn in_words(kind: &MemberKind) -> &'static str {
    match kind {
        MemberKind::Service => "a service",
        MemberKind::Game => "a game",
        MemberKind::Native => "a part of the host",
    }
}
