//! New code while the world runs: what it carries over, what is refused, and what brings the old code back.

use std::path::Path;

use serde_json::Value;
use wheelhouse_tests::{Client, Config, Guest, Host, World, guest, helpful, hostile, version};

fn game() -> Guest {
    helpful("changeling-game", "game")
}

fn config() -> Config {
    let thinker = helpful("changeling-thinker", "thinker").without("entities");
    let (step, job) = (helpful("changeling-step", "step-task"), helpful("changeling-job", "job"));
    Config::new().guest(game()).guest(thinker).guest(step).guest(job)
}

fn swap(host: &Host, name: &str, file: &Path) -> Value {
    host.command(&["swap", name, file.to_str().expect("the folder is text")])
}

fn refused(host: &Host, name: &str, file: &Path) -> String {
    host.failure_of(&["swap", name, file.to_str().expect("the folder is text")])
}

fn history(host: &Host, name: &str) -> Vec<(u64, String)> {
    let answer = host.command(&["guests", "history", name]);
    let fate = |generation: &Value| match &generation["fate"] {
        Value::String(fate) => fate.clone(),
        failed => failed["failed"].as_str().expect("a failure has a reason").to_owned(),
    };
    let generations = answer["generations"].as_array().expect("a history is a list");
    generations.iter().map(|it| (it["number"].as_u64().expect("a number"), fate(it))).collect()
}

/// A number of the game's report.
fn reported(client: &mut Client, name: &str) -> u64 {
    let report = client.ask_for("report", "ticks=");
    let value = report.split(' ').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
    value.unwrap_or_else(|| panic!("{name} is not in {report}")).parse().expect("a number")
}

#[test]
fn a_game_runs_new_code_with_its_memory_and_its_clients_stay_connected() {
    let world = World::new(&config());
    let host = world.serve();
    let mut client = host.connect();
    assert_eq!(client.ask("n 1"), "n 1 1");
    assert_eq!(client.ask("remember the way"), "remember the way");
    let swapped = swap(&host, "changeling-game", &version(&world, "game", "2"));
    assert_eq!((&swapped["generation"], &swapped["guest"]), (&2.into(), &"changeling-game".into()));
    assert_eq!(client.ask("n 2"), "n 2 2");
    assert_eq!(client.ask("recall"), "the way");
    let status = host.status();
    assert_eq!(guest(&status, "changeling-game")["generation"], 2);
    assert_eq!((&status["swaps"]["done"], &status["connections"]["open"]), (&1.into(), &1.into()));
    host.stop();
}

#[test]
fn what_cannot_take_over_is_refused_with_the_reason_and_the_old_code_stays() {
    let world = World::new(&config());
    let host = world.serve();
    let mut client = host.connect();
    client.ask("remember the way");
    let truncated = {
        let whole = std::fs::read(version(&world, "game", "9")).unwrap();
        world.write("truncated.wasm", &whole[..whole.len() / 2])
    };
    for (file, reason) in [
        (version(&world, "thinker", "2"), "it is a thinker, and the configuration says kind = \"game\""),
        (version(&world, "game", "2 restore:refuse"), "failed its trial in restore: refused: "),
        (version(&world, "game", "2 restore:trap"), "failed its trial in restore: wasm trap"),
        (version(&world, "game", "2 restore:loop"), "failed its trial in restore: stopped after its deadline of"),
        (version(&world, "game", "2 init:refuse"), "failed its trial in init: refused: it refuses as its mark says"),
        (version(&world, "game", "2 init:trap"), "failed its trial in init: wasm trap"),
        (version(&world, "game", "2 init:loop"), "failed its trial in init: stopped after its deadline of"),
        (truncated, "truncated.wasm cannot be run: the file is cut off after"),
        (world.write("text.wasm", "no code"), "text.wasm cannot be run: the file is not Wasm"),
        (world.folder().join("nowhere.wasm"), "nowhere.wasm cannot be read: "),
        (world.folder().to_owned(), "cannot be read: it is not a regular file"),
    ] {
        let error = refused(&host, "changeling-game", &file);
        assert!(error.starts_with("changeling-game is not swapped: ") && error.contains(reason), "{error}");
        assert_eq!(client.ask("recall"), "the way", "after {reason}");
    }
    let error = refused(&host, "changeling-thinker", &helpful_file("hostile-thinker"));
    assert!(
        error.contains("it imports wheelhouse:sim/entities@0.1.0, which it is not granted; add \"entities\""),
        "{error}"
    );
    let error = refused(&host, "nobody", &version(&world, "game", "2"));
    assert!(error.contains("there is no guest \"nobody\"; the configuration has changeling-game, "), "{error}");
    let status = host.status();
    assert_eq!((&status["swaps"]["done"], &status["swaps"]["refused"]), (&0.into(), &12.into()));
    assert_eq!(history(&host, "changeling-game"), [(1, "running".to_owned())]);
    assert_eq!(client.ask("n 1"), "n 1 1");
    host.stop();
}

