//! Cases of paging and time by name: what stands at a border is neither lost nor run twice.

use std::sync::Arc;

use super::*;
use crate::store::backend::{Claim, Page};
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
        let max_in_memory_bytes = 1000;
        let limits = AgendaLimits { look_ahead_ms: 10, max_in_memory, max_in_memory_bytes, max_pending: 1000 };
        let mut agenda = Agenda::new(limits, &[], 1);
        let guest = agenda.guest(&"rules".into());
        agenda.set_running(guest, true);
        Self { agenda, guest, disk: BTreeMap::new(), batch: 0 }
    }

    fn schedule(&mut self, due_ms: u64) -> EventId {
        self.schedule_sized(due_ms, 0)
    }

    fn schedule_sized(&mut self, due_ms: u64, bytes: usize) -> EventId {
        let new = NewEvent { kind: "k".into(), payload: vec![7; bytes].into(), due_ms, repeat: None };
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
                EventChange::Put { event, .. } => self.disk.insert(event.sequence, event),
                EventChange::Removed { sequence } => self.disk.remove(&sequence),
            };
        }
        self.agenda.settle(self.batch);
    }

    fn read(&self, claim: &Claim) -> Page {
        let mut events: Vec<Event> = self.disk.values().map(|event| (**event).clone()).collect();
        events.retain(|event| {
            !event.parked && claim.after.is_none_or(|after| event.place() > after) && event.place() <= claim.until
        });
        events.sort_by_key(Event::place);
        let mut bytes = 0;
        let fitting = events.iter().take(claim.limit).enumerate().take_while(|(at, event)| {
            bytes += event.payload.len();
            *at == 0 || bytes <= claim.max_bytes
        });
        let fitting = fitting.count();
        let is_last = fitting == events.len();
        events.truncate(fitting);
        Page { events, is_last }
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
    let none = |_, _| Ok::<_, std::convert::Infallible>(Page::nothing());
    let ids = |desk: &Desk| -> Vec<EventId> {
        desk.agenda.list(desk.guest, None, 10, 1000, none).unwrap().iter().map(|event| event.id()).collect()
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

#[test]
fn memory_does_not_grow_with_large_payloads_and_all_events_run_in_order() {
    let mut before = Desk::new(32);
    // The fifth is larger than all that may be in memory.
    let sizes = [400, 400, 300, 10, 5000, 900, 0, 600, 600];
    for (due_ms, bytes) in (1..).zip(sizes) {
        before.schedule_sized(due_ms, bytes);
        assert!(before.agenda.guests[0].window.bytes() <= 1000);
    }
    let mut desk = before.restarted();
    let mut ran = Vec::new();
    for now_ms in 0..10 {
        ran.extend(desk.run(now_ms));
        let window = &desk.agenda.guests[0].window;
        let last = window.iter().last().map_or(0, |event| event.payload.len());
        assert!(window.bytes() - last <= 1000);
    }
    assert_eq!(ran, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn a_page_that_is_short_because_its_events_are_large_moves_the_horizon_only_as_far_as_it_goes() {
    let mut before = Desk::new(32);
    (1..=3).for_each(|due_ms| _ = before.schedule_sized(due_ms, 200));
    let mut desk = before.restarted();
    let (number, claim) = desk.wanted_page(0).expect("the first page");
    assert_eq!(claim.max_bytes, 250);
    let page = desk.read(&claim);
    assert_eq!((page.events.len(), page.is_last), (1, false));
    desk.agenda.page(number, page);
    let (_, claim) = desk.wanted_page(0).expect("the next page");
    assert_eq!(claim.after, Some(Place { next_ms: 1, sequence: 1 }));
}

#[test]
fn a_page_that_comes_when_memory_has_no_room_for_it_is_not_read_again_at_once() {
    // Three may be in memory; pages are of one.
    let mut desk = Desk::new(3);
    for due_ms in [9, 8, 7, 6] {
        desk.schedule(due_ms);
    }
    let in_memory = desk.agenda.counts().in_memory;
    assert!((2..=3).contains(&in_memory), "{in_memory}");
    assert_eq!(desk.wanted_page(0), None);
    assert_eq!(desk.run(9), [6, 7, 8, 9]);
}

#[test]
fn what_is_known_of_an_event_tells_whether_it_is_still_so() {
    let mut desk = Desk::new(8);
    let id = desk.schedule(5);
    let event = Arc::clone(&desk.disk[&id.sequence]);
    assert!(desk.agenda.is_current(&event));
    let failed = event.failed(5, "no", 1, 3);
    assert!(!desk.agenda.is_current(&failed));
    desk.agenda.replace(&event, Some(failed.clone()));
    assert!(desk.agenda.is_current(&failed) && !desk.agenda.is_current(&event), "before the commit too");
    desk.commit(5);
    assert!(desk.agenda.is_current(&failed) && !desk.agenda.is_current(&event));
    desk.agenda.replace(&Arc::new(failed.clone()), None);
    desk.commit(5);
    assert!(!desk.agenda.is_current(&failed));
    let far = desk.schedule(5000);
    let far = Arc::clone(&desk.disk[&far.sequence]);
    assert!(desk.agenda.is_current(&far), "only the disk knows better");
}

#[test]
#[should_panic(expected = "was not")]
#[cfg(debug_assertions)]
fn an_event_that_is_taken_for_what_it_is_not_is_a_mistake_of_the_host() {
    let mut desk = Desk::new(8);
    let id = desk.schedule(5);
    let event = Arc::clone(&desk.disk[&id.sequence]);
    desk.agenda.replace(&event, None);
    desk.commit(0);
    desk.agenda.replace(&event, None);
    desk.commit(0);
}

#[test]
fn counts_go_to_the_store_as_differences_once_for_each_guest() {
    let mut desk = Desk::new(8);
    let ids = [5, 6, 7].map(|due_ms| desk.schedule(due_ms));
    let [first, second, _] = ids.map(|id| Arc::clone(&desk.disk[&id.sequence]));
    let mut batch = Batch { number: 9, ..Batch::default() };
    desk.agenda.replace(&first, None);
    desk.agenda.commit(0, &mut batch);
    desk.agenda.replace(&second, Some(second.failed(0, "no", 1, 1)));
    desk.agenda.commit(0, &mut batch);
    assert_eq!(batch.counts, [EventCount { guest: "rules".into(), pending: -1, parked: 1 }]);
    assert_eq!(desk.agenda.counts(), AgendaCounts { pending: 2, in_memory: 1, parked: 1 });
}

#[test]
fn in_a_shared_store_nothing_follows_from_counts_and_earlier_events_that_are_free_are_taken_in() {
    let mut desk = Desk::new(8);
    desk.agenda = Agenda::new(desk.agenda.limits.clone(), &[], 1).exclusive(false);
    desk.guest = desk.agenda.guest(&"rules".into());
    desk.agenda.set_running(desk.guest, true);
    let (number, claim) = desk.wanted_page(0).expect("though none is pending as far as is known");
    assert_eq!(desk.agenda.find(desk.guest, 77), Known::AsOnDisk);
    desk.agenda.page(number, desk.read(&claim));
    let (number, claim) = desk.wanted_page(6).expect("the next page");
    assert_eq!(claim.after.map(|after| after.next_ms), Some(10));
    // Another host has scheduled it for earlier, and gone.
    let page = Page { events: vec![Event::sample(1 << 40, 6)], is_last: true };
    desk.agenda.page(number, page);
    assert_eq!(desk.run(6), [6]);
    assert_eq!(desk.agenda.counts().pending, 0, "one that was never counted");
}

#[test]
fn an_event_is_claimed_with_its_batch_if_it_stays_in_memory_and_given_back_when_it_has_to_go() {
    let mut desk = Desk::new(2);
    desk.agenda = Agenda::new(desk.agenda.limits.clone(), &[], 1).exclusive(false);
    desk.guest = desk.agenda.guest(&"rules".into());
    desk.agenda.set_running(desk.guest, true);
    let (number, claim) = desk.wanted_page(0).expect("the first page");
    desk.agenda.page(number, desk.read(&claim));
    let mut batch = Batch { number: 1, ..Batch::default() };
    for due_ms in [7, 6, 5, 9000] {
        let new = NewEvent { kind: "k".into(), payload: Arc::from([]), due_ms, repeat: None };
        desk.agenda.schedule(desk.guest, new).unwrap();
        desk.agenda.commit(0, &mut batch);
    }
    let claimed = batch.events.iter().map(|change| matches!(change, EventChange::Put { claimed: true, .. }));
    assert_eq!(claimed.collect::<Vec<_>>(), [true, true, true, false]);
    // One of them is in memory, and the others are given back when the store has their leases.
    assert_eq!(desk.agenda.counts().in_memory, 1);
    assert_eq!(desk.agenda.take_wishes(0, 0), []);
    let from = Place { next_ms: 5, sequence: 4 };
    assert_eq!(desk.agenda.take_wishes(0, 1), [Wish::Release { guest: "rules".into(), from }]);
}
