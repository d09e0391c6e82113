//! What the contract says of limits, import by import: beyond one the guest gets the error that `wit/` names, with the
//! limit in it, and what was there stays.

use std::sync::Arc;

use crate::clock::ManualClock;
use crate::guest::contract::sim::entities::{EntityError, Host as Entities};
use crate::guest::contract::sim::events::{EventError, EventId, Host as Events, MissedRuns, Repetition, When};
use crate::guest::contract::sim::gate::{GateError, Host as Gate};
use crate::guest::contract::sim::kv::{Host as Kv, KvError};
use crate::guest::contract::sim::metrics::Host as Metrics;
use crate::guest::contract::sim::random::Host as Random;
use crate::guest::contract::sim::tasks::{Host as Tasks, TaskError};
use crate::guest::contract::sim::timers::{Host as Timers, TimerError};
use crate::guest::contract::sim::types::Position;
use crate::guest::{
    EventBook, GuestCounters, GuestId, GuestKind, GuestLimits, Identity, InstanceState, LogLines, Stage, StageLimits,
};
use crate::store::{Agenda, AgendaLimits};
use crate::world::{World, WorldLimits};

const HERE: Position = Position { map: 0, x: 0, y: 0 };
const MAX_PAYLOAD_BYTES: usize = 2048;

/// Events of the guest, of which there may be three.
fn events() -> EventBook {
    let limits = AgendaLimits { look_ahead_ms: 1000, max_in_memory: 100, max_in_memory_bytes: 1 << 20, max_pending: 3 };
    let mut events = EventBook::new(Agenda::new(limits, &[], 1), None, 4 * MAX_PAYLOAD_BYTES);
    events.add_guest(GuestId(0), &"rules".into());
    events
}

/// The state of an instance in the middle of a handler.
fn in_a_handler(kind: GuestKind) -> InstanceState {
    let limits = GuestLimits { max_payload_kb: MAX_PAYLOAD_BYTES / 1024, ..GuestLimits::default() };
    let clock = ManualClock::shared();
    let identity = Identity {
        id: GuestId(0),
        name: Arc::from("rules"),
        writes: kind == GuestKind::Game,
        log: Arc::new(LogLines::new("rules", 100, clock.clone())),
        clock,
        max_memory_bytes: limits.max_memory_bytes(),
        limits: Arc::new(limits),
        counters: Arc::new(GuestCounters::new("rules", kind)),
        seed: 1,
    };
    let stage_limits = StageLimits {
        max_tasks: 1,
        max_timers: 2,
        max_packet_bytes: 16,
        max_sent_bytes: 200,
        max_payload_bytes: MAX_PAYLOAD_BYTES,
    };
    let world_limits = WorldLimits {
        max_entities: 2000,
        max_data_bytes_per_entity: 1000,
        max_kv_bytes_per_space: 3000,
        ..WorldLimits::default()
    };
    let mut stage = Box::new(Stage::new(World::new(world_limits), events(), stage_limits));
    stage.connections.insert(7);
    stage.task_guests.insert("terrain".to_owned(), GuestId(1));
    stage.begin();
    let mut state = InstanceState::new(Arc::new(identity), 1);
    state.stage = Some(stage);
    state
}

#[test]
fn names_and_data_of_entities_are_bounded() {
    let mut guest = in_a_handler(GuestKind::Game);
    let id = guest.spawn(1, HERE, None).unwrap().unwrap();
    let mut set = |name: String, bytes| guest.set_data(id, name, vec![0; bytes]).unwrap();
    assert!(set("n".repeat(64), 0).is_ok());
    assert!(matches!(set("n".repeat(65), 0), Err(EntityError::TooLarge(64))));
    assert!(matches!(set("big".to_owned(), 1000), Err(EntityError::TooLarge(1000))));
    for name in 1..64 {
        assert!(set(name.to_string(), 0).is_ok());
    }
    assert!(matches!(set("one more".to_owned(), 0), Err(EntityError::TooMany(64))));
}

