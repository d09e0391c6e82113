//! Events whose handler fails: tried again with growing pauses, parked in the end, where an operator decides; and never
//! in the way of others.

use serde_json::Value;
use wheelhouse_tests::{Config, Host, World, guest, ledger};

/// The pause after the first failure.
const RETRY_MS: u64 = 60;

fn world(max_attempts: u32) -> World {
    let config = Config::new().set("events.retry_ms", RETRY_MS).set("events.max_attempts", max_attempts);
    World::new(&config.guest(ledger()))
}

/// Waits until as many events are parked, and answers them.
fn wait_for_parked(host: &Host, count: usize) -> Vec<Value> {
    host.wait_until("the events are parked", |status| status["events"]["parked"] == count);
    let parked = host.events(&["--parked"]);
    assert_eq!(parked.len(), count, "{parked:?}");
    parked
}

#[test]
fn an_event_that_refuses_is_tried_again_with_growing_pauses() {
    let host = world(5).serve();
    let mut client = host.connect();
    let id = client.schedule("after 0 fail 3");
    let runs = client.wait_for_runs(1);
    assert_eq!((runs[0].id, runs[0].count), (id, 1), "its id is that of the first attempt");
    assert!(runs[0].late_ms >= (1 + 2 + 4) * RETRY_MS, "three pauses, each twice as long: {runs:?}");
    let status = host.status();
    assert_eq!((&status["events"]["retried"], &status["events"]["parked"]), (&3.into(), &0.into()));
    assert_eq!(guest(&status, "ledger")["failures"], 0, "a refusal is no failure of the guest");
    host.stop();
}

#[test]
fn an_event_that_traps_is_tried_again_in_a_fresh_instance() {
    let host = world(5).serve();
    let mut client = host.connect();
    let echo = host.echo();
    client.schedule(&format!("after 0 late {RETRY_MS}"));
    assert_eq!(client.wait_for_runs(1)[0].count, 1);
    host.wait_for_failure("ledger", "on-event", "`unreachable` instruction");
    echo.finish("an event that traps");
    host.stop();
}

#[test]
fn an_event_that_never_succeeds_is_parked_and_others_run() {
    let host = world(3).serve();
    let mut client = host.connect();
    let ids: Vec<_> =
        ["refuse", "trap", "loop"].iter().map(|kind| client.schedule(&format!("after 0 {kind} x"))).collect();
    let other = client.schedule("after 1 bump others");
    assert_eq!(client.wait_for_runs(1)[0].id, other);
    let parked = wait_for_parked(&host, 3);
    let errors = ["this event refuses", "unreachable", "deadline of 50 ms"];
    for ((event, id), error) in parked.iter().zip(&ids).zip(errors) {
        assert_eq!(
            (&event["id"], &event["guest"], &event["attempts"]),
            (&id.dashed().into(), &"ledger".into(), &3.into())
        );
        assert!(event["error"].as_str().expect("a failed event has an error").contains(error), "{event}");
        assert_eq!(&host.command(&["events", "show", &id.dashed()]), event);
        let line = client.ask(format!("get {}", id.words()));
        assert!(line.contains(" once 3 parked x"), "its guest sees it too: {line}");
    }
    client.schedule("after 0 bump others");
    client.wait_for_runs(2);
    assert_eq!(client.count("others"), 2, "a parked event is in nobody's way");
    host.stop();
}

#[test]
fn a_parked_event_runs_once_an_operator_lets_it() {
    let world = world(2);
    let host = world.serve();
    let mut client = host.connect();
    let id = client.schedule("after 0 fail 2");
    wait_for_parked(&host, 1);
    // It is still there after a restart, where it would not refuse any less: the count is in memory.
    host.stop();
    let host = world.serve();
    let mut client = host.connect();
    wait_for_parked(&host, 1);
    assert_eq!(host.command(&["events", "retry", &id.dashed()])["retried"], id.sequence);
    host.wait_until("it has failed twice again", |status| status["events"]["parked"] == 1);
    assert_eq!(client.runs(), []);
    host.command(&["events", "retry", &id.sequence.to_string()]);
    assert_eq!(client.wait_for_runs(1)[0].id, id);
    assert_eq!(host.events(&[]), Vec::<Value>::new());
    host.stop();
}

#[test]
fn an_operator_drops_and_cancels_events() {
    let world = world(2);
    let host = world.serve();
    let mut client = host.connect();
    let parked = client.schedule("after 0 refuse x");
    let waiting = client.schedule("after 3600000 note x");
    wait_for_parked(&host, 1);
    let line = host.failure_of(&["events", "drop", &waiting.dashed()]);
    assert!(line.contains("parked"), "only what is parked can be dropped: {line}");
    host.command(&["events", "drop", &parked.dashed()]);
    host.command(&["events", "cancel", &waiting.dashed()]);
    assert_eq!(host.events(&[]), Vec::<Value>::new());
    for command in ["show", "cancel", "retry", "drop"] {
        let line = host.failure_of(&["events", command, &waiting.dashed()]);
        assert!(line.contains(&waiting.sequence.to_string()), "{line}");
    }
    assert_eq!(client.ask("walk"), "pending 0");
    host.kill();
    let host = world.serve();
    assert_eq!(host.connect().ask("walk"), "pending 0", "what an operator was told is on disk");
    host.stop();
}

#[test]
fn what_a_failing_handler_scheduled_is_not_scheduled() {
    let host = world(2).serve();
    let mut client = host.connect();
    client.send("half note x");
    assert_eq!(client.ask("walk"), "pending 0");
    assert_eq!(client.count("half"), 0);
    // The same in an event: all that is left is the event itself.
    let id = client.schedule("after 0 half ledger");
    wait_for_parked(&host, 1);
    assert_eq!(client.ask("walk"), "pending 1");
    assert_eq!(client.pending(10, None), [format!("{} half once 2 parked ledger", id.words())]);
    assert_eq!((client.count("ledger"), client.runs().len()), (0, 0));
    host.stop();
}

#[test]
fn events_that_always_trap_are_parked_and_do_not_take_their_guest_along() {
    let host = world(5).serve();
    let mut client = host.connect();
    (0..4).for_each(|number| _ = client.schedule(&format!("after 1 trap {number}")));
    wait_for_parked(&host, 4);
    assert_eq!(guest(&host.status(), "ledger")["state"], "running", "four events and five attempts at each");
    assert_eq!(client.ask("ping x"), "pong x");
    host.stop();
}
