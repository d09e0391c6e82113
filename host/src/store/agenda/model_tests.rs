//! Random schedules, cancels, failures, operators, clocks, commits, pages, crashes and restarts of two guests against a naive
//! model: an ordered map of everything that is pending. Every event that was not cancelled runs exactly once in effect, in
//! order where the store is this host's alone, and where it is shared, whichever host runs it.

use std::collections::VecDeque;
use std::convert::Infallible;

use proptest::collection::vec;
use proptest::prelude::*;

use super::model_disk::{Disk, Holder};
use super::*;
use crate::store::backend::Page;
use crate::store::event::MissedRuns;
use crate::world::WorldChange;

const GUESTS: [&str; 2] = ["rules", "weather"];
const PAUSE_MS: u64 = 3;
const MAX_ATTEMPTS: u32 = 3;

/// Sequences of the other host begin here.
const OTHERS: u64 = 1 << 40;

#[derive(Clone, Debug)]
enum Step {
    Schedule {
        guest: usize,
        in_ms: u64,
        bytes: usize,
        repeat: Option<(u64, bool)>,
    },
    /// A handler cancels the n-th pending event.
    Cancel(usize),
    /// An operator cancels the n-th pending event, or has it retried if it has failed.
    Decide {
        nth: usize,
        retry: bool,
    },
    /// Schedules, and then fails.
    Fail {
        in_ms: u64,
    },
    Advance(u64),
    SetBack(u64),
    /// Runs up to so many due events; the attempts fail.
    Run {
        times: usize,
        fails: bool,
    },
    /// Hands the batch over.
    Seal,
    /// Commits so many of the batches that were handed over.
    Commit(usize),
    /// The reader does the oldest job that it was given.
    Read,
    /// The reader fails at it.
    FailToRead,
    /// Brings the oldest answer of the reader.
    Bring,
    SetRunning {
        guest: usize,
        runs: bool,
    },
    Crash,
    /// The other host of a shared store takes the first of what is free.
    OthersClaim(usize),
    OthersSchedule {
        guest: usize,
        in_ms: u64,
    },
    /// It runs what it holds.
    OthersRun,
    OthersRelease,
}

fn step() -> impl Strategy<Value = Step> {
    let repeat = prop::option::weighted(0.2, (1..9u64, any::<bool>()));
    let guest = || 0..GUESTS.len();
    prop_oneof![
        12 => (guest(), 0..40u64, 0..30usize, repeat)
            .prop_map(|(guest, in_ms, bytes, repeat)| Step::Schedule { guest, in_ms, bytes, repeat }),
        4 => (0..12usize).prop_map(Step::Cancel),
        6 => (0..12usize, prop::bool::weighted(0.7)).prop_map(|(nth, retry)| Step::Decide { nth, retry }),
        1 => (0..40u64).prop_map(|in_ms| Step::Fail { in_ms }),
        6 => (1..12u64).prop_map(Step::Advance),
        2 => (1..30u64).prop_map(Step::SetBack),
        9 => (1..4usize, prop::bool::weighted(0.3)).prop_map(|(times, fails)| Step::Run { times, fails }),
        8 => Just(Step::Seal),
        8 => (1..4usize).prop_map(Step::Commit),
        12 => Just(Step::Read),
        2 => Just(Step::FailToRead),
        10 => Just(Step::Bring),
        2 => (guest(), any::<bool>()).prop_map(|(guest, runs)| Step::SetRunning { guest, runs }),
        1 => Just(Step::Crash),
        3 => (1..4usize).prop_map(Step::OthersClaim),
        2 => (guest(), 0..40u64).prop_map(|(guest, in_ms)| Step::OthersSchedule { guest, in_ms }),
        2 => Just(Step::OthersRun),
        1 => Just(Step::OthersRelease),
    ]
}

/// How the host is set up.
#[derive(Clone, Debug)]
struct Setting {
    is_exclusive: bool,
    limits: AgendaLimits,
}

