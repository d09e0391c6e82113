//! The example world, as a newcomer meets it.

use std::thread;
use std::time::Instant;

use wheelhouse_tests::{Client, Config, Host, PATIENCE, PAUSE, World, example, guest, wheelhouse, workspace};

fn meadow() -> Host {
    let config = Config::new()
        .guest(example("rules", "game"))
        .guest(example("sheep", "thinker"))
        .guest(example("wolf", "thinker"))
        .guest(example("terrain", "job"))
        .guest(example("census", "step-task"));
    World::new(&config).serve()
}

#[test]
fn players_walk_look_and_talk_among_npcs_that_think() {
    let host = meadow();
    let (mut ann, mut ben) = (host.connect(), host.connect());
    let echo = host.echo();
    assert!(ann.ask("look").starts_with("you "));
    assert!(ben.ask_for("walk 1 0", "at ").starts_with("at "));
    ann.send("say hello");
    assert!(ann.receive_until("").contains("hello"));
    host.wait_until("NPCs think", |status| status["npcs"]["thinks"].as_u64() > Some(50));
    let status = host.status();
    assert!(status["npcs"]["active"].as_u64() > Some(0));
    for name in ["rules", "sheep", "wolf", "terrain", "census"] {
        assert_eq!(guest(&status, name)["failures"], 0, "{name}");
        assert_eq!(guest(&status, name)["state"], "running", "{name}");
    }
    echo.finish("life on the meadow");
    host.stop();
}

#[test]
fn a_job_makes_terrain_and_a_step_task_counts_while_players_play() {
    let host = meadow();
    let mut client = host.connect();
    let echo = host.echo();
    client.send("terrain 7 64");
    client.receive_until("terrain");
    client.send("census");
    client.receive_until("census");
    host.wait_until("both are done", |status| status["tasks"]["finished"] == 2);
    echo.finish("terrain and census");
    assert_eq!(host.status()["tasks"]["failed"], 0);
    host.stop();
}

#[test]
fn every_example_guest_passes_the_check() {
    for name in ["rules", "sheep", "wolf", "terrain", "census"] {
        let file = workspace().join(format!("guests/build/{name}.wasm"));
        let output = wheelhouse().args(["guest", "check"]).arg(file).output().expect("the program can be started");
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && told.contains("this host runs it"), "{told}");
    }
}

/// Meadow without animals, in which a stage of a crop and a battle take so many seconds.
fn fields(ripen_s: u32, battle_s: u32) -> World {
    let rules = example("rules", "game").set("sheep", 0).set("wolves", 0);
    World::new(&Config::new().guest(rules.set("ripen_s", ripen_s).set("battle_s", battle_s)))
}

/// Waits until the chronicle of whoever plays has so many lines, and answers it.
fn wait_for_chronicle(client: &mut Client, lines: usize) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        let chronicle = client.ask_for("chronicle", "the chronicle of ");
        let head = chronicle.lines().next().unwrap_or_default();
        if head.ends_with(&format!(": {lines}")) {
            return chronicle;
        }
        assert!(Instant::now() < until, "{lines} lines are waited for in {chronicle:?}");
        thread::sleep(PAUSE);
    }
}

#[test]
fn a_crop_ripens_although_the_host_is_killed_in_between() {
    let world = fields(1, 60);
    let host = world.serve();
    let mut ann = host.connect();
    assert_eq!(ann.ask("name Ann"), "welcome Ann, at 40 40, harvest 0");
    let crop = ann.ask("plant").replace("planted ", "");
    assert_eq!(ann.ask("plant"), "something grows here already");
    assert_eq!(ann.ask("harvest"), "nothing is ripe here");
    assert_eq!(ann.ask("walk 1 1"), "at 41 41");
    host.kill();

    let host = world.serve();
    // Whoever comes stands where the crop is, and sees nobody else: Ann is not left standing beside it.
    let mut somebody = host.connect();
    let ripe = format!("\ncrop {crop} 40 40 ripe");
    let view = somebody.ask_until_it("look", "a ripe crop", |view| view.ends_with(&ripe));
    assert_eq!(view.lines().count(), 2, "{view}");
    assert_eq!(somebody.ask("name Ann"), "welcome back Ann, at 41 41, harvest 0");
    assert_eq!(somebody.ask("harvest"), format!("harvested {crop}, harvest 1"));
    assert_eq!(somebody.ask("harvest"), "nothing is ripe here");
    host.kill();

    let host = world.serve();
    let mut ann = host.connect();
    assert_eq!(ann.ask("name Ann"), "welcome back Ann, at 41 41, harvest 1");
    assert_eq!(ann.ask("look").lines().count(), 1, "the field is empty");
    assert_eq!(guest(&host.status(), "rules")["failures"], 0);
    host.stop();
}

