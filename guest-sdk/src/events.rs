//! Delayed events, which call the game's [`on_event`](crate::Game::on_event). They are stored durably and run when due
//! even if the host was down in between, each exactly once in effect: with everything that `on_event` changes, or, where
//! that failed, not at all, and then again a little later.
//!
//! Scheduling and cancelling take effect when the handler returns, or not at all when it fails. Times are those of the
//! wall clock, as [`clock::wall`](crate::clock::wall) tells it.
//!
//! ```no_run
//! use std::time::Duration;
//! use wheelhouse_guest::events::{self, MissedRuns};
//! use wheelhouse_guest::prelude::*;
//!
//! /// A battle is settled after forty minutes, whoever is there then.
//! fn march(attacker: u64, target: u64) -> Result<(), Refusal> {
//!     let battle = events::after("battle", Duration::from_secs(40 * 60), &events::payload(&(attacker, target))?)?;
//!     info!("the battle {battle} is due");
//!     Ok(())
//! }
//!
//! /// The market opens every day. After two days without a host it opens once.
//! fn open_market() -> Result<(), Refusal> {
//!     events::every("market", Duration::from_secs(24 * 60 * 60), MissedRuns::Coalesce, b"")?;
//!     Ok(())
//! }
//!
//! /// Whoever surrenders fights no battle any more.
//! fn surrender() {
//!     for event in events::pending().filter(|event| event.kind == "battle") {
//!         events::cancel(event.id);
//!     }
//! }
//! ```

use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use crate::bindings::events::{
    DueEvent, EventError, EventId, MissedRuns, PendingEvent, Repetition, When, cancel, get, schedule,
};

use crate::{Refusal, duration};

/// Schedules an event that runs once, after `delay`.
pub fn after(kind: &str, delay: Duration, payload: &[u8]) -> Result<EventId, EventError> {
    schedule(kind, When::AfterMs(duration::whole_ms(delay)), payload, None)
}

/// Schedules an event that runs once, at a time of the wall clock since 1970-01-01 UTC. A time in the past is due at
/// once.
pub fn at(kind: &str, time: Duration, payload: &[u8]) -> Result<EventId, EventError> {
    schedule(kind, When::AtMs(duration::whole_ms(time)), payload, None)
}

/// Schedules an event that runs after every `interval`, for the first time after one.
///
/// Each run is due one interval after the one before was *due*, however late that ran: it does not drift, not even
/// over restarts. `missed` says what becomes of runs for which nobody was there: one run that stands for all of them,
/// ([`MissedRuns::Coalesce`]) or each of them, one after another ([`MissedRuns::CatchUp`]). It goes on until it is cancelled, by any of the ids that it has had: its own
/// handler can do that too.
pub fn every(kind: &str, interval: Duration, missed: MissedRuns, payload: &[u8]) -> Result<EventId, EventError> {
    let interval_ms = duration::whole_ms(interval);
    schedule(kind, When::AfterMs(interval_ms), payload, Some(Repetition { interval_ms, missed }))
}

/// Schedules an event that runs for the first time at a time of the wall clock since 1970-01-01 UTC, and then after
/// every `interval`, as with [`every`].
pub fn every_from(
    kind: &str,
    first: Duration,
    interval: Duration,
    missed: MissedRuns,
    payload: &[u8],
) -> Result<EventId, EventError> {
    let repetition = Repetition { interval_ms: duration::whole_ms(interval), missed };
    schedule(kind, When::AtMs(duration::whole_ms(first)), payload, Some(repetition))
}

/// A value of the author's own type as a payload, which [`DueEvent::read`] and [`PendingEvent::read`] turn back. An event
/// may wait longer than the code that scheduled it lives: what one version of a guest wrote, the next must be able to
/// read.
pub fn payload<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Refusal> {
    Ok(postcard::to_allocvec(value)?)
}

/// This guest's pending events in the order in which they are due, the parked ones among them. They are fetched page by
/// page: a guest with very many had better take only some, since a handler has a deadline.
///
/// What the handler schedules or cancels while it walks along counts, as far as it lies ahead.
pub fn pending() -> Pending {
    pending_after(None)
}

/// As [`pending`], from the first event behind `after`, which need not be pending itself.
pub fn pending_after(after: impl Into<Option<EventId>>) -> Pending {
    Pages { fetch: crate::bindings::events::pending, last: after.into(), page: Vec::new().into_iter() }
}