#[test]
fn the_world_holds_so_many_entities_and_an_answer_1024_of_them() {
    let mut guest = in_a_handler(GuestKind::Game);
    for _ in 0..2000 {
        guest.spawn(1, HERE, None).unwrap().unwrap();
    }
    assert!(matches!(guest.spawn(1, HERE, None).unwrap(), Err(EntityError::TooMany(2000))));
    assert_eq!(guest.within(HERE, 1, u32::MAX).unwrap().len(), 1024);
    assert_eq!(guest.in_sector(0, 0, 0, u32::MAX).unwrap().len(), 1024);
    assert_eq!(guest.within(HERE, 1, 3).unwrap().len(), 3);
}

#[test]
fn a_query_reaches_128_tiles_however_far_it_asks() {
    let mut guest = in_a_handler(GuestKind::Game);
    let inside = guest.spawn(1, Position { x: 128, ..HERE }, None).unwrap().unwrap();
    guest.spawn(1, Position { x: 129, ..HERE }, None).unwrap().unwrap();
    let found: Vec<u64> = guest.within(HERE, u32::MAX, 10).unwrap().iter().map(|entity| entity.id).collect();
    assert_eq!(found, [inside]);
}

#[test]
fn a_thinker_and_a_connection_have_to_be_there() {
    let mut guest = in_a_handler(GuestKind::Game);
    assert!(matches!(guest.spawn(1, HERE, Some("sheep".to_owned())).unwrap(), Err(EntityError::NoSuchThinker)));
    let (one, other) = (guest.spawn(1, HERE, None).unwrap().unwrap(), guest.spawn(1, HERE, None).unwrap().unwrap());
    assert!(matches!(guest.set_connection(one, Some(8)).unwrap(), Err(EntityError::NoSuchConnection)));
    assert!(guest.set_connection(one, Some(7)).unwrap().is_ok());
    assert!(guest.set_connection(one, Some(7)).unwrap().is_ok(), "it has it already");
    assert!(matches!(guest.set_connection(other, Some(7)).unwrap(), Err(EntityError::NoSuchConnection)));
}

#[test]
fn who_only_reads_is_told_so_by_all_that_writes() {
    let mut guest = in_a_handler(GuestKind::Thinker);
    assert!(matches!(guest.spawn(1, HERE, None).unwrap(), Err(EntityError::ReadOnly)));
    assert!(matches!(guest.despawn(1).unwrap(), Err(EntityError::ReadOnly)));
    assert!(matches!(guest.move_to(1, HERE).unwrap(), Err(EntityError::ReadOnly)));
    assert!(matches!(guest.set_connection(1, None).unwrap(), Err(EntityError::ReadOnly)));
    assert!(matches!(guest.set_thinker(1, None).unwrap(), Err(EntityError::ReadOnly)));
    assert!(matches!(guest.set_data(1, "a".to_owned(), vec![]).unwrap(), Err(EntityError::ReadOnly)));
    assert!(matches!(guest.remove_data(1, "a".to_owned()).unwrap(), Err(EntityError::ReadOnly)));
    assert!(matches!(Kv::set(&mut guest, "a".to_owned(), vec![]).unwrap(), Err(KvError::ReadOnly)));
    assert!(matches!(guest.delete("a".to_owned()).unwrap(), Err(KvError::ReadOnly)));
}

#[test]
fn keys_values_and_spaces_are_bounded() {
    let mut guest = in_a_handler(GuestKind::Game);
    let mut set = |key: String, bytes| Kv::set(&mut guest, key, vec![0; bytes]).unwrap();
    assert!(set("k".repeat(256), 0).is_ok());
    assert!(matches!(set("k".repeat(257), 0), Err(KvError::TooLarge(256))));
    assert!(matches!(set("a".to_owned(), MAX_PAYLOAD_BYTES + 1), Err(KvError::TooLarge(2048))));
    assert!(set("a".to_owned(), MAX_PAYLOAD_BYTES).is_ok());
    assert!(matches!(set("b".to_owned(), 1000), Err(KvError::Full(3000))));
}

