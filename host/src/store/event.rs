//! A delayed event: what is kept of it, when it runs, and what follows from a run. Plain values: whoever holds one
//! decides what to do with it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// An event's id: unique, and ordered as events run. Of a repeating event the sequence stays the same from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventId {
    /// When it is due, in milliseconds since 1970-01-01 UTC.
    pub due_ms: u64,
    /// The order among events due in the same millisecond; never used again.
    pub sequence: u64,
}

/// Where an event stands in the order in which events are run. It differs from the id only while a failed event waits
/// for its next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// When it is to be run, in milliseconds since 1970-01-01 UTC.
    pub next_ms: u64,
    pub sequence: u64,
}

impl Place {
    /// Before every event.
    pub const FIRST: Place = Place { next_ms: 0, sequence: 0 };
    /// Behind every event.
    pub const LAST: Place = Place { next_ms: LATEST_MS, sequence: i64::MAX as u64 };
}

/// The latest time that an event can be due, which no clock will ever show: databases count up to here.
pub const LATEST_MS: u64 = i64::MAX as u64;

/// What happens to the runs that a repeating event missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissedRuns {
    /// One run stands for all of them.
    Coalesce,
    /// Every run, one after another.
    CatchUp,
}

/// How an event repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repetition {
    /// Between two nominal times. Positive.
    pub interval_ms: u64,
    pub missed: MissedRuns,
}

/// A pending event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub sequence: u64,
    /// The name of the guest whose `on-event` it is for.
    pub guest: Arc<str>,
    pub kind: Arc<str>,
    pub payload: Arc<[u8]>,
    /// When it is due, in milliseconds since 1970-01-01 UTC.
    pub due_ms: u64,
    /// When it is to be run: `due_ms`, or later after a failure. Both are times of the wall clock, so that one that is
    /// set back far makes the next attempt wait that much longer, as it does with every event; an operator who does not
    /// want to wait has it retried.
    pub next_ms: u64,
    pub repeat: Option<Repetition>,
    /// Attempts to run it that have failed.
    pub attempts: u32,
    /// Set aside after too many failures, until an operator decides.
    pub parked: bool,
    /// Why the last attempt failed.
    pub error: Option<Arc<str>>,
}

/// One run of an event, and what is left to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Between when it was due and now.
    pub late_ms: u64,
    /// Runs of a repeating event that this one stands for as well.
    pub missed: u32,
    /// The event after this run; `None` where it does not repeat.
    pub next: Option<Event>,
}

impl Event {
    pub fn id(&self) -> EventId {
        EventId { due_ms: self.due_ms, sequence: self.sequence }
    }

    /// Where it stands in the order of running.
    pub fn place(&self) -> Place {
        Place { next_ms: self.next_ms, sequence: self.sequence }
    }

    /// What a run at the wall-clock time `now_ms` is, and what comes after it. The nominal times of a repeating event
    /// are `due_ms` and every interval from there, whenever it is run: it does not drift.
    pub fn run(&self, now_ms: u64) -> Run {
        let late_ms = now_ms.saturating_sub(self.due_ms);
        let Some(Repetition { interval_ms, missed }) = self.repeat else {
            return Run { late_ms, missed: 0, next: None };
        };
        let missed = match missed {
            MissedRuns::Coalesce => late_ms / interval_ms.max(1),
            MissedRuns::CatchUp => 0,
        };
        let due_ms = self.due_ms.saturating_add(interval_ms.saturating_mul(missed + 1)).min(LATEST_MS);
        let next = Event { due_ms, next_ms: due_ms, attempts: 0, error: None, ..self.clone() };
        Run { late_ms, missed: u32::try_from(missed).unwrap_or(u32::MAX), next: Some(next) }
    }

