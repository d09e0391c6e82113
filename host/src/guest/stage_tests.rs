//! What a handler notes on the stage: handed out when it returns, gone when it fails, and seen by itself meanwhile.

use std::sync::Arc;

use super::super::timer_book::GuestTimer;
use super::*;
use crate::store::{Agenda, AgendaLimits};
use crate::world::WorldLimits;

pub(super) const GAME: GuestId = GuestId(0);
const OTHER: GuestId = GuestId(1);
const JOB: GuestId = GuestId(2);

fn events() -> EventBook {
    let limits =
        AgendaLimits { look_ahead_ms: 1000, max_in_memory: 100, max_in_memory_bytes: 1 << 20, max_pending: 100 };
    let mut events = EventBook::new(Agenda::new(limits, &[], 1), None, 1000);
    events.add_guest(GAME, &"rules".into());
    events
}

pub(super) fn stage() -> Stage {
    let limits = StageLimits {
        max_tasks: 2,
        max_timers: 8,
        max_packet_bytes: 64,
        max_sent_bytes: 2 * (5 + 64),
        max_payload_bytes: 64,
    };
    let mut stage = Stage::new(World::new(WorldLimits::default()), events(), limits);
    stage.connections.insert(7);
    stage
}

fn timer(guest: GuestId, name: &str) -> GuestTimer {
    GuestTimer {
        guest,
        name: Arc::from(name),
        interval_ms: 100,
        delay_ms: None,
        repeat: true,
        payload: Arc::from([]),
        on_wheel: None,
        after: 0,
    }
}

/// A handler that sets a timer, as the import does.
pub(super) fn set(stage: &mut Stage, guest: GuestId, name: &str) -> u64 {
    let id = stage.timers.set(timer(guest, name));
    stage.note_timer(id);
    id
}

fn effects(stage: &mut Stage) -> Vec<Effect> {
    let mut effects = Vec::new();
    stage.take_effects(&mut effects);
    effects.into_iter().map(|committed| committed.effect).collect()
}

#[test]
fn effects_are_handed_out_in_order_once_the_handler_has_returned() {
    let mut stage = stage();
    stage.begin();
    let id = set(&mut stage, GAME, "a");
    stage.note_packet(vec![7], Arc::from(*b"hello")).unwrap();
    let task = stage.note_task(GAME, JOB, vec![1]).unwrap();
    assert_eq!(effects(&mut stage), []);
    stage.commit().unwrap();
    let new_task = NewTask { id: task, owner: GAME, guest: JOB, arguments: vec![1] };
    assert_eq!(
        effects(&mut stage),
        [Effect::SetTimer(id), Effect::Send { to: vec![7], packet: Arc::from(*b"hello") }, Effect::StartTask(new_task)]
    );
    assert_eq!(effects(&mut stage), []);
}

#[test]
fn a_failed_handler_has_set_sent_and_started_nothing() {
    let mut stage = stage();
    stage.begin();
    set(&mut stage, GAME, "a");
    stage.note_packet(vec![7], Arc::from(*b"hello")).unwrap();
    stage.note_task(GAME, JOB, Vec::new()).unwrap();
    stage.rollback();
    assert_eq!(effects(&mut stage), []);
    assert!(stage.timers.is_empty());
    assert!(stage.tasks.is_empty());
    // Nor does what it sent count against the next one.
    stage.begin();
    assert_eq!(stage.note_packet(vec![7], Arc::from([0; 2 * 5 + 64])), Ok(()));
}

#[test]
fn a_failed_handler_has_cancelled_nothing() {
    let mut stage = stage();
    stage.begin();
    let id = set(&mut stage, GAME, "a");
    stage.commit().unwrap();
    stage.begin();
    assert_eq!(stage.timers.cancel(GAME, id), Some(true));
    assert!(stage.timers.named(GAME, "a").is_empty());
    stage.rollback();
    assert_eq!(stage.timers.named(GAME, "a"), [id]);
}

#[test]
fn a_handler_sees_the_timers_it_has_set_and_cancelled() {
    let mut stage = stage();
    stage.begin();
    let before = set(&mut stage, GAME, "a");
    stage.commit().unwrap();
    stage.begin();
    let now = set(&mut stage, GAME, "a");
    assert_eq!(stage.timers.named(GAME, "a"), [before, now]);
    assert_eq!(stage.timers.cancel(GAME, now), Some(false));
    assert_eq!(stage.timers.cancel(GAME, now), None);
    assert_eq!(stage.timers.cancel(GAME, before), Some(true));
    assert_eq!(stage.timers.cancel(GAME, before), None);
    assert_eq!(stage.timers.len(), 0);
}

#[test]
fn a_guest_cannot_cancel_what_is_not_its_own() {
    let mut stage = stage();
    stage.begin();
    let timer = set(&mut stage, GAME, "a");
    let task = stage.note_task(GAME, JOB, Vec::new()).unwrap();
    stage.commit().unwrap();
    stage.begin();
    assert_eq!(stage.timers.cancel(OTHER, timer), None);
    assert!(stage.timers.named(OTHER, "a").is_empty());
    assert!(!stage.note_cancelled_task(OTHER, task));
    assert!(stage.note_cancelled_task(GAME, task));
    assert!(!stage.note_cancelled_task(GAME, task));
}

#[test]
fn a_task_cancelled_by_the_handler_that_started_it_never_starts() {
    let mut stage = stage();
    stage.begin();
    let task = stage.note_task(GAME, JOB, Vec::new()).unwrap();
    assert!(stage.note_cancelled_task(GAME, task));
    stage.commit().unwrap();
    assert_eq!(effects(&mut stage), []);
    assert!(stage.tasks.is_empty());
}

#[test]
fn no_more_tasks_start_than_may_run() {
    let mut stage = stage();
    stage.begin();
    assert!(stage.note_task(GAME, JOB, Vec::new()).is_some());
    stage.commit().unwrap();
    stage.begin();
    assert!(stage.note_task(GAME, JOB, Vec::new()).is_some());
    assert_eq!(stage.note_task(GAME, JOB, Vec::new()), None);
}

#[test]
fn what_one_handler_sends_is_bounded_by_all_its_receivers() {
    let mut stage = stage();
    stage.begin();
    assert_eq!(stage.note_packet(vec![7, 7], Arc::from(*b"12345")), Ok(()));
    assert_eq!(stage.note_packet(vec![7], Arc::from([])), Err(2 * (5 + 64)));
}

#[test]
fn only_open_connections_are_closed() {
    let mut stage = stage();
    stage.begin();
    assert!(stage.note_close(7));
    assert!(!stage.note_close(8));
}

#[test]
fn letters_are_handed_out_in_order_with_packets_and_count_with_them() {
    let mut stage = stage();
    let send = |bytes: usize| Letter::Send { to: 5, payload: vec![0; bytes].into() };
    stage.begin();
    stage.note_letter(GAME, send(5)).unwrap();
    stage.note_packet(vec![7], Arc::from(*b"hello")).unwrap();
    assert!(stage.note_letter(GAME, send(0)).is_err(), "together they may be 2 * (5 + 64) bytes");
    stage.commit().unwrap();
    let hello = Effect::Send { to: vec![7], packet: Arc::from(*b"hello") };
    assert_eq!(effects(&mut stage), [Effect::Letter { from: GAME, letter: send(5) }, hello]);
}
