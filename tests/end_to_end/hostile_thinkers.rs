//! A thinker that misbehaves: its NPCs stand still, everybody else plays on.

use wheelhouse_tests::{Config, Host, World, guest, hostile};

/// A game with a thinker that does harm when it thinks, and a client near whom `count` NPCs are to think.
fn thinking(harm: &str, count: u32) -> Host {
    thinking_with(Config::new(), harm, count)
}

fn thinking_with(config: Config, harm: &str, count: u32) -> Host {
    let config = config
        .set("npcs.think_interval_ms", 100)
        .guest(hostile("game", "game"))
        .guest(hostile("thinker", "thinker").misbehave(harm, "think"));
    let host = World::new(&config).serve();
    let mut client = host.connect();
    assert!(client.ask(format!("spawn thinker 2 {count}")).starts_with("spawned"));
    host
}

/// A think that fails with `error` until the thinker is disabled, beside a client that notices nothing.
fn fails(harm: &str, error: &str) {
    let host = thinking_with(Config::new().with_little_memory(), harm, 30);
    let echo = host.echo();
    host.wait_for_failure("thinker", "think", error);
    host.log().wait_for(&["an NPC's think failed", "npc="]);
    host.log().wait_for(&["the guest is disabled", "guest=\"thinker\""]);
    echo.finish(&format!("{harm} in think"));
    let status = host.status();
    assert_eq!(guest(&status, "thinker")["state"], "disabled");
    assert_eq!(guest(&status, "thinker")["failures"], 10);
    assert!(status["npcs"]["faults"].as_u64() > Some(0), "{status:#}");
    host.stop();
}

#[test]
fn an_endless_loop_is_stopped_at_its_deadline() {
    fails("loop", "deadline of 50 ms");
}

#[test]
fn a_memory_bomb_ends_at_the_memory_limit() {
    fails("bomb", "wasm trap");
}

#[test]
fn deep_recursion_traps() {
    fails("recurse", "call stack exhausted");
}

#[test]
fn unreachable_code_traps() {
    fails("unreachable", "`unreachable` instruction");
}

/// Odd answers that are no failures: `harm` is ignored, and the thinker goes on.
fn goes_on(harm: &str) {
    let host = thinking(harm, 5);
    let mut watcher = host.connect();
    let echo = host.echo();
    host.wait_until("the thinker goes on", |status| guest(status, "thinker")["calls"].as_u64() > Some(10));
    echo.finish(&format!("{harm} in think"));
    let status = host.status();
    assert_eq!(guest(&status, "thinker")["failures"], 0, "{harm}");
    assert_eq!(guest(&status, "thinker")["state"], "running", "{harm}");
    // Nobody was moved by a thinker who is not theirs.
    assert_eq!(watcher.ask("where"), "at 8 8");
    host.stop();
}

#[test]
fn intents_for_others_than_its_own_npcs_are_ignored() {
    goes_on("foreign");
    goes_on("unknown");
}

#[test]
fn a_hundred_intents_for_each_npc_count_once() {
    goes_on("repeat");
}

#[test]
fn an_npc_that_wants_to_the_end_of_the_world_takes_a_step() {
    goes_on("far");
}

#[test]
fn a_thinker_cannot_change_the_world() {
    goes_on("write");
}

#[test]
fn a_list_of_a_million_intents_harms_nobody() {
    let host = thinking("giant", 5);
    let echo = host.echo();
    host.wait_until("it has thought", |status| guest(status, "thinker")["calls"].as_u64() > Some(3));
    echo.finish("a million intents in a list");
    host.stop();
}

#[test]
fn one_npc_that_breaks_its_thinker_costs_only_itself() {
    let config = Config::new()
        .set("npcs.think_interval_ms", 100)
        .guest(hostile("game", "game"))
        .guest(hostile("thinker", "thinker").misbehave("trap-on-kind:7", "think"));
    let host = World::new(&config).serve();
    let mut client = host.connect();
    client.ask("spawn thinker 2 20");
    let bad = client.ask("spawn thinker 7 1").replace("spawned ", "");
    let echo = host.echo();
    host.log().wait_for(&["an NPC's think failed", &format!("npc={bad} ")]);
    let before = host.status()["npcs"]["thinks"].as_u64().expect("a number");
    let status =
        host.wait_until("the others go on", |status| status["npcs"]["thinks"].as_u64() > Some(before + 20 * 20));
    echo.finish("one NPC that breaks its thinker");
    assert_eq!(guest(&status, "thinker")["state"], "running");
    assert_eq!(status["npcs"]["active"], 21, "the NPC that fails stays active");
    assert_eq!(
        host.log().lines_with(&["an NPC's think failed"]).len() as u64,
        status["npcs"]["faults"].as_u64().unwrap()
    );
    let others = host.log().lines_with(&["an NPC's think failed"]);
    assert!(others.iter().all(|line| line.contains(&format!("npc={bad} "))), "{others:#?}");
    host.stop();
}

#[test]
fn a_game_that_loops_on_an_intent_is_stopped_for_that_intent_only() {
    let config = Config::new()
        .set("npcs.think_interval_ms", 500)
        .guest(hostile("game", "game").misbehave("loop", "intent"))
        .guest(hostile("thinker", "thinker").misbehave("act", "think"));
    let host = World::new(&config).serve();
    let mut client = host.connect();
    client.ask("spawn thinker 2 1");
    let echo = host.echo();
    host.wait_for_failure("game", "on-intent", "deadline");
    echo.finish("a loop in on-intent");
    host.stop();
}
