//! What a handler's effects have to wait for: the batch that holds what it changed, or the newest one with anything that
//! it has read; and what becomes of it while nothing durable is taken.

use std::sync::Arc;

use bytes::Bytes;

use super::super::letter_book::tests::World as Nobody;
use super::tests::{GAME, stage};
use super::*;
use crate::store::agenda::NewEvent;
use crate::world::{Position, Spawn};

/// Runs a handler that sends a packet, and answers the batch that the packet waits for.
fn waits_for(stage: &mut Stage, handler: impl FnOnce(&mut Stage)) -> u64 {
    stage.begin();
    handler(stage);
    stage.note_packet(vec![7], Arc::from(*b"hello")).unwrap();
    stage.commit().unwrap();
    let mut effects = Vec::new();
    stage.take_effects(&mut effects);
    effects[0].after
}

fn set(stage: &mut Stage) {
    stage.world.kv_set("rules", "day", vec![1]).unwrap();
}

fn spawn(stage: &mut Stage) {
    let spawn = Spawn { kind: 1, position: Position::new(0, 0, 0), thinker: None, connection: None };
    stage.world.spawn(spawn).unwrap();
}

fn schedule(stage: &mut Stage) {
    let new = NewEvent { kind: "ripen".into(), payload: Arc::from([]), due_ms: 1, repeat: None };
    stage.events.schedule(GAME, new).unwrap();
}

#[test]
fn what_a_handler_sends_waits_for_the_batch_with_its_changes() {
    let mut stage = stage();
    for change in [set, spawn, schedule] {
        let number = stage.batch.number;
        assert_eq!(waits_for(&mut stage, change), number);
        assert_eq!(stage.seal_batch().number, number);
    }
}

#[test]
fn a_handler_that_changes_and_reads_nothing_waits_for_nothing() {
    let mut stage = stage();
    waits_for(&mut stage, set);
    assert_eq!(waits_for(&mut stage, |_| ()), 0);
}

#[test]
fn a_handler_that_reads_waits_for_the_newest_change_to_what_it_has_read() {
    let mut stage = stage();
    waits_for(&mut stage, set);
    stage.seal_batch();
    waits_for(&mut stage, spawn);
    stage.seal_batch();
    waits_for(&mut stage, schedule);
    stage.seal_batch();
    let reading = |what| move |stage: &mut Stage| stage.note_read(what);
    assert_eq!(waits_for(&mut stage, reading(Durable::Kv)), 1);
    assert_eq!(waits_for(&mut stage, reading(Durable::Entities)), 2);
    assert_eq!(waits_for(&mut stage, reading(Durable::Events)), 3);
    let both = |stage: &mut Stage| {
        stage.note_read(Durable::Entities);
        stage.note_read(Durable::Kv);
    };
    assert_eq!(waits_for(&mut stage, both), 2);
}

#[test]
fn what_a_thinker_has_read_is_nothing_to_the_next_handler() {
    let mut stage = stage();
    waits_for(&mut stage, spawn);
    stage.note_read(Durable::Entities);
    assert_eq!(waits_for(&mut stage, |_| ()), 0);
}

#[test]
fn a_handler_that_fails_leaves_nothing_in_the_batch() {
    let mut stage = stage();
    stage.begin();
    [set, spawn, schedule].iter().for_each(|change| change(&mut stage));
    stage.rollback();
    assert!(stage.batch.is_empty());
}

#[test]
fn while_nothing_is_taken_a_handler_that_changes_something_is_undone_and_others_are_not() {
    let mut stage = stage();
    stage.takes_changes = false;
    for change in [set, spawn, schedule] {
        stage.begin();
        change(&mut stage);
        stage.note_packet(vec![7], Arc::from(*b"hello")).unwrap();
        assert_eq!(stage.commit(), Err(Unkept));
        let mut effects = Vec::new();
        stage.take_effects(&mut effects);
        assert_eq!(effects, []);
    }
    assert!(stage.batch.is_empty());
    assert_eq!(stage.world.kv_get("rules", "day"), None);
    assert_eq!(waits_for(&mut stage, |_| ()), 0);
    stage.takes_changes = true;
    assert_eq!(waits_for(&mut stage, set), 1);
}

#[test]
fn what_a_handler_is_told_is_waited_for_like_what_it_reads_and_once() {
    let mut stage = stage();
    waits_for(&mut stage, set);
    stage.seal_batch();
    waits_for(&mut stage, schedule);
    assert_eq!(stage.newest_change(), 1);
    stage.told_from = 1;
    assert_eq!(waits_for(&mut stage, |_| ()), 1);
    assert_eq!(waits_for(&mut stage, |_| ()), 0);
}

#[test]
fn a_timer_remembers_what_the_handler_that_set_it_has_to_wait_for() {
    let mut stage = stage();
    let mut id = 0;
    waits_for(&mut stage, |stage| {
        set(stage);
        id = super::tests::set(stage, GAME, "a");
    });
    assert_eq!(stage.timers.get(id).map(|timer| timer.after), Some(1));
}

#[test]
fn who_looks_at_services_waits_for_the_letters_that_will_have_changed_them() {
    let mut stage = stage();
    stage.letters = LetterBook::new(Box::new(Nobody::default()));
    let look = |stage: &mut Stage| stage.note_look_at_services();
    let mut service = 0;
    waits_for(&mut stage, |stage| {
        set(stage);
        service = stage.letters.launch("chat").unwrap().unwrap();
        let letter = Letter::Launch { handle: service, guest: "chat".to_owned(), arguments: Bytes::new() };
        stage.note_letter(GAME, letter).unwrap();
    });
    stage.seal_batch();
    assert_eq!(waits_for(&mut stage, look), 1);
    stage.letters.delivered(&Letter::Launch { handle: service, guest: String::new(), arguments: Bytes::new() });
    assert_eq!(waits_for(&mut stage, look), 0);
}

#[test]
fn an_answer_waits_for_what_its_handler_has_changed_or_read_also_where_it_refuses() {
    let mut stage = stage();
    waits_for(&mut stage, set);
    assert_eq!(stage.answer_after, 1);
    stage.seal_batch();
    stage.begin();
    stage.note_read(Durable::Kv);
    stage.rollback();
    assert_eq!(stage.answer_after, 1);
    waits_for(&mut stage, |_| ());
    assert_eq!(stage.answer_after, 0);
}
