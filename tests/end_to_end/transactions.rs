//! Handlers are transactions: one that fails or refuses has changed nothing, inside the world or out.

use wheelhouse_tests::{Config, World, guest, hostile};

fn world() -> World {
    World::new(&Config::new().guest(hostile("game", "game")))
}

#[test]
fn a_handler_that_returns_has_done_all_of_it() {
    let host = world().serve();
    let mut client = host.connect();
    assert_eq!(client.ask("count"), "entities 1 kv 0 timers 0");
    assert_eq!(client.ask("whole"), "changed");
    assert_eq!(client.ask("where"), "at 9 8");
    // The timer that it set.
    client.ask_until("count", "entities 2 kv 1 timers 1");
    host.stop();
}

#[test]
fn a_handler_that_traps_half_way_has_done_nothing() {
    let host = world().serve();
    let mut client = host.connect();
    let before = host.wait_until("the host has set its own timer", |status| status["timers"]["registered"] == 1);
    client.send("half");
    // The next packet is the next answer: `changed` was never sent.
    assert_eq!(client.ask("count"), "entities 1 kv 0 timers 0");
    assert_eq!(client.ask("where"), "at 8 8");
    let after = host.status();
    assert_eq!(before["timers"]["registered"], after["timers"]["registered"], "it set no timer");
    assert_eq!(guest(&after, "game")["failures"], 1);
    assert_eq!(guest(&after, "game")["refused"], 0);
    host.wait_for_failure("game", "on-packet", "`unreachable` instruction");
    host.stop();
}

#[test]
fn a_handler_that_refuses_has_done_nothing_and_keeps_its_instance() {
    let host = world().serve();
    let mut client = host.connect();
    assert_eq!(client.ask("remember me"), "ok");
    let before = host.status();
    client.send("refuse");
    assert_eq!(client.ask("count"), "entities 1 kv 0 timers 0");
    assert_eq!(client.ask("where"), "at 8 8");
    assert_eq!(client.ask("recall"), "me", "the same instance answers");
    let after = host.status();
    assert_eq!(before["timers"]["registered"], after["timers"]["registered"], "it set no timer");
    assert_eq!(guest(&after, "game")["failures"], 0);
    assert_eq!(guest(&after, "game")["refused"], 1);
    host.stop();
}

#[test]
fn a_refusal_is_no_failure_however_often() {
    let host = world().serve();
    let mut client = host.connect();
    (0..30).for_each(|_| client.send("refuse"));
    assert_eq!(client.ask("ping x"), "pong x");
    let status = host.status();
    assert_eq!((&guest(&status, "game")["refused"], &guest(&status, "game")["state"]), (&30.into(), &"running".into()));
    host.stop();
}

#[test]
fn what_was_only_in_memory_is_lost_with_the_instance_and_what_was_saved_is_not() {
    let host = world().serve();
    let mut client = host.connect();
    assert_eq!(client.ask("remember the saved one"), "ok");
    host.command(&["save"]);
    assert_eq!(client.ask("remember the later one"), "ok");
    client.send("unreachable");
    assert_eq!(client.ask("recall"), "the saved one");
    host.stop();
}
