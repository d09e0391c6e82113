//! A game that misbehaves in a handler: the call ends, is logged and counted, a fresh instance takes its place, and the
//! game's other clients notice nothing.

use wheelhouse_tests::{Config, Host, World, guest, hostile};

fn hostile_game() -> Config {
    Config::new().guest(hostile("game", "game"))
}

/// One client has the game do harm; the call must fail with `error` in its reason, and the game go on.
fn fails(harm: &str, error: &str) -> Host {
    fails_with(&hostile_game(), harm, error)
}

fn fails_with(config: &Config, harm: &str, error: &str) -> Host {
    let host = World::new(config).serve();
    let mut client = host.connect();
    let echo = host.echo();
    client.send(harm);
    host.wait_for_failure("game", "on-packet", error);
    assert_eq!(client.ask("ping again"), "pong again", "a fresh instance answers the same client");
    echo.finish(&format!("{harm} in on-packet"));
    let status = host.status();
    assert_eq!(guest(&status, "game")["state"], "running");
    assert_eq!(guest(&status, "game")["failures"], 1);
    assert_eq!(status["loop"]["faults"], 0);
    host
}

/// One client has the game do harm, which the host answers with an error that the game survives.
fn is_refused(config: &Config, harm: &str, error: &str) -> Host {
    let host = World::new(config).serve();
    let mut client = host.connect();
    let echo = host.echo();
    let answer = client.ask_for(harm, "survived");
    assert!(answer.contains(error), "{answer}");
    echo.finish(harm);
    assert_eq!(guest(&host.status(), "game")["failures"], 0);
    host
}

#[test]
fn an_endless_loop_is_stopped_at_its_deadline() {
    fails("loop", "stopped after its deadline of 50 ms").stop();
}

#[test]
fn a_memory_bomb_ends_at_the_memory_limit() {
    let host = fails_with(&hostile_game().with_little_memory(), "bomb", "wasm trap");
    let held = guest(&host.status(), "game")["memory_bytes"].as_u64().expect("a number");
    assert!(held < 4 << 20, "the memory of the failed instance is given back; the game holds {held} bytes");
    host.stop();
}

#[test]
fn deep_recursion_on_the_hosts_stack_traps() {
    fails("recurse", "call stack exhausted").stop();
}

#[test]
fn deep_recursion_on_the_guests_own_stack_traps() {
    fails("recurse-memory", "wasm trap").stop();
}

#[test]
fn unreachable_code_traps_and_the_log_says_where() {
    let host = fails("unreachable", "`unreachable` instruction");
    host.log().wait_for(&["on-packet"]);
    host.stop();
}

#[test]
fn a_panic_traps_and_its_message_is_in_the_log() {
    let host = fails("panic", "`unreachable` instruction");
    host.log().wait_for(&["this guest panics as it was told", "guest=\"game\""]);
    host.stop();
}

#[test]
fn a_read_out_of_bounds_traps() {
    fails("out-of-bounds", "out of bounds memory access").stop();
}

#[test]
fn a_million_log_lines_are_cut_to_what_a_second_may_have() {
    let host = World::new(&hostile_game()).serve();
    let mut client = host.connect();
    let echo = host.echo();
    client.send("logs");
    host.log().wait_for(&["WARN", "guest.max_log_lines_per_s", "guest=\"game\""]);
    assert_eq!(client.ask_for("ping again", "pong"), "pong again");
    echo.finish("a million log lines");
    let written = host.log().lines_with(&["of a million"]).len();
    assert!((1..=400).contains(&written), "{written} lines were written; the limit is 200 in a second");
    host.stop();
}

#[test]
fn a_log_line_of_16_mib_is_not_written() {
    let host = fails("long-log", "");
    let longest = host.log().lines_with(&[""]).iter().map(String::len).max();
    assert!(longest < Some(10_000), "a line of {longest:?} bytes");
    host.stop();
}

