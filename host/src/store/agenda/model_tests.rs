//! Random schedules, cancels, clocks, commits, pages, crashes and restarts against a naive model: an ordered map of
//! everything that is pending. Every event that was not cancelled runs exactly once in effect, in order.

use proptest::prelude::*;

use super::*;
use crate::store::event::MissedRuns;
use crate::world::WorldChange;

#[derive(Clone, Debug)]
enum Step {
    Schedule {
        in_ms: u64,
        repeat: Option<(u64, bool)>,
    },
    /// The n-th pending event.
    Cancel(usize),
    /// Schedules, and then fails.
    Fail {
        in_ms: u64,
    },
    Advance(u64),
    SetBack(u64),
    /// Runs up to so many due events.
    Run(usize),
    /// Hands the batch over.
    Seal,
    /// Commits so many of the batches that were handed over.
    Commit(usize),
    /// Reads the oldest page that was asked for.
    ReadPage,
    /// Brings the oldest page that was read.
    BringPage,
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let repeat = prop::option::weighted(0.2, (1..9u64, any::<bool>()));
    prop_oneof![
        6 => (0..40u64, repeat).prop_map(|(in_ms, repeat)| Step::Schedule { in_ms, repeat }),
        2 => (0..8usize).prop_map(Step::Cancel),
        1 => (0..40u64).prop_map(|in_ms| Step::Fail { in_ms }),
        3 => (1..12u64).prop_map(Step::Advance),
        1 => (1..30u64).prop_map(Step::SetBack),
        4 => (1..4usize).prop_map(Step::Run),
        4 => Just(Step::Seal),
        4 => (1..4usize).prop_map(Step::Commit),
        5 => Just(Step::ReadPage),
        5 => Just(Step::BringPage),
        1 => Just(Step::Crash),
    ]
}

/// What is on disk.
#[derive(Clone, Default)]
struct Disk {
    events: BTreeMap<u64, Event>,
    next_sequence: u64,
    pending: u64,
    parked: u64,
    /// How often each run of each event took effect.
    ran: BTreeMap<String, u32>,
}

impl Disk {
    fn apply(&mut self, batch: &Batch) {
        for change in &batch.events {
            match change {
                EventChange::Put(event) => drop(self.events.insert(event.sequence, (**event).clone())),
                EventChange::Removed { sequence } => drop(self.events.remove(sequence)),
            }
        }
        if let Some(next_sequence) = batch.next_sequence {
            self.next_sequence = next_sequence;
        }
        for count in &batch.counts {
            (self.pending, self.parked) = (count.pending, count.parked);
        }
        for change in &batch.world {
            if let WorldChange::Kv { key, .. } = change {
                *self.ran.entry(key.to_string()).or_default() += 1;
            }
        }
    }

    fn read(&self, claim: &Claim) -> Vec<Event> {
        let mut events: Vec<Event> = self.events.values().cloned().collect();
        events.retain(|event| {
            !event.parked && claim.after.is_none_or(|after| event.place() > after) && event.place() <= claim.until
        });
        events.sort_by_key(Event::place);
        events.truncate(claim.limit);
        events
    }

    fn list(&self, after: Option<EventId>, limit: usize) -> Vec<Event> {
        let mut events: Vec<Event> = self.events.values().cloned().collect();
        events.retain(|event| after.is_none_or(|after| event.id() > after));
        events.sort_by_key(Event::id);
        events.truncate(limit);
        events
    }
}

const LIMITS: AgendaLimits = AgendaLimits { look_ahead_ms: 16, max_in_memory: 6, max_pending: 1000 };

struct Trial {
    agenda: Agenda,
    guest: AgendaGuest,
    now_ms: u64,
    disk: Disk,
    batch: Batch,
    handed_over: Vec<Batch>,
    committed: u64,
    /// Pages that were asked for, and those that were read.
    asked: Vec<(u64, Claim)>,
    read: Vec<(u64, Vec<Event>)>,
    /// What is pending, and what it will be after a crash.
    model: BTreeMap<u64, Event>,
}

impl Trial {
    fn new() -> Self {
        let mut trial = Self {
            agenda: Agenda::new(LIMITS, &[], 1),
            guest: AgendaGuest(0),
            now_ms: 1000,
            disk: Disk { next_sequence: 1, ..Disk::default() },
            batch: Batch { number: 1, ..Batch::default() },
            handed_over: Vec::new(),
            committed: 0,
            asked: Vec::new(),
            read: Vec::new(),
            model: BTreeMap::new(),
        };
        trial.start();
        trial
    }

    /// A host starts over what is on disk.
    fn start(&mut self) {
        let Disk { pending, parked, next_sequence, .. } = self.disk;
        let stored = StoredGuest { name: "rules".into(), initialised: true, state: None, pending, parked };
        self.agenda = Agenda::new(LIMITS, &[stored], next_sequence);
        self.guest = self.agenda.guest(&"rules".into());
        self.agenda.set_running(self.guest, true);
        self.batch = Batch { number: 1, ..Batch::default() };
        self.handed_over.clear();
        self.committed = 0;
        self.asked.clear();
        self.read.clear();
        self.model = self.disk.events.clone();
    }

