//! Clients that put load on the host until it dies: each sends several packets ahead, and notes what it sent and which
//! answers came.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::thread::{self, JoinHandle};

use wheelhouse_tests::{Client, EventId, Random};

const CLIENTS: u64 = 4;

/// Packets that a client has on their way at most.
const MOST_IN_FLIGHT: u64 = 4;

/// How far ahead events are scheduled at most.
const FARTHEST_MS: u64 = 300;

/// What one client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// To bump the client's ledger `bumped`.
    Bump,
    /// To bump its ledgers `left` and `right` together.
    BumpBoth,
    /// To schedule an event that bumps its ledger `later`.
    Schedule,
    /// To cancel one of its events.
    Cancel(EventId),
    /// To read the ledger `bumped` of any client, itself perhaps, which changes nothing.
    Read,
}

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was acknowledged, with this packet.
    Acknowledged(String),
    /// The host died before it answered; it may have been carried out.
    Unknown,
}

/// All that one client sent in a round.
#[derive(Debug)]
pub struct Notes {
    /// Whose ledgers.
    pub client: String,
    pub orders: Vec<(Order, Outcome)>,
}

/// The clients at work.
pub struct Workload(Vec<JoinHandle<Notes>>);

impl Workload {
    /// Lets them begin.
    pub fn start(gate: SocketAddr, round: u64, random: &mut Random) -> Self {
        let mut start = |number: u64| {
            let random = Random::seeded(random.number());
            let client = format!("{round}-{number}");
            thread::spawn(move || Worker { client, round, random, known: Vec::new(), notes: Vec::new() }.work(gate))
        };
        Self((0..CLIENTS).map(&mut start).collect())
    }

    /// Waits until all have noticed that the host is dead.
    pub fn end(self) -> Vec<Notes> {
        self.0.into_iter().map(|client| client.join().expect("a client works until the host dies")).collect()
    }
}

struct Worker {
    client: String,
    round: u64,
    random: Random,
    /// Events that it has scheduled and not cancelled; some may have run.
    known: Vec<EventId>,
    notes: Vec<(Order, Outcome)>,
}

impl Worker {
    fn work(mut self, gate: SocketAddr) -> Notes {
        let mut connection = Client::connect(gate);
        let mut in_flight = VecDeque::new();
        loop {
            let ahead = 1 + self.random.below(MOST_IN_FLIGHT);
            while (in_flight.len() as u64) < ahead {
                let (order, packet) = self.next();
                in_flight.push_back(order);
                if !connection.try_send(packet) {
                    break;
                }
            }
            let Some(answer) = connection.try_receive() else { break };
            let order = in_flight.pop_front().expect("an answer belongs to an order");
            if order == Order::Schedule {
                self.known.push(EventId::scheduled(&answer));
            }
            self.notes.push((order, Outcome::Acknowledged(answer)));
        }
        self.notes.extend(in_flight.into_iter().map(|order| (order, Outcome::Unknown)));
        Notes { client: self.client, orders: self.notes }
    }

    fn next(&mut self) -> (Order, String) {
        let client = &self.client;
        match self.random.below(12) {
            0..4 => (Order::Bump, format!("bump {client}-bumped")),
            4 => (Order::BumpBoth, format!("bump2 {client}-left {client}-right")),
            5..8 => {
                let delay_ms = self.random.below(FARTHEST_MS);
                (Order::Schedule, format!("after {delay_ms} bump {client}-later"))
            }
            8 if !self.known.is_empty() => {
                let event = self.known.swap_remove(self.random.below(self.known.len() as u64) as usize);
                (Order::Cancel(event), format!("cancel {}", event.words()))
            }
            // Of another client it may be on its way to the disk, and no answer of this client waits for it before.
            _ => (Order::Read, format!("read {}-{}-bumped", self.round, self.random.below(CLIENTS))),
        }
    }
}
