//! Games and services: what a game tells services is on disk first and comes in order, what services tell games waits
//! while nothing can be changed, and each request has one answer. And connections that are bound from one game to another.

use serde_json::json;
use wheelhouse::guest::GuestSettings;

use crate::player::Player;
use crate::world::{Run, World, game, service};

/// Longer than a test takes.
const LONG_MS: u64 = 60_000;

fn postman(name: &str) -> GuestSettings {
    let mut postman = game(name, "postman");
    postman.config.insert("name".to_owned(), json!(name));
    postman
}

/// A world with two games, of which the first has the clients, and a service.
fn world() -> World {
    let guests = vec![postman("postman"), postman("other"), service("relay")];
    World::of(guests).configured(|config| config.service.max_running = 16)
}

/// The number of a client's own connection.
fn connection(player: &mut Player) -> u64 {
    let answer = player.ask("who");
    answer.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a postman knows its clients")
}

/// The handle behind a name.
fn handle(player: &mut Player, name: &str) -> u64 {
    let answer = player.ask(format!("find {name}"));
    answer.strip_prefix("found ").and_then(|handle| handle.parse().ok()).expect("somebody has that name")
}

/// Asserts that nobody but those who settle is sent anything, however often the loop goes round.
fn assert_silence(run: &mut Run, while_it_settles: impl FnOnce(&mut Run)) {
    let before = run.sent();
    while_it_settles(run);
    run.settle();
    assert_eq!(run.sent(), before + run.pings());
}

#[test]
fn what_a_game_tells_leaves_when_it_is_on_disk_and_in_the_order_in_which_it_was_told() {
    let world = world();
    let mut run = world.start();
    let (mut writer, mut reader) = (run.connect(), run.connect());
    let to = connection(&mut reader);
    assert_eq!(writer.ask("ping x"), "pong x");
    world.disk.hold();
    assert_silence(&mut run, |_| {
        writer.send(format!("post other show {to} first"));
        writer.send(format!("tell other show {to} second"));
        world.disk.wait_for_held_commit();
    });
    world.disk.let_go();
    assert_eq!((reader.receive(), reader.receive()), ("plain first".into(), "plain second".into()));
    writer.send(format!("tell other show {to} third"));
    assert_eq!(reader.receive(), "plain third");
    run.stop().expect("everything is saved");
}

#[test]
fn a_handler_that_fails_has_told_nobody_anything() {
    let world = world();
    let run = world.start();
    let (mut writer, mut reader) = (run.connect(), run.connect());
    let to = connection(&mut reader);
    writer.send(format!("half other show {to} first"));
    writer.send(format!("tell other show {to} second"));
    assert_eq!(reader.receive(), "plain second");
    run.stop().expect("everything is saved");
}

#[test]
fn a_request_is_answered_or_given_up_after_its_limit() {
    let world = world();
    let run = world.start();
    let mut client = run.connect();
    assert_eq!(client.ask(format!("request {LONG_MS} relay echo hi")), "reply hi");
    let none = client.ask("request 30 relay sleep 60000 echo late");
    assert!(none.starts_with("none ") && none.contains("30 ms") && none.contains("relay ("), "{none}");
    run.stop().expect("everything is saved");
}

#[test]
fn a_request_leaves_when_what_its_game_changed_is_on_disk() {
    let world = world();
    let mut run = world.start();
    let mut client = run.connect();
    assert_eq!(client.ask(format!("request {LONG_MS} relay echo hi")), "reply hi");
    world.disk.hold();
    let handled = run.status().services.messages;
    assert_silence(&mut run, |_| {
        client.send(format!("bump-request {LONG_MS} relay echo there"));
        world.disk.wait_for_held_commit();
    });
    assert_eq!(run.status().services.messages, handled);
    world.disk.let_go();
    assert_eq!(client.receive(), "reply there");
    run.stop().expect("everything is saved");
}

#[test]
fn what_a_game_answers_is_on_disk_before_anybody_has_it() {
    let world = world();
    let mut run = world.start();
    let (mut writer, mut reader) = (run.connect(), run.connect());
    let other = handle(&mut writer, "other");
    world.disk.hold();
    assert_silence(&mut run, |_| {
        writer.send(format!("request {LONG_MS} relay call {other} bump x"));
        world.disk.wait_for_held_commit();
        // Who only reads what is on its way to the disk waits for it too.
        reader.send(format!("request {LONG_MS} other read x"));
    });
    world.disk.let_go();
    assert_eq!((writer.receive(), reader.receive()), ("reply x 1".into(), "reply x 1".into()));
    run.stop().expect("everything is saved");
}