fn helpful_file(package: &str) -> std::path::PathBuf {
    wheelhouse_tests::tests_folder().join(format!("guests/build/{package}.wasm"))
}

#[test]
fn repeating_timers_and_events_keep_their_phase_over_many_swaps_and_single_ones_happen_once() {
    let world = World::new(&config());
    let host = world.serve();
    let mut client = host.connect();
    for round in 0..20 {
        assert_eq!(client.ask("later 3"), "later 3");
        swap(&host, "changeling-game", &version(&world, "game", &(round % 2 + 2).to_string()));
    }
    let told = client.ask_until_it("report", "every single one has happened", |report| {
        report.contains("once_set=60 once_timers=60 once_events=60")
    });
    // Begun anew at each swap, they would have lost half an interval each time.
    let [ticks, ticks_due, tocks, tocks_due] =
        ["ticks", "ticks_due", "tocks", "tocks_due"].map(|name| reported_in(&told, name));
    assert!(ticks_due.abs_diff(ticks) <= 1, "{told}");
    assert!(tocks_due.abs_diff(tocks) <= 1, "{told}");
    host.stop();
}

fn reported_in(report: &str, name: &str) -> u64 {
    let value = report.split(' ').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
    value.expect("it is in the report").parse().expect("a number")
}

#[test]
fn what_is_scheduled_while_a_state_is_restored_happens_once_and_not_at_all_where_the_swap_is_refused() {
    let world = World::new(&config());
    let host = world.serve();
    let mut client = host.connect();
    swap(&host, "changeling-game", &version(&world, "game", "2 restore:schedule"));
    client
        .ask_until_it("report", "both have happened", |report| report.contains("restored_timers=1 restored_events=1"));
    // Long enough for another that nobody should have set.
    client.ask("later 1");
    client.ask_until_it("report", "what was set later has happened", |report| {
        report.contains("once_timers=1 once_events=1")
    });
    assert_eq!((reported(&mut client, "restored_timers"), reported(&mut client, "restored_events")), (1, 1));
    host.stop();
}

#[test]
fn code_that_traps_on_the_third_packet_goes_without_a_packet_lost_and_the_old_comes_back_with_its_memory() {
    let world = World::new(&config());
    let host = world.serve();
    let mut client = host.connect();
    client.ask("remember the way");
    swap(&host, "changeling-game", &version(&world, "game", "2 third"));
    // The third packet of each instance fails, and is handled all the same: by a fresh instance, and in the end by the old
    // code.
    for (number, by) in [(1, 2), (2, 2), (3, 2), (4, 2), (5, 1), (6, 1)] {
        assert_eq!(client.ask(format!("n {number}")), format!("n {number} {by}"));
    }
    host.log().wait_for(&["ERROR", "new code has failed in its probation", "changeling-game"]);
    assert_eq!(client.ask("recall"), "the way");
    let status = host.wait_until("it is entered", |status| status["swaps"]["returned"] == 1);
    assert_eq!(guest(&status, "changeling-game")["generation"], 1);
    let generations = history(&host, "changeling-game");
    assert_eq!(generations[0], (1, "running".to_owned()));
    assert!(generations[1].1.starts_with("on-packet: wasm trap"), "{generations:?}");
    host.stop();
}

