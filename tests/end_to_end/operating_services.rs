//! Services as an operator meets them: launched with the host, listed, killed, restarted and given up, without a game.

use serde_json::{Value, json};
use wheelhouse_tests::{Config, Guest, Host, World, guest, hostile, wheelhouse};

/// The service `echo`, which is launched with the host and ended only by an operator.
fn echo() -> Guest {
    hostile("echo", "service").key("start", true)
}

/// A host with these services and no game, that starts them again after moments.
fn world(services: impl IntoIterator<Item = Guest>) -> World {
    let config = Config::new().patient().set("service.restart_pause_ms", 20);
    World::new(&services.into_iter().fold(config, Config::guest))
}

/// What is listed of the service that has this name, if there is one.
fn named(host: &Host, name: &str) -> Option<Value> {
    let list = host.command(&["services"])["list"].take();
    let entries = list.as_array().expect("a list").iter();
    entries.rev().find(|entry| entry["names"] == json!([name])).cloned()
}

#[test]
fn a_service_is_listed_killed_by_its_name_and_gone_by_its_handle() {
    let world = world([echo()]);
    let host = world.serve();
    host.wait_until("it runs", |status| status["services"]["running"] == 1);
    let entry = named(&host, "echo").expect("it is listed under its guest's name");
    assert_eq!((&entry["guest"], &entry["kind"], &entry["mailbox"]), (&json!("echo"), &json!("service"), &json!(0)));
    let status = host.status();
    assert_eq!(
        (&guest(&status, "echo")["kind"], &guest(&status, "echo")["state"]),
        (&json!("service"), &json!("running"))
    );

    let told = wheelhouse().args(["services", "--data-dir"]).arg(world.data_dir()).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.starts_with("handle") && told.contains(&format!("{}  echo", entry["handle"])), "{told}");
    assert!(told.contains("\n1 running, 1 launched, 0 exited, 0 failed\n"), "{told}");

    assert_eq!(host.command(&["services", "kill", "echo"]), json!({"killed": entry["handle"]}));
    let status = host.wait_until("it has ended", |status| status["services"]["running"] == 0);
    assert_eq!((&status["services"]["exited"], &status["services"]["failed"]), (&json!(1), &json!(0)));
    assert_eq!(named(&host, "echo"), None);
    let handle = entry["handle"].to_string();
    for gone in [handle.as_str(), "echo"] {
        let line = host.failure_of(&["services", "kill", gone]);
        let mend = "it has ended, or never was; `wheelhouse services` lists those there are";
        assert_eq!(line, format!("there is no service {gone:?}: {mend}"));
    }
    host.stop();
}

#[test]
fn a_part_of_the_host_is_listed_but_not_killed() {
    let host = world([echo()]).serve();
    assert_eq!(named(&host, "logger").expect("it is listed")["kind"], "native");
    let line = host.failure_of(&["services", "kill", "logger"]);
    assert_eq!(line, "\"logger\" is a part of the host, and only services are killed");
    assert_eq!(host.command(&["services", "--dead-letters"]), json!({"count": 0, "last": []}));
    host.stop();
}

#[test]
fn a_service_that_is_to_run_always_comes_back_under_its_name() {
    let host = world([echo().key("restart", "\"always\"")]).serve();
    host.wait_until("it runs", |status| status["services"]["running"] == 1);
    let first = named(&host, "echo").expect("it is listed");
    host.command(&["services", "kill", "echo"]);
    host.wait_until("another runs", |status| status["services"]["launched"] == 2 && status["services"]["running"] == 1);
    let second = named(&host, "echo").expect("the other has the name");
    assert_ne!(first["handle"], second["handle"]);
    host.stop();
}

#[test]
fn a_service_that_does_not_start_is_tried_again_and_then_given_up() {
    let refusing = echo().key("arguments", "\"refuse\"").key("restart", "\"on-failure\"");
    let world =
        World::new(&Config::new().set("service.restart_pause_ms", 20).set("service.max_restarts", 2).guest(refusing));
    let host = world.serve();
    host.log().wait_for(&["ERROR", "a service is given up: it ended 2 times in a row", "guest=\"echo\""]);
    let status = host.wait_until("all have ended", |status| status["services"]["running"] == 0);
    let services = &status["services"];
    assert_eq!((&services["launched"], &services["failed"], &services["exited"]), (&json!(3), &json!(3), &json!(0)));
    assert_eq!(guest(&status, "echo")["failures"], 3);
    host.stop();
}