#[test]
fn a_scan_ends_before_it_is_longer_than_a_payload_and_goes_on_behind_its_last_key() {
    let mut guest = in_a_handler(GuestKind::Game);
    for key in ["a", "b", "c"] {
        Kv::set(&mut guest, key.to_owned(), vec![0; 900]).unwrap().unwrap();
    }
    let mut page = |after: Option<&str>| -> Vec<String> {
        let entries = guest.scan(String::new(), after.map(str::to_owned), u32::MAX).unwrap();
        entries.into_iter().map(|entry| entry.key).collect()
    };
    assert_eq!(page(None), ["a", "b"]);
    assert_eq!(page(Some("b")), ["c"]);
    assert!(page(Some("c")).is_empty());
}

#[test]
fn timers_are_bounded_in_number_name_and_payload() {
    let mut guest = in_a_handler(GuestKind::Game);
    let mut set = |name: usize, interval_ms, delay_ms, payload: usize| {
        Timers::set(&mut guest, "n".repeat(name), interval_ms, delay_ms, true, vec![0; payload]).unwrap()
    };
    assert!(matches!(set(1, 0, None, 0), Err(TimerError::NotPositive)));
    assert!(matches!(set(1, 1, Some(0), 0), Err(TimerError::NotPositive)));
    assert!(matches!(set(65, 1, None, 0), Err(TimerError::TooLarge(64))));
    assert!(matches!(set(1, 1, None, 1025), Err(TimerError::TooLarge(1024))));
    assert!(set(64, 1, None, 1024).is_ok());
    assert!(set(64, 1, None, 1024).is_ok());
    assert!(matches!(set(1, 1, None, 0), Err(TimerError::TooMany(2))));
    assert_eq!(guest.cancel_named("n".repeat(64)).unwrap(), 2);
}

#[test]
fn tasks_are_bounded_in_number_and_arguments() {
    let mut guest = in_a_handler(GuestKind::Game);
    let mut start = |name: &str, bytes| guest.start(name.to_owned(), vec![0; bytes]).unwrap();
    assert!(matches!(start("nobody", 0), Err(TaskError::NoSuchGuest)));
    assert!(matches!(start("terrain", MAX_PAYLOAD_BYTES + 1), Err(TaskError::TooLarge(2048))));
    assert!(start("terrain", MAX_PAYLOAD_BYTES).is_ok());
    assert!(matches!(start("terrain", 0), Err(TaskError::TooMany(1))));
}

#[test]
fn packets_are_bounded_each_and_together() {
    let mut guest = in_a_handler(GuestKind::Game);
    assert!(matches!(guest.send(8, vec![]).unwrap(), Err(GateError::Closed)));
    assert!(matches!(guest.send(7, vec![0; 17]).unwrap(), Err(GateError::TooLarge(16))));
    assert_eq!(guest.send_all(vec![7, 8], vec![0; 16]).unwrap().unwrap(), 1);
    // Each counts with 64 bytes on top: two of 80 fit into 200.
    assert!(guest.send(7, vec![0; 16]).unwrap().is_ok());
    assert!(matches!(guest.send(7, vec![]).unwrap(), Err(GateError::TooMuch(200))));
}

#[test]
fn more_random_bytes_than_a_payload_end_the_call() {
    let mut guest = in_a_handler(GuestKind::Game);
    assert_eq!(guest.bytes(MAX_PAYLOAD_BYTES as u32).unwrap().len(), MAX_PAYLOAD_BYTES);
    let refused = guest.bytes(MAX_PAYLOAD_BYTES as u32 + 1).unwrap_err().to_string();
    assert!(refused.contains("guest.max_payload_kb"), "{refused}");
    assert_eq!(guest.below(0).unwrap(), 0);
    assert_eq!(guest.below(1).unwrap(), 0);
}