#[test]
fn a_thinker_that_fails_after_its_trial_goes_and_its_npcs_remember_what_they_did() {
    let world = World::new(&config());
    let host = world.serve();
    let mut client = host.connect();
    client.ask("herd 20");
    client.ask_until_it("report", "all have said something", |report| report.contains("npcs=20"));
    swap(&host, "changeling-thinker", &version(&world, "thinker", "2"));
    swap(&host, "changeling-thinker", &version(&world, "thinker", "3 third"));
    host.log().wait_for(&["ERROR", "new code has failed in its probation", "changeling-thinker"]);
    let status = host.wait_until("it is entered", |status| status["swaps"]["returned"] == 1);
    assert_eq!(guest(&status, "changeling-thinker")["generation"], 2);
    let thinks = status["npcs"]["thinks"].as_u64();
    host.wait_until("they think", |status| status["npcs"]["thinks"].as_u64() > thinks.map(|thinks| thinks + 40));
    host.stop();
}

#[test]
fn tasks_that_run_end_on_the_old_code_and_new_ones_run_the_new() {
    let world = World::new(&config());
    let host = world.serve();
    let mut client = host.connect();
    client.send("start changeling-step 2000");
    client.send("start changeling-job 2000");
    host.wait_until("both run", |status| status["running_tasks"].as_array().is_some_and(|tasks| tasks.len() == 2));
    swap(&host, "changeling-step", &version(&world, "step", "2"));
    swap(&host, "changeling-job", &version(&world, "job", "2"));
    assert_eq!([client.receive(), client.receive()], ["ended 1", "ended 1"]);
    assert_eq!(client.ask("start changeling-step 2"), "ended 2");
    assert_eq!(client.ask("start changeling-job 2"), "ended 2");
    swap(&host, "changeling-step", &version(&world, "step", "3 start:trap"));
    for _ in 0..2 {
        assert!(client.ask("start changeling-step 2").contains("wasm trap"));
    }
    assert_eq!(client.ask("start changeling-step 2"), "ended 2", "the code before is back");
    host.stop();
}

#[test]
fn an_operator_goes_back_step_by_step_and_a_restart_runs_what_ran_last() {
    let world = World::new(&config());
    let host = world.serve();
    let mut client = host.connect();
    for mark in ["2", "3"] {
        swap(&host, "changeling-game", &version(&world, "game", mark));
    }
    let again = swap(&host, "changeling-game", &version(&world, "game", "3"));
    assert_eq!(again["notes"][0], "generation 3 is this very file; nothing was done");
    assert_eq!(client.ask("n 1"), "n 1 3");
    assert_eq!(host.command(&["swap", "--back", "changeling-game"])["generation"], 2);
    assert_eq!(client.ask("n 2"), "n 2 2");
    host.stop();

    let host = world.serve();
    let mut client = host.connect();
    assert_eq!(client.ask("n 1"), "n 1 2", "what ran last, though the configuration names another file");
    assert_eq!(host.command(&["swap", "--back", "changeling-game"])["generation"], 1);
    assert_eq!(client.ask("n 2"), "n 2 1");
    let error = host.failure_of(&["swap", "--back", "changeling-game"]);
    assert!(error.contains("there is nothing to go back to"), "{error}");
    let expected = [(1, "running"), (2, "taken-back"), (3, "taken-back")];
    assert_eq!(history(&host, "changeling-game"), expected.map(|(number, fate)| (number, fate.to_owned())));
    host.stop();
}

#[test]
fn a_game_that_was_refused_or_given_up_runs_when_it_is_swapped_for_one_that_can() {
    let world = World::new(&Config::new());
    let file = world.write("game.wasm", "no code");
    world.configure(&Config::new().guest(Guest::new("changeling-game", "game", file)));
    let host = world.serve();
    assert_eq!(guest(&host.status(), "changeling-game")["state"], "refused");
    swap(&host, "changeling-game", &version(&world, "game", "2"));
    let mut client = host.connect();
    assert_eq!(client.ask("n 1"), "n 1 2");
    client.ask_until_it("report", "its timer and its event repeat", |report| {
        reported_in(report, "ticks") > 1 && reported_in(report, "tocks") > 1
    });
    host.stop();

    world.configure(&Config::new().guest(hostile("game", "game").misbehave("panic", "timer")).guest(game()));
    let host = world.serve();
    host.wait_until("it is disabled", |status| guest(status, "game")["state"] == "disabled");
    swap(&host, "game", &version(&world, "game", "3"));
    assert_eq!(guest(&host.status(), "game")["state"], "running");
    assert_eq!(host.connect().ask("n 1"), "n 1 3");
    host.stop();
}

