//! Cases of paging and time by name: what stands at a border is neither lost nor run twice.

use std::sync::Arc;

use super::*;
use crate::store::event::MissedRuns;

/// An agenda over a disk that commits at once, and what has run.
struct Desk {
    agenda: Agenda,
    guest: AgendaGuest,
    disk: BTreeMap<u64, Arc<Event>>,
    batch: u64,
}

impl Desk {
    fn new(max_in_memory: usize) -> Self {
        let limits = AgendaLimits { look_ahead_ms: 10, max_in_memory, max_pending: 1000 };
        let mut agenda = Agenda::new(limits, &[], 1);
        let guest = agenda.guest(&"rules".into());
        agenda.set_running(guest, true);
        Self { agenda, guest, disk: BTreeMap::new(), batch: 0 }
    }

    fn schedule(&mut self, due_ms: u64) -> EventId {
        let new = NewEvent { kind: "k".into(), payload: Arc::from([]), due_ms, repeat: None };
        let id = self.agenda.schedule(self.guest, new).expect("there is room");
        self.commit(0);
        id
    }

    fn commit(&mut self, now_ms: u64) {
        self.batch += 1;
        let mut batch = Batch { number: self.batch, ..Batch::default() };
        self.agenda.commit(now_ms, &mut batch);
        for change in batch.events {
            match change {
                EventChange::Put(event) => self.disk.insert(event.sequence, event),
                EventChange::Removed { sequence } => self.disk.remove(&sequence),
            };
        }
        self.agenda.settle(self.batch);
    }

    fn read(&self, claim: &Claim) -> Vec<Event> {
        let mut events: Vec<Event> = self.disk.values().map(|event| (**event).clone()).collect();
        events.retain(|event| {
            !event.parked && claim.after.is_none_or(|after| event.place() > after) && event.place() <= claim.until
        });
        events.sort_by_key(Event::place);
        events.truncate(claim.limit);
        events
    }

    /// The claim of the page that is wanted now.
    fn wanted_page(&mut self, now_ms: u64) -> Option<(u64, Claim)> {
        let wishes = self.agenda.take_wishes(now_ms, self.batch);
        wishes.into_iter().find_map(|wish| match wish {
            Wish::Page { number, claim } => Some((number, claim)),
            Wish::Release { .. } => None,
        })
    }

    /// Runs everything that is due, with pages as they are wanted, and answers the due times.
    fn run(&mut self, now_ms: u64) -> Vec<u64> {
        let mut ran = Vec::new();
        loop {
            if let Some((number, claim)) = self.wanted_page(now_ms) {
                self.agenda.page(number, self.read(&claim));
            }
            let Some((_, event)) = self.agenda.next_due(now_ms, |_| true) else { return ran };
            let event = Arc::clone(event);
            ran.push(event.due_ms);
            self.agenda.replace(&event, event.run(now_ms).next);
            self.commit(now_ms);
        }
    }

    /// The same desk after its host has gone and come again.
    fn restarted(&self) -> Self {
        let mut desk = Self::new(self.agenda.limits.max_in_memory);
        let pending = self.disk.len() as u64;
        let parked = self.disk.values().filter(|event| event.parked).count() as u64;
        let stored = StoredGuest { name: "rules".into(), initialised: true, state: None, pending, parked };
        desk.agenda = Agenda::new(self.agenda.limits.clone(), &[stored], self.agenda.next_sequence);
        desk.guest = desk.agenda.guest(&"rules".into());
        desk.agenda.set_running(desk.guest, true);
        desk.disk = self.disk.clone();
        desk
    }
}

#[test]
fn ten_events_of_which_six_share_the_time_at_the_page_border_all_run_once() {
    // Pages of 8.
    let mut before = Desk::new(32);
    let times = [1, 2, 3, 4, 5, 5, 5, 5, 5, 5];
    times.iter().for_each(|due_ms| _ = before.schedule(*due_ms));
    let mut desk = before.restarted();
    assert_eq!(desk.run(100), times);
    assert!(desk.disk.is_empty());
}

#[test]
fn a_page_whose_events_all_share_one_time_and_outnumber_the_limit_is_followed_by_the_rest() {
    let mut before = Desk::new(32);
    (0..50).for_each(|_| _ = before.schedule(7));
    let mut desk = before.restarted();
    assert_eq!(desk.run(6), [0; 0]);
    assert_eq!(desk.run(7), [7; 50]);
}

#[test]
fn events_inserted_at_the_border_time_while_the_pager_stands_on_it_run_once_and_in_order() {
    let mut before = Desk::new(32);
    (0..12).for_each(|_| _ = before.schedule(5));
    let mut desk = before.restarted();
    let (number, claim) = desk.wanted_page(100).expect("the first page");
    let page = desk.read(&claim);
    // While the page is on its way, and once it has come.
    let meanwhile = desk.schedule(5);
    desk.agenda.page(number, page);
    let afterwards = desk.schedule(5);
    assert!(meanwhile < afterwards);
    assert_eq!(desk.run(100), [5; 14]);
    assert!(desk.disk.is_empty());
}

#[test]
fn an_event_that_is_cancelled_while_its_page_is_on_its_way_does_not_run() {
    let mut before = Desk::new(32);
    let id = before.schedule(5);
    before.schedule(6);
    let mut desk = before.restarted();
    let (number, claim) = desk.wanted_page(100).expect("the first page");
    let page = desk.read(&claim);
    assert_eq!(desk.agenda.find(desk.guest, id.sequence), Known::AsOnDisk);
    let event = Arc::clone(&desk.disk[&id.sequence]);
    desk.agenda.replace(&event, None);
    desk.commit(0);
    desk.agenda.page(number, page);
    assert_eq!(desk.run(100), [6]);
}