#[test]
fn while_the_disk_takes_nothing_messages_wait_and_are_handled_once() {
    let world = world();
    let mut run = world.start();
    let (mut bumper, mut client) = (run.connect(), run.connect());
    world.disk.fill();
    bumper.send("bump a");
    run.wait_until("trouble", |status| status.store.state != "ok");
    assert_silence(&mut run, |_| {
        client.send(format!("request {LONG_MS} other bump x"));
        client.send(format!("request {LONG_MS} other bump x"));
    });
    run.end_trouble();
    assert_eq!(bumper.receive(), "a 1");
    assert_eq!((client.receive(), client.receive()), ("reply x 1".into(), "reply x 2".into()));
    run.stop().expect("everything is saved");
}

#[test]
fn a_game_answers_with_its_refusal_or_its_failure_and_when_it_is_disabled_with_that() {
    let world = world().configured(|config| config.guest.max_failures = 2);
    let run = world.start();
    let mut client = run.connect();
    let mut ask = |text: &str| client.ask(format!("request {LONG_MS} other {text}"));
    assert!(ask("refuse not today").contains("not today"));
    assert!(ask("trap").starts_with("none "));
    assert_eq!(ask("bump x"), "reply x 1", "another instance has taken its place");
    assert!(ask("trap").starts_with("none "));
    client.send(format!("request {LONG_MS} other bump x"));
    assert_eq!(client.ask("find other"), "found nobody");
    run.stop().expect("everything is saved");
}

#[test]
fn a_handler_sees_what_it_has_launched_and_named_while_nothing_of_it_has_left() {
    let world = world();
    let mut run = world.start();
    let (mut bumper, mut client) = (run.connect(), run.connect());
    world.disk.hold();
    bumper.send(format!("bump-request {LONG_MS} relay echo 1"));
    world.disk.wait_for_held_commit();
    // It stands in line behind the request that waits.
    assert_eq!(client.ask("launch relay helper echo 2"), "called true");
    assert_silence(&mut run, |_| client.send("name helper other"));
    world.disk.let_go();
    assert_eq!(bumper.receive(), "reply 1");
    // Told only now, since no crash may take back what it tells of.
    assert!(client.receive().starts_with("none "), "the name is taken, though its letter waits");
    assert_eq!(client.receive(), "reply 2");
    run.stop().expect("everything is saved");
}

#[test]
fn games_are_subscribed_and_watch_as_services_do() {
    let world = world();
    let run = world.start();
    let mut client = run.connect();
    let to = connection(&mut client);
    assert_eq!(client.ask("subscribe news"), "done");
    assert_eq!(client.ask(format!("publish news show {to} extra")), "done");
    assert_eq!(client.receive(), "published extra");
    assert_eq!((client.ask("listen"), client.ask("watch map")), ("listening".into(), "done".into()));
    assert_eq!(client.ask("shared map"), "shared nothing");
    assert_eq!((client.ask("put map hills"), client.receive()), ("done".into(), "changed map".into()));
    assert_eq!(client.ask("shared map"), "shared hills");
    run.stop().expect("everything is saved");
}

#[test]
fn a_client_that_is_bound_elsewhere_is_the_others_until_it_is_bound_back() {
    let world = world();
    let run = world.start();
    let (mut client, mut listener) = (run.connect(), run.connect());
    let number = connection(&mut client);
    assert_eq!(listener.ask("listen"), "listening");
    client.send("bind other");
    assert_eq!(listener.receive(), format!("disconnected {number}"));
    assert_eq!(client.ask_until("who", |answer| answer.starts_with("other")), format!("other {number}"));
    client.send("bind postman");
    assert_eq!(listener.receive(), format!("connected {number}"));
    assert_eq!(client.ask_until("who", |answer| answer.starts_with("postman")), format!("postman {number}"));
    drop(client);
    assert_eq!(listener.receive(), format!("disconnected {number}"));
    run.stop().expect("everything is saved");
}

#[test]
fn a_binding_waits_for_the_disk_as_packets_do() {
    let world = world();
    let mut run = world.start();
    let mut client = run.connect();
    let number = connection(&mut client);
    world.disk.hold();
    client.send("bump a");
    client.send("bind other");
    world.disk.wait_for_held_commit();
    run.settle();
    client.send("ping x");
    assert_silence(&mut run, |_| {});
    world.disk.let_go();
    assert_eq!((client.receive(), client.receive()), ("a 1".into(), "pong x".into()));
    assert_eq!(client.ask_until("who", |answer| answer.starts_with("other")), format!("other {number}"));
    run.stop().expect("everything is saved");
}
