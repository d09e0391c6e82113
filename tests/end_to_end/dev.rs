//! The designer's loop: a change is saved, and a moment later a client that has been connected all the while sees it.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use wheelhouse_tests::{Client, Config, Guest, Log, World, wheelhouse, workspace};

/// The program, which keeps what Cargo makes where other tests find it.
fn with_cargo(world: &World) -> Command {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from);
    let mut command = wheelhouse();
    // Of its own: who waits for what others build there would wait too long.
    command.current_dir(world.folder()).env("CARGO_TARGET_DIR", target.join("dev-loop"));
    command
}

/// `wheelhouse dev`, with what it prints.
struct Dev {
    process: Child,
    told: Log,
    errors: Log,
}

impl Dev {
    fn start(world: &World) -> Self {
        let mut command = with_cargo(world);
        command.args(["dev", "guests", "--config", "wheelhouse.toml"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be started");
        let follow = |stream: Option<Box<dyn Read + Send>>| Log::follow(stream.expect("it is piped"));
        let told = follow(process.stdout.take().map(|stream| Box::new(stream) as _));
        let errors = follow(process.stderr.take().map(|stream| Box::new(stream) as _));
        Self { process, told, errors }
    }

    /// A client of the host that was started for it.
    fn connect(&self) -> Client {
        let line = self.errors.wait_for(&["the world runs", "gate="]);
        let gate = line.split_whitespace().find_map(|word| word.strip_prefix("gate=")?.parse().ok());
        Client::connect(gate.expect("the line tells the gate's address"))
    }

    fn end(mut self) {
        kill_process(Pid::from_child(&self.process), Signal::INT).expect("it is this process's child");
        assert!(self.process.wait().expect("it ends").success());
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // Where it has ended already there is nothing to kill.
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let _ = self.process.wait();
    }
}

/// A world with a game made of the template, whose sources are in `guests/NAME`. It is built once, since the first time
/// takes long. Cargo keeps what it makes by its name, so that each test has one of its own.
fn world(name: &str) -> World {
    let world = World::new(&Config::new());
    fs::create_dir(world.folder().join("guests")).expect("it is not there");
    let mut new = wheelhouse();
    let made = new.args(["guest", "new", name, "--kind", "game"]).current_dir(world.folder().join("guests"));
    assert!(made.status().expect("it can be started").success());
    assert!(with_cargo(&world).args(["guest", "build", "guests"]).status().expect("it can be started").success());
    world.configure(
        &Config::new().guest(Guest::new(name, "game", format!("guests/{name}/build/{name}.wasm")).without("kv")),
    );
    world
}

fn replace(world: &World, name: &str, before: &str, after: &str) {
    let file = world.folder().join(format!("guests/{name}/src/lib.rs"));
    let text = fs::read_to_string(&file).expect("the template has it");
    assert!(text.contains(before), "{before} is not in {text}");
    // As many editors do: written beside, and renamed.
    let beside = file.with_extension("rs.tmp");
    fs::write(&beside, text.replacen(before, after, 1)).expect("it can be written");
    fs::rename(&beside, &file).expect("it can be renamed");
}

#[test]
fn a_change_that_is_saved_is_seen_by_a_client_that_stays_connected_and_a_broken_one_is_not() {
    let world = world("book");
    let dev = Dev::start(&world);
    dev.told.wait_for(&["watching", "which was started for this"]);
    let mut client = dev.connect();
    assert_eq!(client.ask("hello"), "you are visitor 1");

    replace(&world, "book", "you are visitor {}\", self", "you are guest {}\", self");
    dev.told.wait_for(&["book: generation 2 runs", "after the change"]);
    assert_eq!(client.ask("hello"), "you are guest 2");

    replace(&world, "book", "self.visitors += 1;", "self.visitors += ;");
    dev.told.wait_for(&["not built: ", "the world goes on as it is"]);
    dev.errors.wait_for(&["expected expression, found `;`"]);
    assert_eq!(client.ask("hello"), "you are guest 3");

    replace(&world, "book", "self.visitors += ;", "self.visitors += 10;");
    dev.told.wait_for(&["book: generation 3 runs"]);
    assert_eq!(client.ask("hello"), "you are guest 13");
    drop(client);
    dev.end();
}

#[test]
fn what_the_host_would_not_take_is_told_and_the_world_goes_on() {
    let world = world("tome");
    let dev = Dev::start(&world);
    dev.told.wait_for(&["watching"]);
    let mut client = dev.connect();
    assert_eq!(client.ask("hello"), "you are visitor 1");
    replace(
        &world,
        "tome",
        "gate::send(connection, line)?;",
        "kv::set(\"last\", &line)?;\n            gate::send(connection, line)?;",
    );
    dev.told.wait_for(&["tome: not swapped: it imports wheelhouse:sim/kv@0.1.0, which it is not granted; add \"kv\""]);
    assert_eq!(client.ask("hello"), "you are visitor 2");
    drop(client);
    dev.end();
}
