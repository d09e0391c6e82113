//! A client of the ledger: it sends packets, receives answers, and reads what the ledger wrote down about events.

use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use wheelhouse::net::Client;

use crate::PATIENCE;

/// A connection.
pub struct Player {
    client: Client,
    runtime: Runtime,
}

/// An event's id; of a repeating event that of one of its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    pub due_ms: u64,
    pub sequence: u64,
}

/// A run of an event, as the ledger wrote it down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    pub id: EventId,
    /// How often it has run with effect, which should be once.
    pub count: u64,
    pub late_ms: u64,
    pub missed: u64,
    pub payload: String,
}

impl Player {
    /// Connects.
    pub fn connect(gate: std::net::SocketAddr) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("the machine has room for it");
        let client = runtime.block_on(Client::connect(gate)).expect("the gate takes connections");
        Self { client, runtime }
    }

    /// Sends a packet.
    pub fn send(&mut self, packet: impl AsRef<[u8]>) {
        let sent = self.runtime.block_on(async { timeout(PATIENCE, self.client.send(packet.as_ref())).await });
        sent.expect("the socket takes a packet in time").expect("the host keeps this connection open");
    }

    /// The next packet; none once the host has closed the connection.
    pub fn try_receive(&mut self) -> Option<String> {
        let received = self.runtime.block_on(async { timeout(PATIENCE, self.client.receive()).await });
        let packet = received.expect("the host answers, or closes the connection, in time").ok().flatten()?;
        Some(String::from_utf8_lossy(&packet).into_owned())
    }

    /// The next packet.
    pub fn receive(&mut self) -> String {
        self.try_receive().expect("the host keeps this connection open")
    }

    /// Sends a packet and answers the next one that comes.
    pub fn ask(&mut self, packet: impl AsRef<[u8]>) -> String {
        self.send(packet);
        self.receive()
    }

    /// Asks again and again until the answer is such that `condition`.
    pub fn ask_until(&mut self, packet: &str, condition: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let answered = self.ask(packet);
            if condition(&answered) {
                return answered;
            }
            assert!(Instant::now() < until, "{packet} is still answered with {answered:?}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Sends a packet that schedules an event.
    pub fn schedule(&mut self, packet: &str) -> EventId {
        EventId::scheduled(&self.ask(packet))
    }

    /// The count in a ledger.
    pub fn count(&mut self, name: &str) -> u64 {
        let answer = self.ask(format!("read {name}"));
        answer.rsplit(' ').next().and_then(|count| count.parse().ok()).expect("a ledger holds a number")
    }

    /// Pending events of the game, counted by itself.
    pub fn pending(&mut self) -> u64 {
        let answer = self.ask("walk");
        answer.strip_prefix("pending ").and_then(|count| count.parse().ok()).expect("the ledger counts events")
    }

    /// Keys that begin with `prefix`, in order, with their values.
    fn dump(&mut self, prefix: &str) -> Vec<(String, String)> {
        let mut entries: Vec<(String, String)> = Vec::new();
        loop {
            let after = entries.last().map_or(String::new(), |(key, _)| format!(" {key}"));
            let page = self.ask(format!("dump {prefix}{after}"));
            let lines = page.lines().skip(1).filter_map(|line| line.split_once(' '));
            let before = entries.len();
            entries.extend(lines.map(|(key, value)| (key.to_owned(), value.to_owned())));
            if entries.len() == before {
                return entries;
            }
        }
    }

    /// Every run of an event so far, by sequences and then times.
    pub fn runs(&mut self) -> Vec<Ran> {
        let dumped = self.dump("ran/");
        dumped.iter().map(|(key, value)| ran(key, value).expect("the ledger writes runs like this")).collect()
    }

    /// The events in the order in which they ran.
    pub fn order(&mut self) -> Vec<EventId> {
        self.dump("order/").iter().map(|(_, name)| id(name).expect("the ledger writes ids like this")).collect()
    }
}

impl EventId {
    /// As the ledger writes it in packets.
    pub fn words(&self) -> String {
        format!("{} {}", self.due_ms, self.sequence)
    }

    /// The id in an answer `scheduled DUE SEQUENCE`.
    pub fn scheduled(answer: &str) -> Self {
        let id = answer.strip_prefix("scheduled ").and_then(|words| words.split_once(' '));
        let id = id.and_then(|(due, sequence)| Some((due.parse().ok()?, sequence.parse().ok()?)));
        let (due_ms, sequence) = id.unwrap_or_else(|| panic!("nothing was scheduled: {answer:?}"));
        Self { due_ms, sequence }
    }
}

/// Holds the runs of one repeating event against its schedule: none is lost, none ran twice, and it does not drift.
/// Answers how many turns they cover.
pub fn assert_no_drift(runs: &[Ran], first: EventId, interval_ms: u64) -> u64 {
    let mut next_ms = first.due_ms;
    for run in runs.iter().filter(|run| run.id.sequence == first.sequence) {
        assert_eq!(run.count, 1, "{run:?}");
        assert_eq!(run.id.due_ms, next_ms, "the event {first:?} every {interval_ms} ms has run like this: {runs:#?}");
        next_ms = run.id.due_ms + (run.missed + 1) * interval_ms;
    }
    (next_ms - first.due_ms) / interval_ms
}

fn ran(key: &str, value: &str) -> Option<Ran> {
    // COUNT KIND LATE MISSED PAYLOAD
    let mut words = value.splitn(5, ' ');
    let count = words.next()?.parse().ok()?;
    let _kind = words.next()?;
    Some(Ran {
        id: id(key.strip_prefix("ran/")?)?,
        count,
        late_ms: words.next()?.parse().ok()?,
        missed: words.next()?.parse().ok()?,
        payload: words.next()?.to_owned(),
    })
}

fn id(name: &str) -> Option<EventId> {
    let (sequence, due_ms) = name.split_once('/')?;
    Some(EventId { due_ms: due_ms.parse().ok()?, sequence: sequence.parse().ok()? })
}