#[test]
fn a_request_for_four_gib_of_random_bytes_fails() {
    fails("random", "").stop();
}

#[test]
fn what_is_too_large_for_any_import_ends_the_call() {
    // 16 MiB each, as a packet, value, key, data, name of a thinker, payload of a timer, arguments; and a list of a
    // million connections.
    let harms = ["big-packet", "big-value", "big-key", "big-data", "big-thinker", "big-timer", "big-arguments"];
    let host = World::new(&hostile_game()).serve();
    let mut client = host.connect();
    let echo = host.echo();
    for (failures, harm) in (1..).zip(harms.into_iter().chain(["big-send-all"])) {
        client.send(harm);
        host.log().wait_for_several(failures, &["ERROR", "a call failed", "guest=\"game\"", "call=\"on-packet\""]);
        assert_eq!(client.ask("ping again"), "pong again");
    }
    echo.finish("lists and strings that are too large");
    host.wait_until("every failure counted", |status| guest(status, "game")["failures"] == harms.len() + 1);
    host.stop();
}

#[test]
fn what_is_too_large_for_one_import_is_answered_with_its_error() {
    let config = hostile_game();
    is_refused(&config, "big-query", "Ok(").stop();
    is_refused(&config, "longest-timer", "").stop();
    is_refused(&config, "zero-timer", "NotPositive").stop();
    is_refused(&config, "far-away", "Ok(").stop();
}

#[test]
fn timers_without_end_stop_at_their_limit_and_do_not_drown_the_loop() {
    let host = is_refused(&hostile_game().set("timers.max_pending", 500), "flood-timers", "TooMany(500)");
    // Each fires every tick.
    let status = host.wait_until("the flood fires", |status| status["timers"]["fired"].as_u64() > Some(5000));
    assert!(status["timers"]["active"].as_u64() <= Some(500));
    let echo = host.echo();
    host.wait_until("the flood goes on", |status| status["timers"]["fired"].as_u64() > Some(20_000));
    echo.finish("500 timers that fire every tick");
    host.stop();
}

#[test]
fn timers_without_end_up_to_what_a_handler_may_set_leave_none_behind() {
    let config = hostile_game().set("timers.max_pending", 10_000_000).set("guest.deadline_ms", 1000);
    let host = fails_with(&config, "flood-timers", "at most 50000 timers");
    assert!(host.status()["timers"]["active"].as_u64() < Some(10));
    host.stop();
}

#[test]
fn entities_without_end_stop_at_their_limit() {
    is_refused(&hostile_game().set("world.max_entities", 1000), "flood-entities", "TooMany(1000)").stop();
}

#[test]
fn entities_without_end_up_to_what_a_handler_may_change_leave_none_behind() {
    let host = fails_with(&hostile_game().set("guest.deadline_ms", 1000), "flood-entities", "50000 changes");
    // Only the player of the one that asks, once the others have left.
    host.connect().ask_until("count", "entities 1 kv 0 timers 0");
    host.stop();
}

#[test]
fn tasks_without_end_stop_at_their_limit() {
    let config = hostile_game().guest(hostile("hostile-step", "step-task"));
    let host = is_refused(&config, "flood-tasks", "64 then TaskError::TooMany(64)");
    let echo = host.echo();
    let before = host.status()["tasks"]["steps"].as_u64();
    assert_eq!(host.status()["tasks"]["queued"], 64);
    echo.finish("64 tasks that wait");
    assert_eq!(host.status()["tasks"]["steps"].as_u64(), before, "a task that waits does no steps");
    host.stop();
}

#[test]
fn packets_data_and_values_without_end_stop_at_their_limits() {
    let host = World::new(&hostile_game().set("guest.deadline_ms", 2000)).serve();
    let mut client = host.connect();
    for (harm, error) in [("flood-data", "64 then EntityError::TooMany(64)"), ("flood-kv", "Full")] {
        let answer = client.ask_for(harm, "survived");
        assert!(answer.contains(error), "{harm}: {answer}");
    }
    // After the flood there is no room for the answer either, so the handler refuses, and nothing is sent at all.
    client.send("flood-packets");
    assert_eq!(client.ask("ping again"), "pong again");
    assert_eq!(guest(&host.status(), "game")["refused"], 1);
    host.stop();
}

