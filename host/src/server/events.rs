//! Events that are due: run as transactions, each together with its own end, tried again where they fail, and parked
//! where they fail for good.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::committing::Disk;
use super::config::EventOptions;
use super::simulation::{Cx, HostSimulation};
use crate::guest::contract::sim::events::DueEvent;
use crate::guest::{Blame, CallError, GuestId, Resident, shown_id};
use crate::sim::metrics::Durations;
use crate::store::agenda::AgendaCounts;
use crate::store::{AgendaGuest, Event, Run};

/// What has become of the events that were due.
pub struct EventRuns {
    options: EventOptions,
    fired: u64,
    retried: u64,
    /// Whose events took all the time of the last turn: those of others that are due come first now.
    rests: Option<AgendaGuest>,
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
        Self { options, fired: 0, retried: 0, rests: None, lateness: Arc::new(Durations::new()) }
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
        let rests = self.event_runs.rests.take();
        while !self.spent
            && let Some((number, event)) = self.next_due_event(rests, cx)
        {
            self.run_event(number, &event, cx);
            if cx.clock.now() >= until {
                self.event_runs.rests = Some(number);
                break;
            }
        }
        if self.next_due_event(None, cx).is_some() {
            self.go_on(cx);
        }
    }

    /// The next event that is due; one of a guest that rests only where there is no other.
    fn next_due_event(&self, rests: Option<AgendaGuest>, cx: &Cx<'_>) -> Option<(AgendaGuest, Arc<Event>)> {
        let agenda = &self.stage.as_deref()?.events.agenda;
        let now_ms = cx.clock.wall_ms();
        let others = rests.and_then(|rests| agenda.next_due(now_ms, |number| number != rests && self.is_ready(number)));
        let (number, event) = others.or_else(|| agenda.next_due(now_ms, |number| self.is_ready(number)))?;
        Some((number, Arc::clone(event)))
    }

    /// Whether the guest has an instance that could be called.
    pub(super) fn is_ready(&self, number: AgendaGuest) -> bool {
        let guest = self.stage.as_deref().and_then(|stage| stage.events.guest(number));
        guest.and_then(|guest| self.guests.games.get(&guest)).is_some_and(Resident::is_running)
    }

    /// One attempt to run an event. What it does and that it is done are one transaction.
    fn run_event(&mut self, number: AgendaGuest, event: &Arc<Event>, cx: &mut Cx<'_>) {
        let Some(guest) = self.stage().events.guest(number) else { return };
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
        // An event that fails again and again is parked for it, and must not take its guest along.
        let blame = if event.attempts == 0 { Blame::Guest } else { Blame::Nobody };
        match self.handle_blaming(blame, guest, "on-event", cx, |game, store| game.call_on_event(store, &due)) {
            Ok(()) => {
                self.event_runs.fired += 1;
                self.event_runs.lateness.record(Duration::from_millis(now_ms.saturating_sub(event.next_ms)));
            }
            Err(CallError::NotRunning | CallError::Unkept) => self.stage().events.agenda.rollback(),
            Err(error) => self.event_failed(guest, event, &error, cx),
        }
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
        let told = error.to_string();
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