    /// The event after an attempt that failed at `now_ms`: to be tried again after a pause that begins with `pause_ms`
    /// and doubles, or parked after the attempt number `max_attempts`.
    pub fn failed(&self, now_ms: u64, error: &str, pause_ms: u64, max_attempts: u32) -> Event {
        let attempts = self.attempts.saturating_add(1);
        let pause_ms = pause_ms.saturating_mul(1 << self.attempts.min(16));
        Event {
            attempts,
            parked: attempts >= max_attempts,
            // The clock may have been set back since it was due.
            next_ms: now_ms.saturating_add(pause_ms).max(self.due_ms).min(LATEST_MS),
            error: Some(error.into()),
            ..self.clone()
        }
    }

    /// The event as an operator sends it on its way again: due as it was, without failures, to be run at once.
    pub fn retried(&self, now_ms: u64) -> Event {
        Event { attempts: 0, parked: false, next_ms: now_ms.max(self.due_ms), ..self.clone() }
    }
}

#[cfg(test)]
impl Event {
    /// An event of the guest `rules` for tests, which change what matters to them.
    pub fn sample(sequence: u64, due_ms: u64) -> Self {
        Self {
            sequence,
            guest: "rules".into(),
            kind: "ripen".into(),
            payload: Arc::from(b"field 3".as_slice()),
            due_ms,
            next_ms: due_ms,
            repeat: None,
            attempts: 0,
            parked: false,
            error: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(due_ms: u64, repeat: Option<Repetition>) -> Event {
        Event { repeat, ..Event::sample(7, due_ms) }
    }

    fn every(interval_ms: u64, missed: MissedRuns) -> Option<Repetition> {
        Some(Repetition { interval_ms, missed })
    }

    #[test]
    fn an_event_that_does_not_repeat_is_done_after_its_run() {
        assert_eq!(event(1000, None).run(1250), Run { late_ms: 250, missed: 0, next: None });
        assert_eq!(event(1000, None).run(900).late_ms, 0, "a clock that was set back makes nothing early");
    }

    #[test]
    fn missed_runs_coalesce_into_one_and_the_next_keeps_the_schedule() {
        let run = event(1000, every(100, MissedRuns::Coalesce)).run(1350);
        assert_eq!((run.late_ms, run.missed), (350, 3));
        assert_eq!(run.next.map(|next| (next.due_ms, next.next_ms, next.sequence)), Some((1400, 1400, 7)));
    }

    #[test]
    fn missed_runs_that_catch_up_come_one_after_another() {
        let mut event = event(1000, every(100, MissedRuns::CatchUp));
        for due_ms in [1000, 1100, 1200, 1300] {
            assert_eq!(event.due_ms, due_ms);
            let run = event.run(1350);
            assert_eq!((run.late_ms, run.missed), (1350 - due_ms, 0));
            event = run.next.unwrap();
        }
        assert_eq!(event.due_ms, 1400);
    }

    #[test]
    fn a_failed_event_keeps_its_id_waits_twice_as_long_each_time_and_is_parked_at_last() {
        let mut event = event(1000, None);
        let mut pauses = Vec::new();
        while !event.parked {
            let now_ms = event.next_ms;
            event = event.failed(now_ms, "no", 500, 4);
            pauses.push(event.next_ms - now_ms);
        }
        assert_eq!(pauses, [500, 1000, 2000, 4000]);
        assert_eq!(event.id(), EventId { due_ms: 1000, sequence: 7 });
        let again = event.retried(99_000);
        assert_eq!((again.attempts, again.parked, again.due_ms, again.next_ms), (0, false, 1000, 99_000));
    }

    #[test]
    fn an_event_that_fails_after_the_clock_was_set_back_does_not_run_before_it_is_due() {
        let failed = event(1000, None).failed(300, "no", 500, 4);
        assert_eq!((failed.due_ms, failed.next_ms), (1000, 1000));
    }

    #[test]
    fn a_run_that_succeeds_ends_the_failures_of_a_repeating_event() {
        let failed = event(1000, every(100, MissedRuns::Coalesce)).failed(1000, "no", 500, 4);
        let next = failed.run(1500).next.unwrap();
        assert_eq!((next.attempts, next.error, next.due_ms, next.next_ms), (0, None, 1600, 1600));
    }
}