#[test]
fn an_event_nearer_than_the_window_goes_straight_to_memory_and_a_far_one_to_the_disk_only() {
    let mut desk = Desk::new(32);
    desk.schedule(9);
    desk.schedule(1000);
    assert_eq!(desk.agenda.counts(), AgendaCounts { pending: 2, in_memory: 1, parked: 0 });
    assert_eq!(desk.run(9), [9]);
    assert_eq!(desk.agenda.counts(), AgendaCounts { pending: 1, in_memory: 0, parked: 0 });
    assert_eq!(desk.run(1000), [1000]);
}

#[test]
fn memory_does_not_grow_with_what_is_pending() {
    let mut desk = Desk::new(32);
    for due_ms in (0..200).rev() {
        desk.schedule(due_ms % 10);
        assert!(desk.agenda.counts().in_memory <= 32);
    }
    let mut expected: Vec<u64> = (0..200).map(|due_ms| due_ms % 10).collect();
    expected.sort_unstable();
    assert_eq!(desk.run(10), expected);
}

#[test]
fn a_clock_that_is_set_back_runs_nothing_twice_and_one_set_forward_runs_all_in_order() {
    let mut desk = Desk::new(8);
    [10, 20, 30, 40, 50].iter().for_each(|due_ms| _ = desk.schedule(*due_ms));
    assert_eq!(desk.run(20), [10, 20]);
    assert_eq!(desk.run(5), [0; 0]);
    desk.schedule(15);
    assert_eq!(desk.run(1_000_000), [15, 30, 40, 50]);
}

#[test]
fn a_parked_event_blocks_nobody_and_runs_when_it_is_retried() {
    let mut desk = Desk::new(8);
    let bad = desk.schedule(1);
    desk.schedule(2);
    let event = Arc::clone(&desk.disk[&bad.sequence]);
    desk.agenda.replace(&event, Some(event.failed(1, "no", 1, 1)));
    desk.commit(1);
    assert_eq!(desk.agenda.counts(), AgendaCounts { pending: 2, in_memory: 1, parked: 1 });
    assert_eq!(desk.run(100), [2]);
    assert_eq!(desk.restarted().run(100), [0; 0], "nor after a restart");
    let event = Arc::clone(&desk.disk[&bad.sequence]);
    desk.agenda.replace(&event, Some(event.retried(200)));
    desk.commit(200);
    assert_eq!(desk.run(200), [1]);
}

#[test]
fn an_event_of_a_guest_that_does_not_run_waits_and_holds_nobody_up() {
    let mut desk = Desk::new(8);
    desk.schedule(1);
    let other = desk.agenda.guest(&"other".into());
    let new = NewEvent { kind: "k".into(), payload: Arc::from([]), due_ms: 0, repeat: None };
    desk.agenda.schedule(other, new).unwrap();
    desk.commit(0);
    assert_eq!(desk.run(5), [1]);
    assert_eq!(desk.agenda.counts(), AgendaCounts { pending: 1, in_memory: 0, parked: 0 });
}

#[test]
fn a_handler_sees_what_it_has_done_and_a_rollback_takes_it_back() {
    let mut desk = Desk::new(8);
    let kept = desk.schedule(5);
    let none = |_, _| Ok::<_, std::convert::Infallible>(Vec::new());
    let ids = |desk: &Desk| -> Vec<EventId> {
        desk.agenda.list(desk.guest, None, 10, none).unwrap().iter().map(|event| event.id()).collect()
    };
    let new = NewEvent { kind: "k".into(), payload: Arc::from([]), due_ms: 3, repeat: None };
    let scheduled = desk.agenda.schedule(desk.guest, new).unwrap();
    let Known::Pending(event) = desk.agenda.find(desk.guest, kept.sequence) else { panic!("it is pending") };
    desk.agenda.replace(&event, None);
    assert_eq!(ids(&desk), [scheduled]);
    assert_eq!(desk.agenda.find(desk.guest, kept.sequence), Known::NotPending);
    desk.agenda.rollback();
    assert_eq!(ids(&desk), [kept]);
    assert_eq!(desk.agenda.find(desk.guest, scheduled.sequence), Known::NotPending);
    assert!(!desk.agenda.commit(0, &mut Batch::default()));
}

#[test]
fn there_are_at_most_so_many_pending_as_the_handler_sees_it() {
    let mut desk = Desk::new(8);
    desk.agenda.limits.max_pending = 2;
    let new = || NewEvent { kind: "k".into(), payload: Arc::from([]), due_ms: 3, repeat: None };
    desk.agenda.schedule(desk.guest, new()).unwrap();
    desk.agenda.schedule(desk.guest, new()).unwrap();
    assert_eq!(desk.agenda.schedule(desk.guest, new()), Err(TooManyPending { limit: 2 }));
    desk.agenda.rollback();
    desk.agenda.schedule(desk.guest, new()).unwrap();
}

#[test]
fn a_repeating_event_that_is_far_behind_runs_once_for_all_or_once_for_each() {
    for (missed, runs) in [(MissedRuns::Coalesce, 1), (MissedRuns::CatchUp, 10)] {
        let mut desk = Desk::new(8);
        let repeat = Some(Repetition { interval_ms: 10, missed });
        let new = NewEvent { kind: "k".into(), payload: Arc::from([]), due_ms: 10, repeat };
        desk.agenda.schedule(desk.guest, new).unwrap();
        desk.commit(0);
        assert_eq!(desk.run(109).len(), runs);
        assert_eq!(desk.disk.values().map(|event| event.due_ms).collect::<Vec<_>>(), [110]);
    }
}
