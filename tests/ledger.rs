//! What the guest `ledger` answers, read into values: the events that it scheduled, and what it wrote down when they ran.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::{Client, PATIENCE};

/// An event's id; of a repeating event that of one of its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    /// When it is due, in milliseconds since 1970-01-01 UTC.
    pub due_ms: u64,
    /// What stays the same when it repeats.
    pub sequence: u64,
}

/// A run of an event, as the ledger wrote it down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Which event.
    pub id: EventId,
    /// How often it has run with effect, which should be once.
    pub count: u64,
    /// Its kind.
    pub kind: String,
    /// How late it was.
    pub late_ms: u64,
    /// How many earlier runs it stood for.
    pub missed: u64,
    /// Its payload.
    pub payload: String,
}

impl EventId {
    /// As the ledger writes it in packets.
    pub fn words(&self) -> String {
        format!("{} {}", self.due_ms, self.sequence)
    }

    /// As `wheelhouse events` writes it.
    pub fn dashed(&self) -> String {
        format!("{}-{}", self.due_ms, self.sequence)
    }

    /// The id in an answer `scheduled DUE SEQUENCE`.
    pub fn scheduled(answer: &str) -> Self {
        let id = answer.strip_prefix("scheduled ").and_then(|words| words.split_once(' '));
        let id = id.and_then(|(due, sequence)| Some((due.parse().ok()?, sequence.parse().ok()?)));
        let (due_ms, sequence) = id.unwrap_or_else(|| panic!("nothing was scheduled: {answer:?}"));
        Self { due_ms, sequence }
    }
}

/// What only the ledger answers.
impl Client {
    /// Sends a packet that schedules an event.
    pub fn schedule(&mut self, packet: &str) -> EventId {
        EventId::scheduled(&self.ask(packet))
    }

    /// The count in a ledger.
    pub fn count(&mut self, name: &str) -> u64 {
        let answer = self.ask(format!("read {name}"));
        answer.rsplit(' ').next().and_then(|count| count.parse().ok()).expect("a ledger holds a number")
    }

    /// One page of pending events as lines, from the first behind `after`.
    pub fn pending(&mut self, limit: usize, after: Option<EventId>) -> Vec<String> {
        let after = after.map_or(String::new(), |id| format!(" {}", id.words()));
        lines(&self.ask(format!("pending {limit}{after}")))
    }

    /// Keys that begin with `prefix`, in order, with their values.
    pub fn dump(&mut self, prefix: &str) -> Vec<(String, String)> {
        let mut entries: Vec<(String, String)> = Vec::new();
        loop {
            let after = entries.last().map_or(String::new(), |(key, _)| format!(" {key}"));
            let page = lines(&self.ask(format!("dump {prefix}{after}")));
            if page.is_empty() {
                return entries;
            }
            let entry = |line: &String| line.split_once(' ').map(|(key, value)| (key.to_owned(), value.to_owned()));
            entries.extend(page.iter().map(|line| entry(line).expect("a key has a value")));
        }
    }

    /// Every run of an event so far, in the order of sequences and then of times.
    pub fn runs(&mut self) -> Vec<Ran> {
        self.dump("ran/")
            .iter()
            .map(|(key, value)| ran(key, value).expect("the ledger writes runs like this"))
            .collect()
    }

    /// The events in the order in which they ran.
    pub fn order(&mut self) -> Vec<EventId> {
        self.dump("order/").iter().map(|(_, name)| id(name).expect("the ledger writes ids like this")).collect()
    }

    /// Waits until as many runs were written down, and answers them.
    pub fn wait_for_runs(&mut self, count: usize) -> Vec<Ran> {
        let until = Instant::now() + PATIENCE;
        loop {
            let runs = self.runs();
            if runs.len() >= count {
                return runs;
            }
            assert!(Instant::now() < until, "{} of {count} events have run: {runs:?}", runs.len());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Holds the runs of one repeating event against its schedule: the first when it was scheduled for, and each next one
/// interval after the last that the one before stood for. So none is lost, none ran twice, and it does not drift.
pub fn assert_no_drift(runs: &[Ran], first: EventId, interval_ms: u64) {
    let mut next_ms = first.due_ms;
    for run in runs.iter().filter(|run| run.id.sequence == first.sequence) {
        assert_eq!(run.count, 1, "{run:?}");
        assert_eq!(run.id.due_ms, next_ms, "the event {first:?} every {interval_ms} ms has run like this: {runs:#?}");
        next_ms = run.id.due_ms + (run.missed + 1) * interval_ms;
    }
}

/// Milliseconds since 1970-01-01 UTC, now.
pub fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is set");
    u64::try_from(since.as_millis()).expect("there are not so many milliseconds yet")
}

/// Waits until the wall clock shows a time.
pub fn wait_until_wall(due_ms: u64) {
    while let Some(left @ 1..) = due_ms.checked_sub(wall_ms()) {
        thread::sleep(Duration::from_millis(left));
    }
}

/// What follows the first line, which says how much that is.
fn lines(answer: &str) -> Vec<String> {
    let mut lines = answer.lines();
    let count = lines.next().and_then(|head| head.split(' ').nth(1)?.parse::<usize>().ok());
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    assert_eq!(count, Some(lines.len()), "{answer}");
    lines
}

fn ran(key: &str, value: &str) -> Option<Ran> {
    let mut words = value.splitn(5, ' ');
    Some(Ran {
        id: id(key.strip_prefix("ran/")?)?,
        count: words.next()?.parse().ok()?,
        kind: words.next()?.to_owned(),
        late_ms: words.next()?.parse().ok()?,
        missed: words.next()?.parse().ok()?,
        payload: words.next()?.to_owned(),
    })
}

fn id(name: &str) -> Option<EventId> {
    let (sequence, due_ms) = name.split_once('/')?;
    Some(EventId { due_ms: due_ms.parse().ok()?, sequence: sequence.parse().ok()? })
}