fn setting() -> impl Strategy<Value = Setting> {
    (any::<bool>(), 1..30u64, 1..8usize, 1..80usize).prop_map(
        |(is_exclusive, look_ahead_ms, max_in_memory, max_in_memory_bytes)| Setting {
            is_exclusive,
            limits: AgendaLimits { look_ahead_ms, max_in_memory, max_in_memory_bytes, max_pending: 1_000_000 },
        },
    )
}

/// A job of the reader.
enum Job {
    Wish(Wish),
    Look { number: u64, sequence: u64, retry: bool },
}

/// Its answer.
enum Answer {
    Page { number: u64, page: Option<Page> },
    Look { number: u64, sequence: u64, retry: bool, found: Result<Option<Event>, ()> },
}

struct Trial {
    setting: Setting,
    agenda: Agenda,
    guests: [AgendaGuest; 2],
    runs: [bool; 2],
    now_ms: u64,
    disk: Disk,
    batch: Batch,
    handed_over: Vec<Batch>,
    committed: u64,
    jobs: VecDeque<Job>,
    answers: VecDeque<Answer>,
    /// What is pending.
    model: BTreeMap<u64, Event>,
    others_next: u64,
}

impl Trial {
    fn new(setting: Setting) -> Self {
        let mut trial = Self {
            agenda: Agenda::new(setting.limits.clone(), &[], 1),
            setting,
            guests: [AgendaGuest(0); 2],
            runs: [true; 2],
            now_ms: 1000,
            disk: Disk { next_sequence: 1, ..Disk::default() },
            batch: Batch::default(),
            handed_over: Vec::new(),
            committed: 0,
            jobs: VecDeque::new(),
            answers: VecDeque::new(),
            model: BTreeMap::new(),
            others_next: OTHERS,
        };
        trial.start();
        trial
    }

    /// A host starts over what is on disk. The leases of the one before have run out.
    fn start(&mut self) {
        self.disk.holders.retain(|_, holder| *holder == Holder::Others);
        let stored: Vec<StoredGuest> = self
            .disk
            .counts
            .iter()
            .map(|(name, (pending, parked))| {
                let (name, pending, parked) = (Arc::clone(name), *pending as u64, *parked as u64);
                StoredGuest { name, initialised: true, state: None, pending, parked }
            })
            .collect();
        let Setting { is_exclusive, ref limits } = self.setting;
        self.agenda = Agenda::new(limits.clone(), &stored, self.disk.next_sequence).exclusive(is_exclusive);
        self.guests = GUESTS.map(|name| self.agenda.guest(&name.into()));
        self.guests.iter().for_each(|guest| self.agenda.set_running(*guest, true));
        self.runs = [true; 2];
        self.batch = Batch { number: 1, ..Batch::default() };
        self.handed_over.clear();
        self.committed = 0;
        self.jobs.clear();
        self.answers.clear();
        self.model = self.disk.events.clone();
    }