/// An iterator over pending events.
pub type Pending = Pages<fn(Option<EventId>, u32) -> Vec<PendingEvent>>;

/// How many events one look returns at most.
const PAGE: u32 = 256;

/// Pages of pending events, one after another.
#[derive(Clone, Debug)]
pub struct Pages<F> {
    fetch: F,
    last: Option<EventId>,
    page: std::vec::IntoIter<PendingEvent>,
}

impl<F: FnMut(Option<EventId>, u32) -> Vec<PendingEvent>> Iterator for Pages<F> {
    type Item = PendingEvent;

    fn next(&mut self) -> Option<PendingEvent> {
        if self.page.as_slice().is_empty() {
            // A page may be shorter than asked for, where payloads are long; the last one is empty.
            self.page = (self.fetch)(self.last, PAGE).into_iter();
        }
        let event = self.page.next()?;
        self.last = Some(event.id);
        Some(event)
    }
}

impl DueEvent {
    /// The payload as the value that [`payload`] made it of.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        read(&self.kind, self.id, &self.payload)
    }
}

impl PendingEvent {
    /// The payload as the value that [`payload`] made it of.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        read(&self.kind, self.id, &self.payload)
    }
}

fn read<T: DeserializeOwned>(kind: &str, id: EventId, payload: &[u8]) -> Result<T, Refusal> {
    postcard::from_bytes(payload)
        .map_err(|error| Refusal::new(format_args!("the payload of the event {id} of the kind {kind:?}: {error}")))
}

/// Ids are ordered as events run.
impl Ord for EventId {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.due_ms, self.sequence).cmp(&(other.due_ms, other.sequence))
    }
}

impl PartialOrd for EventId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The due time and the sequence with a dash between them, as `wheelhouse events` shows it.
impl fmt::Display for EventId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.due_ms, self.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(due_ms: u64, sequence: u64) -> EventId {
        EventId { due_ms, sequence }
    }

    fn event(id: EventId) -> PendingEvent {
        let (kind, payload) = ("ripen".into(), vec![7]);
        PendingEvent { id, kind, payload, repeat: None, attempts: 0, parked: false }
    }

    /// Walks over `ids` in pages of `page`.
    fn walk(ids: &[EventId], page: usize) -> Vec<EventId> {
        let fetch = |after: Option<EventId>, limit: u32| {
            let ahead = ids.iter().filter(|id| after.is_none_or(|after| **id > after));
            ahead.take(page.min(limit as usize)).copied().map(event).collect()
        };
        Pages { fetch, last: None, page: Vec::new().into_iter() }.map(|event| event.id).collect()
    }

    #[test]
    fn pages_whose_border_lies_among_events_of_one_time_lose_and_repeat_none() {
        let ids: Vec<_> = [1, 2, 3, 4, 5, 5, 5, 5, 5, 5].into_iter().zip(1..).map(|(due, n)| id(due, n)).collect();
        for page in 1..=10 {
            assert_eq!(walk(&ids, page), ids, "in pages of {page}");
        }
        assert_eq!(walk(&[], 8), []);
    }

    #[test]
    fn ids_are_ordered_by_time_and_then_by_sequence() {
        let mut ids = [id(2, 1), id(1, 9), id(1, 2)];
        ids.sort_unstable();
        assert_eq!(ids, [id(1, 2), id(1, 9), id(2, 1)]);
    }

    #[test]
    fn a_payload_comes_back_as_the_value_it_was_made_of() {
        let payload = payload(&("wheat", 3_u32)).unwrap();
        let event = PendingEvent { payload, ..event(id(1000, 7)) };
        assert_eq!(event.read::<(String, u32)>().unwrap(), ("wheat".into(), 3));
    }

    #[test]
    fn a_payload_of_another_type_is_refused_with_the_events_name() {
        let refusal = event(id(1000, 7)).read::<String>().unwrap_err();
        assert!(refusal.message().starts_with("the payload of the event 1000-7 of the kind \"ripen\""), "{refusal}");
    }

    #[test]
    fn an_error_of_scheduling_is_an_error_like_others() {
        fn is_error(_: impl std::error::Error) {}
        is_error(EventError::NotPositive);
    }
}
