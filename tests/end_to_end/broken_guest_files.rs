//! A file that is no guest, or not the one it should be: the host runs without it, and says so.

use std::fs;

use wheelhouse_tests::{Config, Guest, World, failure_of, guest, hostile, tests_folder, wheelhouse};

/// Runs a host with a guest whose file holds `content` beside a well-behaved game; the log must say `reason`.
fn is_refused(content: &[u8], reason: &str) {
    let config = Config::new().guest(hostile("game", "game")).guest(Guest::new("bad", "thinker", "bad.wasm"));
    let world = World::new(&config);
    let file = world.write("bad.wasm", content);
    let host = world.serve();
    host.log().wait_for(&["ERROR", "the guest is refused", reason, "guest=\"bad\"", "bad.wasm"]);
    let status = host.status();
    assert_eq!(guest(&status, "bad")["state"], "refused");
    assert_eq!(guest(&status, "bad")["failures"], 1);
    let mut client = host.connect();
    assert_eq!(client.ask("ping x"), "pong x");
    assert!(client.ask("spawn bad 2 3").starts_with("spawned"), "its NPCs are there, and stand still");
    drop(client);
    host.stop();
    if reason.contains("kind") {
        return;
    }
    let line = failure_of(wheelhouse().args(["guest", "check"]).arg(&file));
    assert!(line.contains("bad.wasm") && line.contains(reason), "{line}");
}

fn good() -> Vec<u8> {
    fs::read(tests_folder().join("guests/build/hostile-thinker.wasm")).expect("the guests are built")
}

#[test]
fn an_empty_file() {
    is_refused(&[], "the file is empty");
}

#[test]
fn a_file_of_random_bytes() {
    let bytes: Vec<u8> = (0..4096_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    is_refused(&bytes, "the file is not Wasm");
}

#[test]
fn a_file_that_is_cut_off() {
    let good = good();
    is_refused(&good[..good.len() / 2], "the file is cut off");
    is_refused(&good[..good.len() - 1], "cut off");
    is_refused(&good[..6], "");
}

#[test]
fn a_file_with_a_broken_middle() {
    let mut broken = good();
    let middle = broken.len() / 2;
    broken[middle..middle + 64].fill(0xFF);
    is_refused(&broken, "");
}

#[test]
fn a_text_file() {
    is_refused(b"fn main() {}\n", "the file is not Wasm");
}

#[test]
fn a_module_that_is_no_guest() {
    is_refused(b"\0asm\x01\0\0\0", "component-type");
}

#[test]
fn a_guest_of_another_kind() {
    let job = fs::read(tests_folder().join("guests/build/hostile-job.wasm")).expect("the guests are built");
    is_refused(&job, "it is a job, and the configuration says kind = \"thinker\"");
}

#[test]
fn a_guest_that_imports_what_it_is_not_granted() {
    let config = Config::new().guest(hostile("game", "game")).guest(hostile("bad", "thinker").without("kv"));
    let host = World::new(&config).serve();
    host.log().wait_for(&[
        "the guest is refused",
        "wheelhouse:sim/kv@0.1.0",
        "add \"kv\" to its grants",
        "guest=\"bad\"",
    ]);
    assert_eq!(guest(&host.status(), "bad")["state"], "refused");
    host.stop();
}

#[test]
fn a_game_at_the_gate_that_is_refused_lets_nobody_in() {
    let world = World::new(&Config::new().guest(Guest::new("game", "game", "bad.wasm")));
    world.write("bad.wasm", []);
    let host = world.serve();
    host.connect().wait_for_end();
    host.wait_until("the client is counted", |status| status["connections"]["closed"] == 1);
    host.stop();
}
