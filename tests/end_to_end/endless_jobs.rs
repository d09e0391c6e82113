//! A job that never ends uses only what the loop leaves over, and can be cancelled.

use wheelhouse_tests::{Client, Config, Host, World, hostile};

fn world() -> Host {
    let config = Config::new().guest(hostile("game", "game")).guest(hostile("hostile-job", "job"));
    World::new(&config).serve()
}

fn start_endless(client: &mut Client) -> String {
    client.ask_for("start hostile-job loop", "task ").replace("task ", "")
}

#[test]
fn it_runs_in_slices_and_its_game_is_answered_meanwhile() {
    let host = world();
    let mut client = host.connect();
    start_endless(&mut client);
    let before = host.wait_until("it has had slices", |status| status["tasks"]["steps"].as_u64() > Some(20));
    let echo = host.echo();
    let enough = before["tasks"]["steps"].as_u64().map(|steps| steps + 100);
    let after = host.wait_until("it goes on", |status| status["tasks"]["steps"].as_u64() > enough);
    echo.finish("a job that never ends");
    // A slice keeps to its length, unless another program takes the processor away meanwhile.
    let over_budget = after["tasks"]["over_budget"].as_u64().expect("a number");
    let steps = after["tasks"]["steps"].as_u64().expect("a number");
    assert!(over_budget * 10 <= steps, "{over_budget} of {steps} slices were too long");
    assert_eq!(after["tasks"]["failed"], 0);
    host.stop();
}

#[test]
fn several_share_what_is_left_and_honest_work_gets_done_between_them() {
    let host = world();
    let mut client = host.connect();
    (0..5).for_each(|_| _ = start_endless(&mut client));
    let echo = host.echo();
    client.send("start hostile-job sum 1000000");
    assert!(client.receive_until("ended ").contains("finished 1000000 rounds"));
    echo.finish("five jobs that never end");
    host.stop();
}

#[test]
fn its_owner_cancels_it() {
    let host = world();
    let mut client = host.connect();
    let id = start_endless(&mut client);
    host.wait_until("it has had a slice", |status| status["tasks"]["steps"].as_u64() > Some(0));
    client.send(format!("cancel {id}"));
    assert_eq!(client.receive_until("cancelled"), "cancelled true");
    assert_eq!(client.receive_until("ended"), format!("ended {id} cancelled"));
    let status = host.wait_until("it is gone", |status| status["tasks"]["queued"] == 0);
    assert_eq!(status["tasks"]["failed"], 0, "a cancelled task has not failed");
    assert_eq!(client.ask(format!("cancel {id}")), "cancelled false");
    host.stop();
}

#[test]
fn an_operator_cancels_it_and_its_owner_hears_of_that() {
    let host = world();
    let mut client = host.connect();
    let id = start_endless(&mut client);
    let order = format!("/v1/tasks/{id}/cancel");
    assert_eq!(host.order(&order).0, 200);
    assert_eq!(client.receive_until("ended"), format!("ended {id} cancelled"));
    let (status, body) = host.order(&order);
    assert_eq!((status, &body["error"]), (404, &format!("there is no task {id}: it has ended, or never was").into()));
    host.stop();
}

#[test]
fn the_host_stops_although_it_runs() {
    let host = world();
    start_endless(&mut host.connect());
    host.wait_until("it has had a slice", |status| status["tasks"]["steps"].as_u64() > Some(0));
    host.stop();
}