#[test]
fn who_planted_a_crop_hears_when_it_is_ripe() {
    let host = fields(1, 60).serve();
    let mut ann = host.connect();
    ann.ask("name Ann");
    let crop = ann.ask("plant").replace("planted ", "");
    assert_eq!(ann.receive(), format!("your crop {crop} is ripe"));
    host.stop();
}

#[test]
fn a_battle_is_settled_once_although_the_host_is_killed_before() {
    let world = fields(60, 1);
    let host = world.serve();
    let (mut ann, mut ben) = (host.connect(), host.connect());
    assert!(ben.ask("name Ben").starts_with("welcome Ben"));
    assert!(ann.ask("name Ann").starts_with("welcome Ann"));
    assert_eq!(ann.ask("challenge Cid"), "nobody knows Cid");
    assert_eq!(ann.ask("challenge Ben"), "you march against Ben, for 1 s");
    assert_eq!(ann.ask("challenge wolves"), "you are on the march already");
    assert_eq!(ben.receive(), "Ann marches against you");
    host.kill();

    // It is settled while neither of them is there.
    let host = world.serve();
    host.wait_until("the battle is settled", |status| status["events"]["pending"] == 0);
    let mut ann = host.connect();
    assert!(ann.ask("name Ann").starts_with("welcome back Ann"));
    let told = wait_for_chronicle(&mut ann, 1);
    assert!(told.ends_with("\nAnn beat Ben") || told.ends_with("\nBen beat Ann"), "{told}");
    host.kill();

    let host = world.serve();
    let mut ben = host.connect();
    assert!(ben.ask("name Ben").starts_with("welcome back Ben"));
    let bens = ben.ask("chronicle");
    assert_eq!(bens.lines().nth(1), told.lines().nth(1), "both find the same in the chronicle");
    assert_eq!(bens.lines().count(), 2);
    host.stop();
}

#[test]
fn a_battle_that_was_called_off_is_not_settled() {
    let host = fields(60, 60).serve();
    let mut ann = host.connect();
    assert_eq!(ann.ask("challenge wolves"), "tell your name first: name NAME");
    ann.ask("name Ann");
    assert_eq!(ann.ask("retreat"), "you are on no march");
    assert_eq!(ann.ask("challenge wolves"), "you march against wolves, for 60 s");
    host.wait_until("the battle is to come", |status| status["events"]["pending"] == 1);
    assert_eq!(ann.ask("retreat"), "you retreat");
    host.wait_until("nothing is to come", |status| status["events"]["pending"] == 0);
    assert_eq!(ann.ask("chronicle"), "the chronicle of Ann: 0");
    host.stop();
}

#[test]
fn one_name_is_played_by_one_client_at_a_time() {
    let host = fields(60, 60).serve();
    let mut ann = host.connect();
    assert_eq!(ann.ask("name Ann"), "welcome Ann, at 40 40, harvest 0");
    let mut other = host.connect();
    assert_eq!(ann.ask("name Eve"), "you are Ann already");
    assert_eq!(other.ask("name Ann"), "Ann is here already");
    assert_eq!(ann.ask("walk 2 0"), "at 42 40");
    drop(ann);
    other.ask_until_it("name Ann", "Ann is free", |answer| answer == "welcome back Ann, at 42 40, harvest 0");
    host.stop();
}
