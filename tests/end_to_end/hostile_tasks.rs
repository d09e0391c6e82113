//! Step tasks and jobs that misbehave: the task ends, its owner hears why, and nobody waits for it.

use wheelhouse_tests::{Config, Host, World, guest, hostile};

fn world() -> Host {
    world_with(Config::new())
}

fn world_with(config: Config) -> Host {
    let config = config
        .guest(hostile("game", "game"))
        .guest(hostile("hostile-step", "step-task"))
        .guest(hostile("hostile-job", "job"));
    World::new(&config).serve()
}

/// A task that fails in `call` with `error`, which its owner hears too.
fn crashes(task: &str, harm: &str, call: &str, error: &str) {
    let config = if harm == "bomb" { Config::new().with_little_memory() } else { Config::new() };
    let host = world_with(config);
    let mut client = host.connect();
    let echo = host.echo();
    let id = client.ask_for(format!("start {task} {harm}"), "task ").replace("task ", "");
    let end = client.receive_until("ended ");
    assert!(end.starts_with(&format!("ended {id} crashed ")) && end.contains(error), "{end}");
    host.wait_for_failure(task, call, error);
    echo.finish(&format!("{harm} in {call} of {task}"));
    let status = host.status();
    assert_eq!(guest(&status, task)["failures"], 1);
    assert_eq!((&status["tasks"]["failed"], &status["tasks"]["queued"]), (&1.into(), &0.into()));
    assert_eq!(guest(&status, "game")["failures"], 0);
    let harmless = if task == "hostile-job" { "sum 1000" } else { "steps 3" };
    client.send(format!("start {task} {harmless}"));
    assert!(client.receive_until("ended ").contains("finished"), "the next task of the same guest does its work");
    host.stop();
}

#[test]
fn a_step_that_loops_is_stopped_at_its_deadline() {
    crashes("hostile-step", "loop", "step", "deadline of 50 ms");
}

#[test]
fn a_step_task_that_loops_in_its_start_is_stopped_at_its_deadline() {
    crashes("hostile-step", "start:loop", "start", "deadline of 50 ms");
}

#[test]
fn a_step_that_takes_all_memory() {
    crashes("hostile-step", "bomb", "step", "wasm trap");
}

#[test]
fn a_step_that_recurses_deeply() {
    crashes("hostile-step", "recurse", "step", "call stack exhausted");
}

#[test]
fn a_step_that_traps() {
    crashes("hostile-step", "unreachable", "step", "`unreachable` instruction");
}

#[test]
fn a_job_that_takes_all_memory() {
    crashes("hostile-job", "bomb", "run", "wasm trap");
}

#[test]
fn a_job_that_recurses_deeply() {
    crashes("hostile-job", "recurse", "run", "call stack exhausted");
}

#[test]
fn a_job_that_traps() {
    crashes("hostile-job", "unreachable", "run", "`unreachable` instruction");
}

#[test]
fn a_job_that_hands_over_too_much() {
    crashes("hostile-job", "long-log", "run", "too much data");
}

/// What the owner of a task hears when it ends otherwise than well.
fn ends(task: &str, harm: &str, outcome: &str) {
    let host = world();
    let mut client = host.connect();
    let echo = host.echo();
    client.send(format!("start {task} {harm}"));
    let end = client.receive_until("ended ");
    assert!(end.contains(outcome), "{end}");
    echo.finish(&format!("{harm} of {task}"));
    host.wait_until("it is counted as failed", |status| status["tasks"]["failed"] == 1);
    host.stop();
}

#[test]
fn a_task_that_gives_up_is_no_crash() {
    ends("hostile-step", "fail", "failed this task fails as it was told");
    ends("hostile-step", "start:fail", "failed this task refuses to start as it was told");
    ends("hostile-job", "fail", "failed this job fails as it was told");
}

#[test]
fn a_result_or_a_message_of_16_mib_is_not_passed_on() {
    ends("hostile-step", "big-result", "crashed ");
    ends("hostile-job", "big-result", "crashed ");
    ends("hostile-step", "big-error", "");
    ends("hostile-job", "big-error", "");
}

#[test]
fn a_step_task_cannot_change_the_world() {
    let host = world();
    let mut client = host.connect();
    client.send("start hostile-step write");
    let end = client.receive_until("ended ");
    assert!(end.contains("ReadOnly") && !end.contains("Ok("), "{end}");
    assert_eq!(client.ask("count"), "entities 1 kv 0 timers 0");
    host.stop();
}

#[test]
fn a_task_guest_that_always_fails_is_disabled() {
    let host = world();
    let mut client = host.connect();
    for _ in 0..10 {
        client.send("start hostile-step unreachable");
        client.receive_until("ended ");
    }
    host.log().wait_for(&["the guest is disabled", "guest=\"hostile-step\""]);
    let status = host.wait_until("it is disabled", |status| guest(status, "hostile-step")["state"] == "disabled");
    assert_eq!(guest(&status, "hostile-step")["failures"], 10);
    assert!(client.ask("start hostile-step steps 1").starts_with("no task"));
    client.send("start hostile-job sum 10");
    assert!(client.receive_until("ended ").contains("finished"), "other guests' tasks run");
    host.stop();
}

#[test]
fn steps_over_the_soft_budget_are_logged_with_the_tasks_name_and_counted() {
    let host = world();
    let mut client = host.connect();
    let echo = host.echo();
    let id = client.ask_for("start hostile-step slow 20", "task ").replace("task ", "");
    host.log().wait_for(&["soft budget", &format!("hostile-step {id}")]);
    host.wait_until("it is counted", |status| status["tasks"]["over_budget"].as_u64() > Some(3));
    echo.finish("steps of 20 ms");
    assert_eq!(client.ask_for(format!("cancel {id}"), "cancelled"), "cancelled true");
    host.stop();
}

#[test]
fn a_task_of_a_guest_that_there_is_not_is_refused() {
    let host = world();
    let mut client = host.connect();
    assert!(client.ask("start nobody x").contains("NoSuchGuest"));
    assert_eq!(client.ask("cancel 99"), "cancelled false");
    host.stop();
}
