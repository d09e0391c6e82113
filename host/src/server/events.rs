//! Events that are due: run as transactions, each together with its own end, tried again where they fail, and parked
//! where they fail for good.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::committing::Disk;
use super::config::EventOptions;
use super::simulation::{Cx, HostSimulation};
use crate::guest::contract::sim::events::DueEvent;
use crate::guest::{CallError, GuestId, Resident, shown_id};
use crate::sim::metrics::Durations;
use crate::store::agenda::AgendaCounts;
use crate::store::{AgendaGuest, Event, Run};

/// What is kept of the reason why an event failed.
const MAX_ERROR_CHARACTERS: usize = 500;

/// What has become of the events that were due.
pub struct EventRuns {
    options: EventOptions,
    fired: u64,
    retried: u64,
    /// How much later than it was to be run an event was run.
    lateness: Arc<Durations>,
}

/// How many events there are and were.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct EventCounts {
    /// The parked ones among them.
    pub pending: u64,
    pub in_memory: u64,
    /// Run successfully since the start.
    pub fired: u64,
    /// Attempts that failed and were followed, or will be, by another.
    pub retried: u64,
    /// Set aside now.
    pub parked: u64,
}

impl EventRuns {
    pub fn new(options: EventOptions) -> Self {
        Self { options, fired: 0, retried: 0, lateness: Arc::new(Durations::new()) }
    }

    /// The distribution of lateness, for whoever shows it.
    pub fn lateness(&self) -> Arc<Durations> {
        Arc::clone(&self.lateness)
    }
}

impl HostSimulation {
    /// Runs the events that are due until the time is up; the rest waits for the next turn.
    pub(super) fn run_due_events(&mut self, cx: &mut Cx<'_>) {
        if self.committing.disk() != Disk::Ready {
            return;
        }
        let until = cx.clock.now() + self.event_runs.options.budget();
        let mut is_in_time = true;
        while is_in_time
            && !self.spent
            && let Some((guest, event)) = self.next_due_event(cx)
        {
            self.run_event(guest, &event, cx);
            is_in_time = cx.clock.now() < until;
        }
        if self.next_due_event(cx).is_some() {
            self.go_on(cx);
        }
    }

    fn next_due_event(&self, cx: &Cx<'_>) -> Option<(GuestId, Arc<Event>)> {
        let events = &self.stage.as_deref()?.events;
        let (number, event) = events.agenda.next_due(cx.clock.wall_ms(), |number| self.is_ready(number))?;
        Some((events.guest(number)?, Arc::clone(event)))
    }

    /// Whether the guest has an instance that could be called.
    pub(super) fn is_ready(&self, number: AgendaGuest) -> bool {
        let guest = self.stage.as_deref().and_then(|stage| stage.events.guest(number));
        guest.and_then(|guest| self.guests.games.get(&guest)).is_some_and(Resident::is_running)
    }

    /// One attempt to run an event. What it does and that it is done are one transaction.
    fn run_event(&mut self, guest: GuestId, event: &Arc<Event>, cx: &mut Cx<'_>) {
        let now_ms = cx.clock.wall_ms();
        let Run { late_ms, missed, next } = event.run(now_ms);
        let due = DueEvent {
            id: shown_id(event.id()),
            kind: event.kind.to_string(),
            payload: event.payload.to_vec(),
            late_ms,
            missed,
        };
        self.stage().events.agenda.replace(event, next);
        match self.handle(guest, "on-event", cx, |game, store| game.call_on_event(store, &due)) {
            Ok(()) => {
                self.event_runs.fired += 1;
                self.event_runs.lateness.record(Duration::from_millis(now_ms.saturating_sub(event.next_ms)));
            }
            Err(CallError::NotRunning | CallError::Unkept) => self.stage().events.agenda.rollback(),
            Err(CallError::DiskLate(_)) => self.postpone_event(event, cx),
            Err(error) => self.event_failed(guest, event, &error, cx),
        }
    }

    /// The disk was too slow for the handler, which is not the event's fault: it is tried again a little later.
    fn postpone_event(&mut self, event: &Arc<Event>, cx: &Cx<'_>) {
        let next_ms = cx.clock.wall_ms().saturating_add(self.event_runs.options.retry_ms).max(event.next_ms);
        self.replace_event(event, Event { next_ms, ..(**event).clone() });
    }

    /// Lets an event that was tried be `now`, unless the instance that came after the failed one has changed it.
    fn replace_event(&mut self, event: &Arc<Event>, now: Event) {
        let stage = self.stage();
        if stage.events.agenda.is_current(event) {
            stage.events.agenda.replace(event, Some(now));
            stage.commit_events();
        }
    }

    /// An event has failed: it stays pending, and is tried again later or set aside.
    fn event_failed(&mut self, guest: GuestId, event: &Arc<Event>, error: &CallError, cx: &Cx<'_>) {
        let EventOptions { retry_ms, max_attempts, .. } = self.event_runs.options;
        // What a guest says may be long.
        let told: String = error.to_string().chars().take(MAX_ERROR_CHARACTERS).collect();
        let failed = event.failed(cx.clock.wall_ms(), &told, retry_ms, max_attempts);
        if failed.parked {
            let (name, id) = (self.guests.name(guest), format!("{}-{}", event.due_ms, event.sequence));
            tracing::error!(
                guest = name,
                event = id,
                kind = &*event.kind,
                "an event is parked after {max_attempts} attempts: {told}; see `wheelhouse events show {id}`, and retry \
                 or drop it"
            );
        } else {
            self.event_runs.retried += 1;
        }
        self.replace_event(event, failed);
    }

    /// The figures, for the board.
    pub(super) fn event_counts(&self) -> EventCounts {
        let agenda = self.stage.as_deref().map(|stage| stage.events.agenda.counts()).unwrap_or_default();
        let EventRuns { fired, retried, .. } = self.event_runs;
        let AgendaCounts { pending, in_memory, parked } = agenda;
        EventCounts { pending, in_memory, fired, retried, parked }
    }
}