    fn new_event(&self, in_ms: u64, bytes: usize, repeat: Option<(u64, bool)>) -> NewEvent {
        let repeat = repeat.map(|(interval_ms, coalesce)| Repetition {
            interval_ms,
            missed: if coalesce { MissedRuns::Coalesce } else { MissedRuns::CatchUp },
        });
        NewEvent { kind: "k".into(), payload: vec![7; bytes].into(), due_ms: self.now_ms + in_ms, repeat }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Schedule { guest, in_ms, bytes, repeat } => {
                let guest = self.guests[guest];
                let id = self.agenda.schedule(guest, self.new_event(in_ms, bytes, repeat)).unwrap();
                let Known::Pending(event) = self.agenda.find(guest, id.sequence) else { panic!("just scheduled") };
                self.model.insert(id.sequence, (*event).clone());
                self.commit();
            }
            Step::Cancel(nth) => self.cancel(nth),
            Step::Decide { nth, retry } => self.decide(nth, retry),
            Step::Fail { in_ms } => {
                self.agenda.schedule(self.guests[0], self.new_event(in_ms, 1, None)).unwrap();
                self.agenda.rollback();
            }
            Step::Advance(by_ms) => self.now_ms += by_ms,
            Step::SetBack(by_ms) => self.now_ms -= by_ms.min(self.now_ms),
            Step::Run { times, fails } => drop((0..times).take_while(|_| self.run_one(fails)).count()),
            Step::Seal => self.seal(),
            Step::Commit(batches) => self.commit_to_disk(batches),
            Step::Read => self.read(false),
            Step::FailToRead => self.read(true),
            Step::Bring => self.bring(),
            Step::SetRunning { guest, runs } => self.set_running(guest, runs),
            Step::Crash => self.start(),
            _ if self.setting.is_exclusive => {}
            Step::OthersClaim(events) => self.others_claim(events),
            Step::OthersSchedule { guest, in_ms } => {
                self.others_next += 1;
                let event =
                    Event { guest: GUESTS[guest].into(), ..Event::sample(self.others_next, self.now_ms + in_ms) };
                self.disk.counts.entry(Arc::clone(&event.guest)).or_default().0 += 1;
                self.model.insert(event.sequence, event.clone());
                self.disk.events.insert(event.sequence, event);
            }
            Step::OthersRun => self.others_run(),
            Step::OthersRelease => self.disk.holders.retain(|_, holder| *holder != Holder::Others),
        }
        self.jobs.extend(self.agenda.take_wishes(self.now_ms, self.committed).into_iter().map(Job::Wish));
        self.check();
    }

    fn commit(&mut self) {
        self.agenda.commit(self.now_ms, &mut self.batch);
    }

    fn set_running(&mut self, guest: usize, runs: bool) {
        self.agenda.set_running(self.guests[guest], runs);
        self.runs[guest] = runs;
    }

    /// Whether this host may change an event: in a shared store what it holds, and will hold when the change is committed.
    fn may_change(&self, event: &Event) -> bool {
        let is_changed = self.agenda.unsettled.get(event.sequence).is_some();
        self.setting.is_exclusive
            || self.agenda.is_in_memory(event)
            || (!is_changed && self.disk.is_looked_at(event.sequence))
    }

    fn cancel(&mut self, nth: usize) {
        let Some(event) = self.model.values().nth(nth).cloned() else { return };
        let guest = self.agenda.guest(&event.guest);
        let known = match self.agenda.find(guest, event.sequence) {
            Known::Pending(known) => known,
            Known::NotPending => panic!("{event:?} is pending"),
            Known::AsOnDisk => {
                // The reader does what it was asked before.
                while !self.jobs.is_empty() {
                    self.read(false);
                }
                match self.disk.event(event.sequence) {
                    Ok(found) => Arc::new(found.expect("it is pending and nothing else is known of it")),
                    Err(()) => return,
                }
            }
        };
        self.decided(&known, false);
    }

    fn decide(&mut self, nth: usize, retry: bool) {
        let Some(sequence) = self.model.keys().nth(nth).copied() else { return };
        match self.agenda.find_any(sequence) {
            Known::Pending(event) => self.decided(&event, retry),
            Known::NotPending => panic!("{sequence} is pending"),
            Known::AsOnDisk => {
                let number = self.agenda.begin_look(self.committed);
                self.jobs.push_back(Job::Look { number, sequence, retry });
            }
        }
    }

    fn decided(&mut self, event: &Arc<Event>, retry: bool) {
        if !self.may_change(event) || (retry && event.attempts == 0) {
            return self.disk.let_go(event.sequence);
        }
        assert_eq!(Some(&**event), self.model.get(&event.sequence));
        assert!(self.agenda.is_current(event));
        let now = retry.then(|| event.retried(self.now_ms));
        match &now {
            Some(now) => self.model.insert(now.sequence, now.clone()),
            None => self.model.remove(&event.sequence),
        };
        self.agenda.replace(event, now);
        self.commit();
    }

    /// Runs the next event. Where the store is ours it must be the first of all that are pending.
    fn run_one(&mut self, fails: bool) -> bool {
        let Some((_, event)) = self.agenda.next_due(self.now_ms, |_| true) else { return false };
        let event = Arc::clone(event);
        assert_eq!(Some(&*event), self.model.get(&event.sequence));
        if self.setting.is_exclusive {
            let runs = |event: &&Event| !event.parked && self.runs[usize::from(&*event.guest == GUESTS[1])];
            let first = self.model.values().filter(runs).min_by_key(|event| event.place());
            assert_eq!(Some(&*event), first, "the first of all that are due is run");
        }
        let next = match fails {
            true => Some(event.failed(self.now_ms, "no", PAUSE_MS, MAX_ATTEMPTS)),
            false => event.run(self.now_ms).next,
        };
        match &next {
            Some(next) => self.model.insert(next.sequence, next.clone()),
            None => self.model.remove(&event.sequence),
        };
        if !fails {
            let key = run_of(&event).into();
            self.batch.world.push(WorldChange::Kv { space: "rules".into(), key, value: None });
        }
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

    fn read(&mut self, fails: bool) {
        match self.jobs.pop_front() {
            Some(Job::Wish(Wish::Page { number, claim })) => {
                let page = (!fails).then(|| self.disk.claim(&claim, self.setting.is_exclusive));
                self.answers.push_back(Answer::Page { number, page });
            }
            Some(Job::Wish(Wish::Release { guest, from })) => self.disk.release(&guest, from),
            Some(Job::Look { number, sequence, retry }) => {
                let found = if fails { Err(()) } else { self.disk.event(sequence) };
                self.answers.push_back(Answer::Look { number, sequence, retry, found });
            }
            None => {}
        }
    }

    fn bring(&mut self) {
        match self.answers.pop_front() {
            Some(Answer::Page { number, page: Some(page) }) => self.agenda.page(number, page),
            Some(Answer::Page { number, page: None }) => self.agenda.page_failed(number),
            Some(Answer::Look { number, sequence, retry, found }) => {
                let known = self.agenda.find_any(sequence);
                self.agenda.end_look(number);
                match (known, found) {
                    (Known::Pending(event), _) => self.decided(&event, retry),
                    (Known::AsOnDisk, Ok(Some(event))) => self.decided(&Arc::new(event), retry),
                    (Known::AsOnDisk, Err(())) => {}
                    (Known::NotPending, _) | (Known::AsOnDisk, Ok(None)) => {
                        assert!(!self.setting.is_exclusive || !self.model.contains_key(&sequence));
                    }
                }
            }
            None => {}
        }
    }

    fn others_claim(&mut self, events: usize) {
        let is_free = |event: &&Event| !event.parked && !self.disk.holders.contains_key(&event.sequence);
        let mut free: Vec<&Event> = self.disk.events.values().filter(is_free).collect();
        free.sort_by_key(|event| event.place());
        let claimed: Vec<u64> = free.iter().take(events).map(|event| event.sequence).collect();
        self.disk.holders.extend(claimed.into_iter().map(|sequence| (sequence, Holder::Others)));
    }

    fn others_run(&mut self) {
        for event in self.disk.held_by_others() {
            if event.next_ms > self.now_ms {
                continue;
            }
            *self.disk.ran.entry(run_of(&event)).or_default() += 1;
            self.disk.holders.remove(&event.sequence);
            if event.repeat.is_none() {
                self.disk.counts.entry(Arc::clone(&event.guest)).or_default().0 -= 1;
            }
            for events in [&mut self.disk.events, &mut self.model] {
                match event.run(self.now_ms).next {
                    Some(next) => events.insert(next.sequence, next),
                    None => events.remove(&event.sequence),
                };
            }
        }
    }

    fn check(&self) {
        let limits = &self.setting.limits;
        for listed in &self.agenda.guests {
            assert!(listed.window.len() <= limits.max_in_memory);
            let last = listed.window.iter().last().map_or(0, |event| event.payload.len());
            assert!(listed.window.bytes() - last <= limits.max_in_memory_bytes);
            let bytes: usize = listed.window.iter().map(|event| event.payload.len()).sum();
            assert_eq!(bytes, listed.window.bytes());
        }
        if !self.setting.is_exclusive {
            return;
        }
        let AgendaCounts { pending, parked, .. } = self.agenda.counts();
        let parked_in_model = self.model.values().filter(|event| event.parked).count();
        assert_eq!((pending, parked), (self.model.len() as u64, parked_in_model as u64));
        assert!(self.model.values().all(|event| self.agenda.is_current(event)));
        for (guest, name) in self.guests.iter().zip(GUESTS) {
            let mut expected: Vec<&Event> = self.model.values().filter(|event| &*event.guest == name).collect();
            expected.sort_by_key(|event| event.id());
            let mut listed: Vec<Arc<Event>> = Vec::new();
            loop {
                let read = |after, limit| Ok::<_, Infallible>(self.disk.list(name, after, limit));
                let after = listed.last().map(|event| event.id());
                let page = self.agenda.list(*guest, after, 3, 40, read).unwrap();
                let bytes: usize = page.iter().map(|event| event.payload.len()).sum();
                assert!(page.len() <= 3 && (bytes <= 40 || page.len() == 1));
                if page.is_empty() {
                    break;
                }
                listed.extend(page);
            }
            assert!(listed.iter().map(|event| &**event).eq(expected), "{listed:?}");
        }
    }

    fn is_something_due(&self) -> bool {
        self.model.values().any(|event| !event.parked && event.next_ms <= self.now_ms)
    }

    /// Lets everything come to its end: all batches on disk, all jobs done, and everything that is due run.
    fn finish(&mut self) {
        (0..GUESTS.len()).for_each(|guest| self.take(&Step::SetRunning { guest, runs: true }));
        for _ in 0..200 {
            let mut idle = 0;
            while idle < 8 {
                self.seal();
                self.commit_to_disk(usize::MAX);
                self.take(&Step::OthersRun);
                self.take(&Step::OthersRelease);
                let mut jobs = 0;
                while !self.jobs.is_empty() || !self.answers.is_empty() {
                    self.take(&Step::Read);
                    self.take(&Step::Bring);
                    jobs += 1;
                    assert!(jobs < 1000, "pages are read without end");
                }
                idle = if self.run_one(false) { 0 } else { idle + 1 };
            }
            if !self.is_something_due() {
                self.seal();
                self.commit_to_disk(usize::MAX);
                return;
            }
            assert!(!self.setting.is_exclusive, "events that are due do not run");
            // What the other host has given back comes with the next page, for which repeating events may leave no room.
            let is_in_the_way = |event: &Event| event.repeat.is_some() && self.agenda.is_in_memory(event);
            if let Some(nth) = self.model.values().position(is_in_the_way) {
                self.take(&Step::Cancel(nth));
            }
            self.take(&Step::Advance(self.setting.limits.look_ahead_ms));
        }
        panic!("events that are due do not run: {:?}, of which these are held: {:?}", self.model, self.disk.holders);
    }
}

fn run_of(event: &Event) -> String {
    format!("{}/{}", event.sequence, event.due_ms)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 768, ..ProptestConfig::default() })]
    #[test]
    fn every_event_that_was_not_cancelled_runs_once_in_effect_and_in_order(
        setting in setting(),
        steps in vec(step(), 1..140),
    ) {
        let mut trial = Trial::new(setting);
        for step in &steps {
            trial.take(step);
        }
        trial.finish();
        prop_assert!(trial.disk.ran.values().all(|times| *times == 1), "{:?}", trial.disk.ran);
        prop_assert_eq!(&trial.disk.events, &trial.model);
        prop_assert!(!trial.is_something_due());
    }
}