/// A world with a service under the name `counter`, which the game asks.
fn with_counter() -> Config {
    let counter = helpful("changeling-service", "service").named("counter").key("start", true);
    Config::new().guest(game()).guest(counter)
}

#[test]
fn a_service_that_fails_on_new_code_goes_back_and_keeps_its_name_its_handle_and_its_state() {
    let world = World::new(&with_counter());
    let host = world.serve();
    let mut client = host.connect();
    let handle = |host: &Host| {
        let services = host.command(&["services"]);
        let list = services["list"].as_array().expect("a list").clone();
        list.into_iter().find(|it| it["guest"] == "counter").expect("it is there")["handle"].clone()
    };
    let before = handle(&host);
    assert_eq!(client.ask("ask 1"), "a 1 1");
    swap(&host, "counter", &version(&world, "service", "2 third"));
    assert_eq!(client.ask("ask 2"), "a 2 2");
    assert_eq!(client.ask("ask 3"), "a 3 3");
    let failed = client.ask("ask 4");
    assert!(failed.starts_with("a 4 error ServiceError::Failed(") && failed.contains("wasm trap"), "{failed}");
    assert_eq!(client.ask("ask 5"), "a 5 2", "as it was when it was swapped, and one more");
    assert_eq!(handle(&host), before);
    assert_eq!(guest(&host.status(), "counter")["generation"], 2, "one failure is not enough for all");
    host.stop();
}

#[test]
fn a_guest_whose_services_fail_too_often_on_new_code_is_back_on_the_old_for_those_that_come() {
    let world = World::new(&with_counter().set("swap.max_failures", 1));
    let host = world.serve();
    let mut client = host.connect();
    swap(&host, "counter", &version(&world, "service", "2 third"));
    for number in 1..=2 {
        client.ask(format!("ask {number}"));
    }
    assert!(client.ask("ask 3").contains("wasm trap"));
    let status = host.wait_until("it is entered", |status| status["swaps"]["returned"] == 1);
    assert_eq!(guest(&status, "counter")["generation"], 1);
    assert_eq!(client.ask("ask 4"), "a 4 1");
    assert!(history(&host, "counter")[1].1.starts_with("handle: wasm trap"));
    host.stop();
}

#[test]
fn what_a_service_has_in_hand_is_finished_before_it_is_swapped_and_hurried_where_that_takes_long() {
    let world = World::new(&with_counter().set("swap.drain_ms", 300));
    let host = world.serve();
    let mut client = host.connect();
    for (number, milliseconds) in [(1, 100), (3, 60_000)] {
        client.send(format!("ask {number} {milliseconds}"));
        // It waits in the mailbox until the one before is done, which is after the swap.
        client.send(format!("ask {}", number + 1));
        host.wait_until("it is in hand", |status| status["services"]["messages"].is_u64());
        let swapped = swap(&host, "counter", &version(&world, "service", &(number + 1).to_string()));
        assert_eq!(swapped["notes"].as_array().map(Vec::len), Some(0), "{swapped}");
        assert_eq!(client.receive(), format!("a {number} {number}"));
        assert_eq!(client.receive(), format!("a {} {}", number + 1, number + 1));
    }
    host.stop();
}

#[test]
fn a_configured_file_that_cannot_be_run_gives_way_to_what_ran_last() {
    let world = World::new(&Config::new());
    let file = version(&world, "game", "1");
    world.configure(&Config::new().guest(Guest::new("changeling-game", "game", &file)));
    let host = world.serve();
    assert_eq!(host.connect().ask("n 1"), "n 1 1");
    host.stop();
    std::fs::write(&file, "no code").unwrap();
    let host = world.serve();
    host.log().wait_for(&["ERROR", "the guest is refused", "the file is not Wasm"]);
    host.log().wait_for(&["ERROR", "a guest runs what it ran last in place of that file", "generation=1"]);
    assert_eq!(host.connect().ask("n 1"), "n 1 1");
    host.stop();
}
