//! Events that are due: run as transactions, each together with its own end, tried again where they fail, and parked
//! where they fail for good; and the pages and the timer that bring them in time.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use serde::Serialize;

use super::config::EventOptions;
use super::event_orders::LookedUp;
use super::simulation::{Cx, HostSimulation, Timer};
use crate::guest::contract::sim::events::DueEvent;
use crate::guest::{CallError, GuestId, Resident, shown_id};
use crate::sim::TimerId;
use crate::sim::metrics::Durations;
use crate::store::agenda::{AgendaCounts, Wish};
use crate::store::{AgendaGuest, Event, Page, Reader, Run, StoreError};

/// How long at most the wall clock goes unlooked at while an event is to come: it may be set forward.
const CLOCK_CHECK: Duration = Duration::from_secs(1);

/// The pause after a page could not be read.
const PAGE_RETRY: Duration = Duration::from_secs(1);

/// What is kept of the reason why an event failed.
const MAX_ERROR_CHARACTERS: usize = 500;

/// Timers take time.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// What the reader has read for the loop.
pub(super) enum Answer {
    /// A page, by the number that it was asked for under.
    Page { number: u64, page: Result<Page, StoreError> },
    /// An event that an operator decides about.
    LookedUp(LookedUp),
}

impl From<LookedUp> for Answer {
    fn from(looked_up: LookedUp) -> Self {
        Answer::LookedUp(looked_up)
    }
}

/// What the loop needs for events beside the agenda on the stage.
pub struct EventRuns {
    options: EventOptions,
    reader: Reader,
    answers: Receiver<Answer>,
    answer_sender: Sender<Answer>,
    /// The timer for the next thing to do, and when it fires.
    timer: Option<(TimerId, Duration)>,
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
    pub fn new(options: EventOptions, reader: Reader) -> Self {
        let (answer_sender, answers) = crossbeam_channel::unbounded();
        let lateness = Arc::new(Durations::new());
        Self { options, reader, answers, answer_sender, timer: None, fired: 0, retried: 0, lateness }
    }

    pub(super) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Where the reader's jobs put what they have read.
    pub(super) fn answer_sender(&self) -> Sender<Answer> {
        self.answer_sender.clone()
    }

    /// The distribution of lateness, for whoever shows it.
    pub fn lateness(&self) -> Arc<Durations> {
        Arc::clone(&self.lateness)
    }
}

/// Running them.
impl HostSimulation {
    /// Runs the events that are due until the time is up; the rest waits for the next turn.
    pub(super) fn run_due_events(&mut self, cx: &mut Cx<'_>) {
        if self.committing.must_wait() {
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
    fn is_ready(&self, number: AgendaGuest) -> bool {
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
            Err(error) => self.event_failed(guest, event, &error, cx),
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
        let stage = self.stage();
        stage.events.agenda.replace(event, Some(failed));
        stage.commit_events();
    }

    /// The figures, for the board.
    pub(super) fn event_counts(&self) -> EventCounts {
        let agenda = self.stage.as_deref().map(|stage| stage.events.agenda.counts()).unwrap_or_default();
        let EventRuns { fired, retried, .. } = self.event_runs;
        let AgendaCounts { pending, in_memory, parked } = agenda;
        EventCounts { pending, in_memory, fired, retried, parked }
    }
}

/// Bringing them.
impl HostSimulation {
    /// Takes in what has been read, and asks for pages that are wanted.
    pub(super) fn follow_reader(&mut self, cx: &mut Cx<'_>) {
        while let Ok(answer) = self.event_runs.answers.try_recv() {
            match answer {
                Answer::Page { number, page: Ok(page) } => self.stage().events.agenda.page(number, page),
                Answer::Page { number, page: Err(error) } => {
                    tracing::error!("events that come due are not read: {error}");
                    self.try_page_later(number, cx);
                }
                Answer::LookedUp(looked_up) => self.looked_up(looked_up, cx),
            }
        }
        let (now_ms, committed) = (cx.clock.wall_ms(), self.committing.committed());
        for wish in self.stage().events.agenda.take_wishes(now_ms, committed) {
            self.fulfil(wish, cx);
        }
    }

    fn fulfil(&mut self, wish: Wish, cx: &Cx<'_>) {
        match wish {
            Wish::Page { number, claim } => {
                let (answers, handle) = (self.event_runs.answer_sender(), cx.handle.clone());
                self.event_runs.reader.post(move |store| {
                    // A loop that has ended needs no page.
                    let _ = answers.send(Answer::Page { number, page: store.claim(&claim) });
                    handle.nudge();
                });
            }
            Wish::Release { guest, from } => self.event_runs.reader.post(move |store| {
                if let Err(error) = store.release(&guest, from) {
                    tracing::warn!("events that have no room in memory are not given back: {error}");
                }
            }),
        }
    }

    fn try_page_later(&mut self, number: u64, cx: &mut Cx<'_>) {
        let now = cx.clock.now();
        let later = cx.timers.register(now, self.names().events, PAGE_RETRY, None, false, Timer::PageFailed(number));
        if later.is_err() {
            self.stage().events.agenda.page_failed(number);
        }
    }

    /// Has the loop wake when there is something to do about events.
    pub(super) fn set_event_timer(&mut self, cx: &mut Cx<'_>) {
        if self.committing.must_wait() {
            return;
        }
        let Some(stage) = self.stage.as_deref() else { return };
        let Some(wake_ms) = stage.events.agenda.next_wake_ms(|number| self.is_ready(number)) else { return };
        let now = cx.clock.now();
        let wait = Duration::from_millis(wake_ms.saturating_sub(cx.clock.wall_ms())).clamp(SHORTEST_WAIT, CLOCK_CHECK);
        if let Some((timer, at)) = self.event_runs.timer {
            if at <= now + wait {
                return;
            }
            cx.timers.unregister(timer);
        }
        let registered = cx.timers.register(now, self.names().events, wait, None, false, Timer::Events);
        // A wheel that is full has other timers that make turns; a closed one is that of a host that stops.
        self.event_runs.timer = registered.ok().map(|timer| (timer, now + wait));
    }

    /// That timer has fired.
    pub(super) fn event_timer_fired(&mut self) {
        self.event_runs.timer = None;
    }
}
