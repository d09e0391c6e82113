//! The interface `events`: noted in the agenda, durable with everything else that the handler has done.

use std::sync::Arc;

use crate::guest::contract::sim::events::{EventError, EventId, Host, MissedRuns, PendingEvent, Repetition, When};
use crate::guest::event_book::{Patience, Unscheduled};
use crate::guest::instance::MOST_WAITING;
use crate::guest::stage::Durable;
use crate::guest::state::InstanceState;
use crate::store::agenda::NewEvent;
use crate::store::{self, Event};

const MAX_KIND_BYTES: usize = 64;

/// Events of one answer.
const MAX_LISTED: u32 = 256;

impl Host for InstanceState {
    fn schedule(
        &mut self,
        kind: String,
        when: When,
        payload: Vec<u8>,
        repeat: Option<Repetition>,
    ) -> wasmtime::Result<Result<EventId, EventError>> {
        if kind.len() > MAX_KIND_BYTES {
            return Ok(Err(EventError::TooLarge(MAX_KIND_BYTES as u32)));
        }
        if repeat.is_some_and(|repeat| repeat.interval_ms == 0) {
            return Ok(Err(EventError::NotPositive));
        }
        let due_ms = match when {
            When::AtMs(due_ms) => due_ms,
            When::AfterMs(after_ms) => self.identity.clock.wall_ms().saturating_add(after_ms),
        };
        let guest = self.identity.id;
        let stage = self.stage_to_read(Durable::Events)?;
        let limit_bytes = stage.limits.max_payload_bytes;
        if payload.len() > limit_bytes {
            return Ok(Err(EventError::TooLarge(limit_bytes as u32)));
        }
        let new = NewEvent { kind: kind.into(), payload: payload.into(), due_ms, repeat: repeat.map(repetition) };
        match stage.events.schedule(guest, new) {
            Ok(id) => Ok(Ok(shown_id(id))),
            Err(Unscheduled::TooManyPending(error)) => Ok(Err(EventError::TooMany(error.limit))),
            Err(error @ Unscheduled::HandlerFull { .. }) => Err(wasmtime::Error::new(error)),
        }
    }

    fn cancel(&mut self, id: EventId) -> wasmtime::Result<bool> {
        let (guest, patience) = (self.identity.id, self.patience());
        let stage = self.stage_to_read(Durable::Events)?;
        stage.events.cancel(guest, asked_id(id), &patience)
    }

    fn get(&mut self, id: EventId) -> wasmtime::Result<Option<PendingEvent>> {
        let (guest, patience) = (self.identity.id, self.patience());
        let stage = self.stage_to_read(Durable::Events)?;
        let found = stage.events.get(guest, asked_id(id), &patience)?;
        Ok(found.as_deref().map(shown))
    }

    /// Ends early when the answer would be larger than one payload; the next page begins behind its last event.
    fn pending(&mut self, after: Option<EventId>, limit: u32) -> wasmtime::Result<Vec<PendingEvent>> {
        let (guest, patience) = (self.identity.id, self.patience());
        let stage = self.stage_to_read(Durable::Events)?;
        let (after, limit) = (after.map(asked_id), limit.min(MAX_LISTED) as usize);
        let found = stage.events.pending(guest, after, limit, stage.limits.max_payload_bytes, &patience)?;
        let mut room = stage.limits.max_payload_bytes;
        let mut events = Vec::new();
        for event in found {
            if event.payload.len() > room && !events.is_empty() {
                break;
            }
            room = room.saturating_sub(event.payload.len());
            events.push(shown(&event));
        }
        Ok(events)
    }
}

impl InstanceState {
    /// How long this call may wait for a disk: as long as a call may take by the clock.
    fn patience(&self) -> Patience {
        Patience { clock: Arc::clone(&self.identity.clock), until: self.began + self.limit * MOST_WAITING }
    }
}

fn asked_id(id: EventId) -> store::EventId {
    store::EventId { due_ms: id.due_ms, sequence: id.sequence }
}

/// An id as guests see it.
pub fn shown_id(id: store::EventId) -> EventId {
    EventId { due_ms: id.due_ms, sequence: id.sequence }
}

fn repetition(repeat: Repetition) -> store::Repetition {
    let missed = match repeat.missed {
        MissedRuns::Coalesce => store::MissedRuns::Coalesce,
        MissedRuns::CatchUp => store::MissedRuns::CatchUp,
    };
    store::Repetition { interval_ms: repeat.interval_ms, missed }
}

fn shown_repetition(repeat: store::Repetition) -> Repetition {
    let missed = match repeat.missed {
        store::MissedRuns::Coalesce => MissedRuns::Coalesce,
        store::MissedRuns::CatchUp => MissedRuns::CatchUp,
    };
    Repetition { interval_ms: repeat.interval_ms, missed }
}

fn shown(event: &Event) -> PendingEvent {
    PendingEvent {
        id: shown_id(event.id()),
        kind: event.kind.to_string(),
        payload: event.payload.to_vec(),
        repeat: event.repeat.map(shown_repetition),
        attempts: event.attempts,
        parked: event.parked,
    }
}
