//! The example world, as a newcomer meets it.

use wheelhouse_tests::{Config, Host, World, example, guest, wheelhouse, workspace};

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
        assert!(output.status.success() && told.ends_with("this host runs it\n"), "{told}");
    }
}