    fn new_event(&self, in_ms: u64, repeat: Option<(u64, bool)>) -> NewEvent {
        let repeat = repeat.map(|(interval_ms, coalesce)| Repetition {
            interval_ms,
            missed: if coalesce { MissedRuns::Coalesce } else { MissedRuns::CatchUp },
        });
        NewEvent { kind: "k".into(), payload: Arc::from([]), due_ms: self.now_ms + in_ms, repeat }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Schedule { in_ms, repeat } => {
                let id = self.agenda.schedule(self.guest, self.new_event(in_ms, repeat)).unwrap();
                let Known::Pending(event) = self.agenda.find(self.guest, id.sequence) else { panic!("just scheduled") };
                self.model.insert(id.sequence, (*event).clone());
                self.commit();
            }
            Step::Cancel(nth) => {
                let Some(sequence) = self.model.keys().nth(nth).copied() else { return };
                let event = match self.agenda.find(self.guest, sequence) {
                    Known::Pending(event) => event,
                    Known::NotPending => panic!("{sequence} is pending"),
                    Known::AsOnDisk => Arc::new(self.disk.events[&sequence].clone()),
                };
                assert_eq!(*event, self.model[&sequence]);
                self.agenda.replace(&event, None);
                self.model.remove(&sequence);
                self.commit();
            }
            Step::Fail { in_ms } => {
                self.agenda.schedule(self.guest, self.new_event(in_ms, None)).unwrap();
                self.agenda.rollback();
            }
            Step::Advance(by_ms) => self.now_ms += by_ms,
            Step::SetBack(by_ms) => self.now_ms -= by_ms.min(self.now_ms),
            Step::Run(times) => drop((0..times).take_while(|_| self.run_one()).count()),
            Step::Seal => self.seal(),
            Step::Commit(batches) => self.commit_to_disk(batches),
            Step::ReadPage => self.read_page(),
            Step::BringPage => self.bring_page(),
            Step::Crash => self.start(),
        }
        for wish in self.agenda.take_wishes(self.now_ms, self.committed) {
            if let Wish::Page { number, claim } = wish {
                self.asked.push((number, claim));
            }
        }
        self.check_listing();
        assert!(self.agenda.counts().in_memory <= LIMITS.max_in_memory as u64);
        assert_eq!(self.agenda.counts().pending, self.model.len() as u64);
    }

    fn commit(&mut self) {
        self.agenda.commit(self.now_ms, &mut self.batch);
    }

    /// Runs the next event; it must be the first of all that are pending.
    fn run_one(&mut self) -> bool {
        let Some((_, event)) = self.agenda.next_due(self.now_ms, |_| true) else { return false };
        let event = Arc::clone(event);
        let first = self.model.values().min_by_key(|event| event.place()).expect("something is pending");
        assert_eq!(*event, *first, "the first of all that are due is run");
        let next = event.run(self.now_ms).next;
        let ran = format!("{}/{}", event.sequence, event.due_ms);
        match &next {
            Some(next) => self.model.insert(next.sequence, next.clone()),
            None => self.model.remove(&event.sequence),
        };
        self.batch.world.push(WorldChange::Kv { space: "rules".into(), key: ran.into(), value: None });
        self.agenda.replace(&event, next);
        self.commit();
        true
    }

    fn seal(&mut self) {
        let number = self.batch.number + 1;
        self.handed_over.push(std::mem::replace(&mut self.batch, Batch { number, ..Batch::default() }));
    }

    fn commit_to_disk(&mut self, batches: usize) {
        for batch in self.handed_over.drain(..batches.min(self.handed_over.len())) {
            self.disk.apply(&batch);
            self.committed = batch.number;
        }
        self.agenda.settle(self.committed);
    }

    fn read_page(&mut self) {
        if !self.asked.is_empty() {
            let (number, claim) = self.asked.remove(0);
            self.read.push((number, self.disk.read(&claim)));
        }
    }

    fn bring_page(&mut self) {
        if !self.read.is_empty() {
            let (number, events) = self.read.remove(0);
            self.agenda.page(number, events);
        }
    }

    fn check_listing(&self) {
        let expected: Vec<EventId> = {
            let mut ids: Vec<EventId> = self.model.values().map(Event::id).collect();
            ids.sort_unstable();
            ids
        };
        let mut listed: Vec<EventId> = Vec::new();
        loop {
            let read = |after, limit| Ok::<_, std::convert::Infallible>(self.disk.list(after, limit));
            let page = self.agenda.list(self.guest, listed.last().copied(), 3, read).unwrap();
            if page.is_empty() {
                break;
            }
            listed.extend(page.iter().map(|event| event.id()));
        }
        assert_eq!(listed, expected);
    }

    /// Lets everything come to its end: all batches on disk, all pages read, and everything that is due run.
    fn finish(&mut self) {
        for _ in 0..10_000 {
            self.seal();
            self.commit_to_disk(usize::MAX);
            self.take(&Step::ReadPage);
            self.take(&Step::BringPage);
            let is_due = self.model.values().any(|event| event.next_ms <= self.now_ms);
            if !self.run_one() && !is_due {
                self.seal();
                self.commit_to_disk(usize::MAX);
                return;
            }
        }
        panic!("events that are due do not run");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]
    #[test]
    fn every_event_that_was_not_cancelled_runs_once_in_effect_and_in_order(steps in prop::collection::vec(step(), 1..120)) {
        let mut trial = Trial::new();
        for step in &steps {
            trial.take(step);
        }
        trial.finish();
        prop_assert!(trial.disk.ran.values().all(|times| *times == 1), "{:?}", trial.disk.ran);
        prop_assert_eq!(&trial.disk.events, &trial.model);
        prop_assert!(trial.model.values().all(|event| event.next_ms > trial.now_ms));
    }
}