#[test]
fn a_game_that_fails_on_connect_takes_nobody_in_and_goes_on() {
    let config = Config::new().guest(hostile("game", "game").misbehave("loop", "connect"));
    let host = World::new(&config).serve();
    host.connect().wait_for_end();
    host.wait_for_failure("game", "on-connect", "deadline");
    host.wait_until("the client is counted as closed by the host", |status| {
        status["connections"]["closed_by"]["host_closed"] == 1 && status["connections"]["open"] == 0
    });
    assert_eq!(guest(&host.status(), "game")["state"], "running");
    host.stop();
}

#[test]
fn a_game_that_fails_on_disconnect_loses_no_other_client() {
    let config = Config::new().guest(hostile("game", "game").misbehave("loop", "disconnect"));
    let host = World::new(&config).serve();
    let echo = host.echo();
    // Of one who comes only to go no game hears.
    let mut client = host.connect();
    assert_eq!(client.ask("ping x"), "pong x");
    drop(client);
    host.wait_for_failure("game", "on-disconnect", "deadline");
    echo.finish("a loop in on-disconnect");
    host.stop();
}

#[test]
fn a_game_that_always_fails_is_disabled_and_the_host_goes_on() {
    let config =
        Config::new().guest(hostile("game", "game")).guest(hostile("other", "game").misbehave("loop", "timer"));
    let host = World::new(&config).serve();
    let echo = host.echo();
    host.wait_for_failure("other", "on-timer", "deadline");
    host.log().wait_for(&["ERROR", "the guest is disabled", "10 times within 60 s", "guest=\"other\""]);
    let status = host.wait_until("it is disabled", |status| guest(status, "other")["state"] == "disabled");
    assert_eq!(guest(&status, "other")["failures"], 10);
    assert_eq!(guest(&status, "game")["state"], "running");
    echo.finish("a loop in on-timer until the guest is disabled");
    host.stop();
}

#[test]
fn a_game_at_the_gate_that_is_disabled_leaves_a_host_that_can_be_asked_and_stopped() {
    let host = World::new(&hostile_game()).serve();
    let mut client = host.connect();
    for failures in 1..=10 {
        client.send("unreachable");
        host.log().wait_for_several(failures, &["a call failed", "guest=\"game\""]);
    }
    host.wait_until("it is disabled", |status| guest(status, "game")["state"] == "disabled");
    host.stop();
}

/// A state that does harm while it is saved or restored costs only the state.
fn loses_its_state(harm: &str, call: &str, error: &str) {
    let config =
        Config::new().set("store.checkpoint_interval_s", 1).guest(hostile("game", "game").misbehave(harm, "init"));
    let host = World::new(&config).serve();
    let mut client = host.connect();
    let echo = host.echo();
    if call == "restore" {
        // A state is restored when there is one, and an instance to replace.
        host.wait_until("a checkpoint", |status| status["timers"]["fired"].as_u64() > Some(0));
        client.send("unreachable");
    }
    host.wait_for_failure("game", call, error);
    assert_eq!(client.ask("ping again"), "pong again");
    echo.finish(harm);
    host.stop();
}

#[test]
fn a_state_whose_saving_loops() {
    loses_its_state("save:loop", "save", "deadline");
}

#[test]
fn a_state_of_16_mib() {
    loses_its_state("save:big", "save", "too much data");
}

#[test]
fn a_state_whose_restoring_loops() {
    loses_its_state("restore:loop", "restore", "deadline");
}

#[test]
fn a_state_whose_restoring_traps() {
    loses_its_state("restore:unreachable", "restore", "`unreachable` instruction");
}
