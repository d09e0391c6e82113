//! What must be true of the world after a crash: the clients' notes on one side, the ledgers and the record of events
//! that ran on the other.

use std::collections::{HashMap, HashSet};
use std::thread;
use std::time::{Duration, Instant};

use wheelhouse_tests::{Client, EventId, PATIENCE, Ran, assert_no_drift, wall_ms};

use super::workload::{Notes, Order, Outcome};

/// The repeating events that go on over all rounds, and their intervals.
const REPEATING: [(&str, u64); 2] = [("coalesce", 40), ("catch-up", 70)];

/// What is known of a world.
#[derive(Default)]
pub struct Books {
    /// Of each ledger that clients bump themselves: how often that was acknowledged and how often it was sent.
    bumps: HashMap<String, Count>,
    /// Of each ledger that clients bump themselves: the most that anybody was told is in it.
    told: HashMap<String, u64>,
    /// Of each ledger that events bump: how many were scheduled for certain, and how many perhaps.
    schedules: HashMap<String, Count>,
    scheduled: HashSet<EventId>,
    cancels: HashMap<EventId, Cancelled>,
    repeating: Vec<(EventId, u64)>,
    /// The runs of repeating events when they were cancelled.
    last_runs: Option<Vec<Ran>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    acknowledged: u64,
    sent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cancelled {
    /// It was pending, and is not any more.
    Yes,
    /// It had run.
    TooLate,
    /// The host died before it answered.
    Perhaps,
}

impl Books {
    /// Opens the books of a new world, and schedules what repeats.
    pub fn open(client: &mut Client) -> Self {
        let repeating = REPEATING.map(|(missed, interval_ms)| {
            (client.schedule(&format!("every {interval_ms} {missed} note tick")), interval_ms)
        });
        Self { repeating: repeating.to_vec(), ..Self::default() }
    }

    /// Takes over what the clients of a round have noted.
    pub fn add(&mut self, notes: Vec<Notes>) {
        for Notes { client, orders } in notes {
            for (order, outcome) in orders {
                self.note(&client, order, &outcome);
            }
        }
    }

    fn note(&mut self, client: &str, order: Order, outcome: &Outcome) {
        let acknowledged = u64::from(*outcome != Outcome::Unknown);
        let count = |counts: &mut HashMap<String, Count>, ledger: &str| {
            let count = counts.entry(format!("{client}-{ledger}")).or_default();
            count.acknowledged += acknowledged;
            count.sent += 1;
        };
        match order {
            Order::Bump => count(&mut self.bumps, "bumped"),
            Order::BumpBoth => ["left", "right"].iter().for_each(|side| count(&mut self.bumps, side)),
            Order::Schedule => {
                count(&mut self.schedules, "later");
                if let Outcome::Acknowledged(answer) = outcome {
                    let id = EventId::scheduled(answer);
                    assert!(self.scheduled.insert(id), "the id {id:?} was given twice");
                }
            }
            Order::Cancel(id) => {
                let cancelled = match outcome {
                    Outcome::Acknowledged(answer) if answer == "cancelled true" => Cancelled::Yes,
                    Outcome::Acknowledged(_) => Cancelled::TooLate,
                    Outcome::Unknown => Cancelled::Perhaps,
                };
                self.cancels.insert(id, cancelled);
            }
            Order::Read => {}
        }
        if let (Order::Bump | Order::BumpBoth | Order::Read, Outcome::Acknowledged(answer)) = (order, outcome) {
            self.note_told(answer);
        }
    }

    /// Notes what a client was told about ledgers: `NAME COUNT`, of one or of several.
    fn note_told(&mut self, answer: &str) {
        let words: Vec<&str> = answer.split(' ').collect();
        for pair in words.chunks(2) {
            let [name, count] = pair else { panic!("this tells of no ledger: {answer:?}") };
            let count: u64 = count.parse().expect("a ledger holds a number");
            let most = self.told.entry((*name).to_owned()).or_default();
            *most = count.max(*most);
        }
    }

