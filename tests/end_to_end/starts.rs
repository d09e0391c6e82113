//! What keeps a host from starting: one line that names the thing and the mend, and exit status 1.

use std::fs;
use std::net::TcpListener;

use wheelhouse_tests::{Config, Guest, World, failure_of, hostile, wheelhouse};

fn assert_holds(line: &str, parts: &[&str]) {
    for part in parts {
        assert!(line.contains(part), "{part:?} is not in {line:?}");
    }
}

fn text(config: &str) -> World {
    let world = World::new(&Config::new());
    world.write("wheelhouse.toml", config);
    world
}

#[test]
fn a_configuration_that_is_not_there() {
    let line = failure_of(wheelhouse().args(["serve", "--config", "nowhere.toml"]));
    assert_holds(&line, &["nowhere.toml is not there", "--config"]);
}

#[test]
fn a_configuration_that_is_not_toml() {
    assert_holds(&text("[loop\nqueue_capacity = 1\n").serve_and_fail(), &["wheelhouse.toml:1:6:"]);
}

#[test]
fn a_configuration_that_is_not_text() {
    let world = World::new(&Config::new());
    world.write("wheelhouse.toml", [0xFF, 0xFE, 0x00, 0x80]);
    assert_holds(&world.serve_and_fail(), &["wheelhouse.toml cannot be read"]);
}

#[test]
fn an_unknown_key_and_the_one_that_was_meant() {
    let line = text("[loop]\nqueue_capasity = 10\n").serve_and_fail();
    assert_holds(&line, &["wheelhouse.toml:2:", "loop.queue_capasity", "did you mean queue_capacity?"]);
}

#[test]
fn a_value_that_is_not_positive() {
    let line = text("[timers]\ntick_ms = 0\n").serve_and_fail();
    assert_holds(&line, &["wheelhouse.toml:2:", "timers.tick_ms is 0"]);
}

#[test]
fn a_port_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = taken.local_addr().expect("it is bound").to_string();
    for (key, mend) in [("gate.listen", "gate.listen"), ("admin.listen", "admin.listen")] {
        let config = Config::new().set(key, format!("{address:?}")).guest(hostile("game", "game"));
        assert_holds(&World::new(&config).serve_and_fail(), &[&address, "in use", mend]);
    }
}

#[test]
fn a_guest_file_that_is_not_there() {
    let line = World::new(&Config::new().guest(Guest::new("rules", "game", "nowhere.wasm"))).serve_and_fail();
    assert_holds(&line, &["\"rules\"", "nowhere.wasm", "build it"]);
}

#[test]
fn a_guest_file_that_is_a_folder() {
    let world = World::new(&Config::new().guest(Guest::new("rules", "game", "folder.wasm")));
    fs::create_dir(world.folder().join("folder.wasm")).expect("the temporary folder takes folders");
    assert_holds(&world.serve_and_fail(), &["\"rules\"", "folder.wasm"]);
}

#[test]
fn a_file_in_the_place_of_the_data_directory() {
    let world = World::new(&Config::new());
    world.write("data", "I was here first");
    let line = world.serve_and_fail();
    assert_holds(&line, &[&world.data_dir().display().to_string(), "is not a directory", "name another"]);
}

#[test]
fn a_data_directory_that_cannot_be_made() {
    let world = World::new(&Config::new().set("data_dir", "\"file/data\""));
    world.write("file", "");
    assert_holds(&world.serve_and_fail(), &["file/data", "cannot create the data directory"]);
}

#[test]
fn a_data_directory_in_which_nothing_can_be_written() {
    // /proc/self takes no files from anybody, unlike a folder without permissions, which binds no superuser.
    let world = World::new(&Config::new().set("data_dir", "\"/proc/self\""));
    assert_holds(&world.serve_and_fail(), &["/proc/self", "cannot write to the data directory"]);
}

#[test]
fn a_data_directory_that_another_host_has() {
    let world = World::new(&Config::new().guest(hostile("game", "game")));
    let host = world.serve();
    let process = format!("process {}", host.process_id());
    assert_holds(&world.serve_and_fail(), &["is in use by another running host", &process, "stop that host"]);
    assert_eq!(host.connect().ask("ping x"), "pong x", "the first host goes on");
    host.stop();
}

#[test]
fn a_status_of_a_host_that_does_not_run() {
    let world = World::new(&Config::new());
    let line = failure_of(wheelhouse().args(["status", "--data-dir"]).arg(world.data_dir()));
    assert_holds(&line, &["there is no data directory"]);
    fs::create_dir(world.data_dir()).expect("the temporary folder takes folders");
    let line = failure_of(wheelhouse().args(["status", "--data-dir"]).arg(world.data_dir()));
    assert_holds(&line, &["no host is running", "wheelhouse serve"]);
}

#[test]
fn a_status_of_a_host_that_was_killed() {
    let world = World::new(&Config::new().guest(hostile("game", "game")));
    // Dropped without a stop, it is killed.
    drop(world.serve());
    let line = failure_of(wheelhouse().args(["status", "--data-dir"]).arg(world.data_dir()));
    assert_holds(&line, &["no host is running", "start the host again"]);
    // Which works.
    assert_eq!(world.serve().connect().ask("ping x"), "pong x");
}
