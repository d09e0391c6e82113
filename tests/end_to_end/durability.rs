//! What was acknowledged is on disk: killed with SIGKILL, saved on demand, copied while running, and all of it there.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use wheelhouse_tests::{Config, World, example, hostile, ledger};

fn config() -> Config {
    Config::new().patient().guest(ledger()).guest(hostile("pacer", "thinker"))
}

#[test]
fn a_bump_that_was_acknowledged_is_there_after_sigkill() {
    let world = World::new(&config());
    for round in 1..=3 {
        let host = world.serve();
        let mut client = host.connect();
        assert_eq!(client.count("a"), (round - 1) * 5);
        (1..=5).for_each(|number| assert_eq!(client.ask("bump a"), format!("a {}", (round - 1) * 5 + number)));
        host.kill();
    }
    assert_eq!(world.serve().connect().count("a"), 15);
}

#[test]
fn packets_in_flight_come_back_in_the_order_of_their_handlers() {
    let host = World::new(&config()).serve();
    let mut client = host.connect();
    // Some wait for the disk and some do not; no answer may overtake another.
    let packets = ["bump a", "ping 1", "bump b", "read a", "bump a", "ping 2", "read b", "bump b"];
    packets.iter().for_each(|packet| client.send(packet));
    let answers: Vec<String> = packets.iter().map(|_| client.receive()).collect();
    assert_eq!(answers, ["a 1", "pong 1", "b 1", "a 1", "a 2", "pong 2", "b 1", "b 2"]);
    host.stop();
}

#[test]
fn entities_their_data_and_pending_events_are_there_after_sigkill() {
    let world = World::new(&config());
    let host = world.serve();
    let mut client = host.connect();
    let id = client.ask("spawn pacer 300 -7").replace("spawned ", "");
    assert_eq!(client.ask(format!("mark {id} a mark")), "marked a mark");
    let event = client.schedule("after 3600000 note later");
    let repeating = client.schedule("every 3600000 coalesce note again");
    host.kill();

    let host = world.serve();
    let mut client = host.connect();
    assert_eq!(client.ask(format!("place {id}")), "at 300 -7");
    assert_eq!(client.ask(format!("marked {id}")), "marked a mark");
    let lines = [(event, "once", "later"), (repeating, "coalesce:3600000", "again")]
        .map(|(id, repetition, payload)| format!("{} note {repetition} 0 waiting {payload}", id.words()));
    assert_eq!(client.pending(10, None), lines);
    let other = client.ask("spawn pacer 0 0").replace("spawned ", "");
    assert!(other.parse::<u64>().unwrap() > id.parse().unwrap(), "an id is never used again: {other} after {id}");
    assert!(client.schedule("after 3600000 note x").sequence > repeating.sequence, "nor is a sequence");
    host.stop();
}

#[test]
fn what_a_guest_keeps_in_memory_is_as_it_was_at_the_last_save() {
    let world = World::new(&config());
    let host = world.serve();
    let mut client = host.connect();
    assert_eq!(client.ask("remember the saved one"), "recalled the saved one");
    assert_eq!(host.command(&["save"])["saved"], true);
    assert_eq!(client.ask("remember the later one"), "recalled the later one");
    host.kill();
    let host = world.serve();
    assert_eq!(host.connect().ask("recall"), "recalled the saved one");
    host.stop();
}

#[test]
fn a_checkpoint_saves_by_itself() {
    let world = World::new(&config().set("store.checkpoint_interval_s", 1));
    let host = world.serve();
    assert_eq!(host.connect().ask("remember this"), "recalled this");
    let uptime_ms = host.status()["uptime_ms"].as_u64();
    let long_enough_ms = uptime_ms.map(|uptime_ms| uptime_ms + 3000);
    host.wait_until("time for two checkpoints", |status| status["uptime_ms"].as_u64() > long_enough_ms);
    host.kill();
    let host = world.serve();
    assert_eq!(host.connect().ask("recall"), "recalled this");
    host.stop();
}

#[test]
fn where_npcs_went_by_themselves_is_durable_after_a_save() {
    let world = World::new(&config().guest(example("wolf", "thinker")).set("npcs.think_interval_ms", 50));
    let host = world.serve();
    let (mut observer, mut player) = (host.connect(), host.connect());
    let wolf = observer.ask("spawn wolf 40 40").replace("spawned ", "");
    player.ask("stand 40 44");
    let place = format!("place {wolf}");
    observer.ask_until_it(&place, "the wolf goes somewhere else", |at| at != "at 40 40");
    drop(player);
    // With nobody near, it sleeps, and stays where it is.
    host.wait_until("the wolf sleeps", |status| status["npcs"]["active"] == 0);
    let at = observer.ask(&place);
    host.command(&["save"]);
    host.kill();
    let host = world.serve();
    assert_eq!(host.connect().ask(place), at);
    host.stop();
}

#[test]
fn a_backup_made_while_the_world_runs_has_everything_of_one_moment() {
    let world = World::new(&config());
    let host = world.serve();
    let mut client = host.connect();
    assert_eq!(client.ask("remember this"), "recalled this");
    host.command(&["save"]);
    let npc = client.ask("spawn pacer 5 6").replace("spawned ", "");
    let event = client.schedule("after 3600000 note later");
    let file = world.folder().join("copy.db");
    let name = file.to_str().expect("a temporary folder has a plain name");

    let is_copied = AtomicBool::new(false);
    let (before, after) = std::thread::scope(|scope| {
        let bumper = scope.spawn(|| {
            let mut client = host.connect();
            let mut bumped = 0;
            while !is_copied.load(Ordering::Relaxed) {
                bumped += 1;
                assert_eq!(client.ask("bump2 one two"), format!("one {bumped} two {bumped}"));
                std::thread::sleep(wheelhouse_tests::PAUSE);
            }
            bumped
        });
        client.ask_until_it("read one", "some bumps", |answer| answer != "one 0");
        let before = client.count("one");
        assert_eq!(host.command(&["backup", name])["backup"], name);
        is_copied.store(true, Ordering::Relaxed);
        (before, bumper.join().expect("the bumps go on during the copy"))
    });
    let line = host.failure_of(&["backup", name]);
    assert!(line.contains("copy.db"), "a backup overwrites nothing: {line}");
    host.stop();

    let restored = World::new(&config());
    fs::create_dir(restored.data_dir()).expect("the temporary folder takes folders");
    fs::copy(&file, restored.data_dir().join("world.db")).expect("the copy is a file");
    let host = restored.serve();
    let mut client = host.connect();
    let copied = client.count("one");
    assert!((before..=after).contains(&copied), "{before} <= {copied} <= {after}");
    assert_eq!(client.count("two"), copied, "what was changed together is copied together");
    assert_eq!(client.ask(format!("place {npc}")), "at 5 6");
    assert_eq!(client.ask("recall"), "recalled this");
    assert_eq!(client.pending(10, None), [format!("{} note once 0 waiting later", event.words())]);
    host.stop();
}
