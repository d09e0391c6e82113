//! Stopping and starting again: the world is there.

use rustix::process::Signal;
use wheelhouse_tests::{Config, Guest, World, guest, hostile};

fn world() -> World {
    World::new(&Config::new().guest(hostile("game", "game")))
}

fn the_world_survives(signal: Signal) {
    let world = world();
    let host = world.serve();
    let mut client = host.connect();
    assert_eq!(client.ask("whole"), "changed");
    assert_eq!(client.ask_for("whole", "changed"), "changed");
    assert_eq!(client.ask("remember this"), "ok");
    drop(client);
    host.wait_until("the player is gone", |status| status["connections"]["open"] == 0);
    let stopped = host.stop_by(signal);
    assert_eq!(stopped.status, Some(0), "{}", stopped.log.join("\n"));
    assert!(stopped.log.iter().any(|line| line.contains("the world is saved")), "{}", stopped.log.join("\n"));

    let host = world.serve();
    let mut client = host.connect();
    let count = client.ask("count");
    assert!(count.starts_with("entities 3 kv 2"), "two entities and the new player, and the count in kv: {count}");
    assert_eq!(client.ask("recall"), "this", "what the guest saved");
    host.stop();
}

#[test]
fn the_world_is_there_after_sigterm() {
    the_world_survives(Signal::TERM);
}

#[test]
fn the_world_is_there_after_ctrl_c() {
    the_world_survives(Signal::INT);
}

#[test]
fn the_world_is_there_after_the_terminal_was_closed() {
    the_world_survives(Signal::HUP);
}

#[test]
fn a_player_who_was_there_at_the_stop_is_nobodys_player_afterwards() {
    let world = world();
    let host = world.serve();
    let mut client = host.connect();
    assert_eq!(client.ask("ping x"), "pong x");
    host.stop();
    let host = world.serve();
    let mut other = host.connect();
    assert_eq!(other.ask("where"), "at 8 8");
    assert_eq!(other.ask("ping y"), "pong y");
    host.stop();
}

#[test]
fn npcs_whose_thinker_is_gone_stand_still_and_think_again_when_it_is_back() {
    let with = Config::new().guest(hostile("game", "game")).guest(hostile("thinker", "thinker"));
    let world = World::new(&with);
    let host = world.serve();
    let mut client = host.connect();
    client.ask("spawn thinker 2 5");
    host.wait_until("they think", |status| status["npcs"]["thinks"].as_u64() > Some(5));
    host.stop();

    let host = world.serve();
    let _player = host.connect();
    let status = host.wait_until("they think again", |status| status["npcs"]["thinks"].as_u64() > Some(5));
    assert_eq!(status["npcs"]["total"], 5);
    host.stop();

    world.configure(&Config::new().guest(hostile("game", "game")));
    let host = world.serve();
    let mut client = host.connect();
    assert_eq!(client.ask("ping x"), "pong x");
    let status = host.wait_until("they are awake", |status| status["npcs"]["active"] == 5);
    assert_eq!(status["npcs"]["total"], 5, "they are NPCs, though nobody thinks for them");
    assert_eq!(status["npcs"]["faults"], 0);
    host.stop();

    world.configure(&with);
    let host = world.serve();
    let _player = host.connect();
    let status = host.wait_until("they think again", |status| status["npcs"]["thinks"].as_u64() > Some(5));
    assert_eq!(status["npcs"]["total"], 5);
    host.stop();
}

#[test]
fn what_a_guest_saved_outlives_a_run_in_which_it_was_refused() {
    let world = world();
    let host = world.serve();
    let mut client = host.connect();
    assert_eq!(client.ask("remember this"), "ok");
    host.stop();

    let broken = world.write("broken.wasm", "not a guest");
    world.configure(&Config::new().guest(Guest::new("game", "game", broken.display().to_string())));
    // With what ran last it would run.
    std::fs::remove_dir_all(world.data_dir().join("generations")).unwrap();
    let host = world.serve();
    assert_eq!(guest(&host.status(), "game")["state"], "refused");
    host.stop();

    world.configure(&Config::new().guest(hostile("game", "game")));
    let host = world.serve();
    assert_eq!(host.connect().ask("recall"), "this");
    host.stop();
}