#[test]
fn a_guest_counts_under_64_names_of_64_bytes() {
    let mut guest = in_a_handler(GuestKind::Game);
    guest.gauge("n".repeat(65), 1.0).unwrap();
    guest.gauge("n".repeat(64), 1.0).unwrap();
    for name in 0..100 {
        Metrics::count(&mut guest, format!("{name:03}"), 2).unwrap();
    }
    Metrics::count(&mut guest, "000".to_owned(), 3).unwrap();
    let custom = guest.identity.counters.snapshot().custom;
    assert_eq!(custom.len(), 64);
    assert_eq!(custom["000"], 5.0);
    assert!(!custom.contains_key("063") && !custom.contains_key(&"n".repeat(65)));
}

#[test]
fn an_event_that_is_too_large_or_one_too_many_is_refused_with_its_limit() {
    let mut state = in_a_handler(GuestKind::Game);
    let mut schedule = |kind: &str, payload: usize, interval_ms: Option<u64>| {
        let repeat = interval_ms.map(|interval_ms| Repetition { interval_ms, missed: MissedRuns::Coalesce });
        Events::schedule(&mut state, kind.to_owned(), When::AtMs(5), vec![0; payload], repeat).unwrap()
    };
    let is_too_large = |answer, limit| matches!(answer, Err(EventError::TooLarge(told)) if told == limit);
    assert!(is_too_large(schedule(&"k".repeat(65), 0, None), 64));
    assert!(is_too_large(schedule("k", MAX_PAYLOAD_BYTES + 1, None), MAX_PAYLOAD_BYTES as u32));
    assert!(matches!(schedule("k", 0, Some(0)), Err(EventError::NotPositive)));
    assert!(schedule(&"k".repeat(64), MAX_PAYLOAD_BYTES, Some(1)).is_ok());
    assert!(schedule("k", 0, None).is_ok());
    assert!(schedule("k", 0, None).is_ok());
    assert!(matches!(schedule("k", 0, None), Err(EventError::TooMany(3))));
}

#[test]
fn a_handler_that_schedules_more_bytes_than_it_may_ends() {
    let mut state = in_a_handler(GuestKind::Game);
    let mut schedule = |payload: usize| {
        Events::schedule(&mut state, "k".to_owned(), When::AtMs(5), vec![0; payload], None).map(|answer| answer.is_ok())
    };
    (0..2).for_each(|_| assert!(schedule(MAX_PAYLOAD_BYTES - 1).unwrap()));
    let _third_and_last = schedule(MAX_PAYLOAD_BYTES - 1).unwrap();
    let error = schedule(MAX_PAYLOAD_BYTES).unwrap_err().to_string();
    assert!(error.starts_with("a handler may schedule and cancel at most"), "{error}");
}

#[test]
fn events_are_listed_up_to_a_payload_and_at_least_one_and_found_by_their_own_id_only() {
    let mut state = in_a_handler(GuestKind::Game);
    let ids: Vec<EventId> = [MAX_PAYLOAD_BYTES, MAX_PAYLOAD_BYTES - 10, 10]
        .map(|bytes| {
            Events::schedule(&mut state, "k".to_owned(), When::AtMs(5), vec![0; bytes], None).unwrap().unwrap()
        })
        .into();
    let mut list = |after| Events::pending(&mut state, after, 1000).unwrap().len();
    assert_eq!(list(None), 1);
    assert_eq!(list(Some(ids[0])), 2);
    assert_eq!(list(Some(ids[2])), 0);
    let other = EventId { due_ms: 6, ..ids[0] };
    assert!(Events::get(&mut state, other).unwrap().is_none());
    assert!(!Events::cancel(&mut state, other).unwrap());
    assert!(Events::cancel(&mut state, ids[0]).unwrap());
    assert!(!Events::cancel(&mut state, ids[0]).unwrap(), "only once");
}