    /// Waits until every event that was due has run, and nothing but what repeats is left.
    pub fn wait_for_due_events(&self, client: &mut Client) {
        let until = Instant::now() + PATIENCE;
        loop {
            let pending = client.pending(10, None);
            let due = pending.iter().filter(|line| !self.is_repeating(line) || due_ms(line) <= wall_ms()).count();
            if due == 0 {
                return;
            }
            assert!(Instant::now() < until, "these are due, and do not run: {pending:#?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn is_repeating(&self, line: &str) -> bool {
        let sequence = line.split(' ').nth(1).and_then(|word| word.parse().ok());
        self.repeating.iter().any(|(id, _)| Some(id.sequence) == sequence)
    }

    /// Holds the world against the books.
    pub fn check(&self, client: &mut Client) {
        let ledgers = client.dump("ledger/").into_iter();
        let number = |count: String| count.parse().expect("a ledger holds a number");
        let ledgers = ledgers.map(|(key, count)| (key.replace("ledger/", ""), number(count))).collect();
        self.hold(&ledgers, client.runs());
    }

    /// Holds ledgers and runs against the books.
    fn hold(&self, ledgers: &HashMap<String, u64>, runs: Vec<Ran>) {
        let (repeated, once): (Vec<Ran>, Vec<Ran>) = runs.into_iter().partition(|run| self.repeats(run));
        self.check_bumps(ledgers);
        self.check_told(ledgers);
        self.check_schedules(ledgers, &once);
        for (first, interval_ms) in &self.repeating {
            assert_no_drift(&repeated, *first, *interval_ms);
        }
        if let Some(last_runs) = &self.last_runs {
            assert_eq!(&repeated, last_runs, "what repeats was cancelled, and has run again");
        }
    }

    /// What anybody was told is in a ledger is there: told to who bumped it, or to who read it.
    fn check_told(&self, ledgers: &HashMap<String, u64>) {
        for (name, told) in &self.told {
            let count = ledgers.get(name).copied().unwrap_or_default();
            assert!(count >= *told, "{name} is {count}, and a client was told {told}");
        }
    }

    /// Every acknowledged bump is there, and none that was not sent; what is bumped together is equal.
    fn check_bumps(&self, ledgers: &HashMap<String, u64>) {
        for (name, Count { acknowledged, sent }) in &self.bumps {
            let bumped = ledgers.get(name).copied().unwrap_or_default();
            assert!(bumped >= *acknowledged, "{name} is {bumped}, and {acknowledged} bumps were acknowledged");
            assert!(bumped <= *sent, "{name} is {bumped}, and only {sent} bumps were sent");
            if let Some(client) = name.strip_suffix("-left") {
                let right = ledgers.get(&format!("{client}-right")).copied().unwrap_or_default();
                assert_eq!(bumped, right, "{name} was bumped without its other half");
            }
        }
    }

    /// Every event ran once in effect, what was acknowledged ran, and what was cancelled did not.
    fn check_schedules(&self, ledgers: &HashMap<String, u64>, runs: &[Ran]) {
        let mut bumped: HashMap<&str, u64> = HashMap::new();
        for run in runs {
            assert_eq!(run.count, 1, "an event ran {} times: {run:?}", run.count);
            *bumped.entry(&run.payload).or_default() += 1;
        }
        for (name, Count { sent, .. }) in &self.schedules {
            let in_ledger = ledgers.get(name).copied().unwrap_or_default();
            let ran = bumped.get(name.as_str()).copied().unwrap_or_default();
            assert_eq!(in_ledger, ran, "{name} has not what the events that ran have put there");
            assert!(ran <= *sent, "{name}: {ran} events ran, and only {sent} were scheduled");
        }
        let ran: HashSet<EventId> = runs.iter().map(|run| run.id).collect();
        for id in &self.scheduled {
            match self.cancels.get(id) {
                None => assert!(ran.contains(id), "{id:?} was acknowledged, and did not run"),
                Some(Cancelled::Yes) => assert!(!ran.contains(id), "{id:?} was cancelled, and ran"),
                Some(Cancelled::TooLate) => assert!(ran.contains(id), "{id:?} could not be cancelled, and did not run"),
                Some(Cancelled::Perhaps) => {}
            }
        }
    }

    /// Cancels what repeats: from here on it must not run any more.
    pub fn close(&mut self, client: &mut Client) {
        assert_eq!(client.ask("cancel-kind note"), format!("cancelled {}", self.repeating.len()));
        self.last_runs = Some(client.runs().into_iter().filter(|run| self.repeats(run)).collect());
    }

    fn repeats(&self, run: &Ran) -> bool {
        self.repeating.iter().any(|(id, _)| id.sequence == run.id.sequence)
    }

    /// What was done so far, in a line.
    pub fn summary(&self) -> String {
        let acknowledged =
            |counts: &HashMap<String, Count>| counts.values().map(|count| count.acknowledged).sum::<u64>();
        let cancelled = self.cancels.values().filter(|cancelled| **cancelled == Cancelled::Yes).count();
        format!(
            "{} bumps, {} events and {cancelled} cancels acknowledged so far",
            acknowledged(&self.bumps),
            acknowledged(&self.schedules)
        )
    }
}

fn due_ms(line: &str) -> u64 {
    line.split(' ').next().and_then(|word| word.parse().ok()).expect("a line begins with a time")
}

/// The check itself is checked: each of these worlds is not as it should be.
mod wrong_worlds {
    use super::*;

    const EVENT: EventId = EventId { due_ms: 1000, sequence: 7 };

    /// One client with one order.
    fn books(order: Order, answer: &str) -> Books {
        let mut books = Books::default();
        let orders = vec![(order, Outcome::Acknowledged(answer.into()))];
        books.add(vec![Notes { client: "0-0".into(), orders }]);
        books
    }

    fn ledgers(counts: &[(&str, u64)]) -> HashMap<String, u64> {
        counts.iter().map(|(name, count)| (format!("0-0-{name}"), *count)).collect()
    }

    fn ran(id: EventId, count: u64, missed: u64) -> Ran {
        Ran { id, count, kind: "bump".into(), late_ms: 0, missed, payload: "0-0-later".into() }
    }

    fn scheduled() -> Books {
        books(Order::Schedule, "scheduled 1000 7")
    }

    #[test]
    fn what_is_as_it_should_be_passes() {
        books(Order::Bump, "0-0-bumped 1").hold(&ledgers(&[("bumped", 1)]), vec![]);
        books(Order::Read, "0-0-bumped 1").hold(&ledgers(&[("bumped", 2)]), vec![]);
        books(Order::BumpBoth, "0-0-left 1 0-0-right 1").hold(&ledgers(&[("left", 1), ("right", 1)]), vec![]);
        scheduled().hold(&ledgers(&[("later", 1)]), vec![ran(EVENT, 1, 0)]);
    }

    #[test]
    #[should_panic(expected = "1 bumps were acknowledged")]
    fn an_acknowledged_bump_is_lost() {
        books(Order::Bump, "0-0-bumped 1").hold(&ledgers(&[]), vec![]);
    }

    #[test]
    #[should_panic(expected = "a client was told 2")]
    fn what_a_reader_was_told_is_lost() {
        books(Order::Read, "0-0-bumped 2").hold(&ledgers(&[("bumped", 1)]), vec![]);
    }

    #[test]
    #[should_panic(expected = "0-0-right is 1, and a client was told 3")]
    fn what_a_bump_of_several_was_told_is_lost() {
        books(Order::BumpBoth, "0-0-left 1 0-0-right 3").hold(&ledgers(&[("left", 1), ("right", 1)]), vec![]);
    }

    #[test]
    #[should_panic(expected = "only 1 bumps were sent")]
    fn a_bump_was_counted_twice() {
        books(Order::Bump, "0-0-bumped 1").hold(&ledgers(&[("bumped", 2)]), vec![]);
    }

    #[test]
    #[should_panic(expected = "without its other half")]
    fn a_handler_was_torn() {
        let mut books = books(Order::BumpBoth, "0-0-left 1 0-0-right 1");
        let orders = vec![(Order::BumpBoth, Outcome::Unknown)];
        books.add(vec![Notes { client: "0-0".into(), orders }]);
        books.hold(&ledgers(&[("left", 1), ("right", 2)]), vec![]);
    }

    #[test]
    #[should_panic(expected = "was acknowledged, and did not run")]
    fn an_event_is_lost() {
        scheduled().hold(&ledgers(&[]), vec![]);
    }

    #[test]
    #[should_panic(expected = "an event ran 2 times")]
    fn an_event_ran_twice() {
        scheduled().hold(&ledgers(&[("later", 2)]), vec![ran(EVENT, 2, 0)]);
    }

    #[test]
    #[should_panic(expected = "has not what the events that ran have put there")]
    fn what_an_event_did_and_that_it_ran_are_apart() {
        scheduled().hold(&ledgers(&[]), vec![ran(EVENT, 1, 0)]);
    }

    #[test]
    #[should_panic(expected = "was cancelled, and ran")]
    fn a_cancelled_event_ran() {
        let mut books = scheduled();
        let orders = vec![(Order::Cancel(EVENT), Outcome::Acknowledged("cancelled true".into()))];
        books.add(vec![Notes { client: "0-0".into(), orders }]);
        books.hold(&ledgers(&[("later", 1)]), vec![ran(EVENT, 1, 0)]);
    }

    fn repeating(runs: &[(u64, u64)]) {
        let runs = runs.iter().map(|(due_ms, missed)| ran(EventId { due_ms: *due_ms, ..EVENT }, 1, *missed)).collect();
        Books { repeating: vec![(EVENT, 40)], ..Books::default() }.hold(&ledgers(&[]), runs);
    }

    #[test]
    fn a_repeating_event_that_keeps_its_schedule_passes() {
        repeating(&[(1000, 0), (1040, 2), (1160, 0)]);
    }

    #[test]
    #[should_panic(expected = "has run like this")]
    fn a_repeating_event_drifts() {
        repeating(&[(1000, 0), (1041, 0)]);
    }

    #[test]
    #[should_panic(expected = "has run like this")]
    fn a_run_of_a_repeating_event_is_lost() {
        repeating(&[(1000, 0), (1080, 0)]);
    }
}
