//! A guest that misbehaves in `init`: it never runs, it is tried again a few times and then disabled, and the guests
//! beside it serve their clients meanwhile.

use wheelhouse_tests::{Config, Guest, World, guest, hostile};

/// Runs a guest whose `init` fails with `error` beside a game, until it is disabled.
fn never_starts(bad: Guest, error: &str) {
    let config = Config::new().with_little_memory().guest(hostile("game", "game")).guest(bad);
    let host = World::new(&config).serve();
    let echo = host.echo();
    host.wait_for_failure("bad", "init", error);
    // Two more attempts fall into the time of the echo.
    host.log().wait_for_several(3, &["a call failed", "guest=\"bad\"", "call=\"init\""]);
    echo.finish(&format!("an init that fails: {error}"));
    let status = host.status();
    assert_ne!(guest(&status, "bad")["state"], "running");
    assert_eq!(guest(&status, "game")["state"], "running");
    assert_eq!(guest(&status, "game")["failures"], 0);
    host.stop();
}

#[test]
fn a_thinker_that_loops_in_init() {
    never_starts(hostile("bad", "thinker").misbehave("loop", "init"), "deadline");
}

#[test]
fn a_game_that_loops_in_init() {
    never_starts(hostile("bad", "game").misbehave("loop", "init"), "deadline");
}

#[test]
fn a_game_that_takes_all_memory_in_init() {
    never_starts(hostile("bad", "game").misbehave("bomb", "init"), "wasm trap");
}

#[test]
fn a_game_that_floods_the_world_in_init_leaves_no_entities() {
    let config = Config::new()
        .set("guest.init_deadline_ms", 2000)
        .guest(hostile("game", "game"))
        .guest(hostile("bad", "game").misbehave("flood-entities", "init"));
    let host = World::new(&config).serve();
    host.wait_for_failure("bad", "init", "50000 changes");
    assert_eq!(host.connect().ask("count"), "entities 1 kv 0 timers 0");
    host.stop();
}

#[test]
fn a_guest_that_refuses_to_start_is_logged_and_counted() {
    never_starts(hostile("bad", "thinker").misbehave("fail", "init"), "this thinker refuses to start as it was told");
}

#[test]
fn a_guest_that_never_starts_is_disabled() {
    let config = Config::new()
        .set("guest.max_failures", 4)
        .guest(hostile("game", "game"))
        .guest(hostile("bad", "thinker").misbehave("unreachable", "init"));
    let host = World::new(&config).serve();
    host.log().wait_for(&["the guest is disabled", "4 times", "guest=\"bad\""]);
    let status = host.wait_until("it is disabled", |status| guest(status, "bad")["state"] == "disabled");
    assert_eq!(guest(&status, "bad")["failures"], 4);
    assert_eq!(host.connect().ask("ping x"), "pong x");
    host.stop();
}

#[test]
fn a_configuration_that_the_guest_cannot_read_is_told_with_the_guests_name() {
    never_starts(hostile("bad", "game").set("misbehave", 7), "the guest's configuration: invalid type: integer `7`");
}
