//! Guests that lose their instance over an event, or are disabled while their events are due.

use serde_json::json;
use wheelhouse::guest::GuestState;

use crate::player::EventId;
use crate::world::{World, game};

#[test]
fn events_of_a_guest_that_is_disabled_wait_for_a_later_run_and_others_run() {
    let mut world = World::of(vec![game("ledger", "ledger"), game("other", "ledger")]);
    world.config.gate.guest = Some("other".to_owned());
    let run = world.start();
    let mut client = run.connect();
    let trap = client.schedule("after 10000 trap x");
    let waiting: Vec<EventId> =
        (0..3).map(|number| client.schedule(&format!("after {} bump waited", 10_000 + number))).collect();
    let repeating = client.schedule("every 4000 coalesce note tick");
    drop(client);
    run.stop().expect("everything is saved");

    // In this run one trap is too much.
    world.config.gate.guest = Some("ledger".to_owned());
    world.config.guest.max_failures = 1;
    let mut run = world.start();
    let mut client = run.connect();
    let own: Vec<EventId> = (0..3).map(|number| client.schedule(&format!("after {} note x", 9_999 + number))).collect();
    run.pass(30, 500);
    run.wait_for_runs(&mut client, own.len());
    assert_eq!(client.order(), own, "another guest's events are in nobody's way");
    let status = run.wait_until("the other is disabled", |status| {
        status.guests.iter().any(|guest| guest.name == "other" && guest.state == GuestState::Disabled)
    });
    assert_eq!(status.events.counts.fired, 3 + 2, "the ledger's, and twice what repeats before the trap");
    let listed: Vec<_> = run.control().events(wheelhouse::admin::EventFilter::default(), None).collect();
    let listed = listed.into_iter().collect::<Result<Vec<_>, _>>().expect("the host lists them").concat();
    assert_eq!(listed.len(), 5, "{listed:#?}");
    drop(client);
    run.stop().expect("everything is saved");

    world.config.gate.guest = Some("other".to_owned());
    world.config.guest.max_failures = 100;
    let mut run = world.start();
    let mut client = run.connect();
    run.pass(2, 50);
    let runs = run.wait_for_runs(&mut client, 3 + 3);
    assert!(runs.iter().all(|run| run.count == 1), "{runs:?}");
    assert_eq!(client.count("waited"), 3);
    let order: Vec<EventId> = client.order().into_iter().filter(|id| id.sequence != repeating.sequence).collect();
    assert_eq!(order, waiting);
    assert!(client.ask(format!("get {}", trap.words())).contains(" trap once "), "it is tried again and again");
    crate::player::assert_no_drift(&runs, repeating, 4000);
    run.stop().expect("everything is saved");
}

#[test]
fn an_event_that_is_cancelled_by_the_init_after_its_trap_stays_cancelled() {
    let mut ledger = game("ledger", "ledger");
    ledger.config.insert("cancel_when_replaced".to_owned(), json!("trap"));
    let world = World::of(vec![ledger]).configured(|config| config.events.retry_ms = 100);
    let mut run = world.start();
    let mut client = run.connect();
    client.schedule("after 100 trap first");
    client.schedule("after 100000 trap second");
    client.schedule("after 200 bump other");
    let kept = client.schedule("after 100000 note kept");
    run.pass(2, 100);
    assert_eq!(run.wait_for_runs(&mut client, 1).len(), 1);
    run.pass(20, 100);
    let status = run.status();
    assert_eq!(status.guests[0].failures, 1, "it trapped once, and was not tried again");
    assert_eq!((client.pending(), client.count("other")), (1, 1));
    let counts = status.events.counts;
    assert_eq!((counts.pending, counts.parked, counts.fired), (1, 0, 1), "{counts:?}");
    drop(client);
    run.stop().expect("everything is saved");

    let mut run = world.start();
    let mut client = run.connect();
    run.pass(20, 100);
    assert_eq!((client.pending(), run.status().events.counts.pending), (1, 1), "after a restart, too");
    assert_ne!(client.ask(format!("get {}", kept.words())), "none");
    assert_eq!(run.status().guests[0].failures, 0);
    run.stop().expect("everything is saved");
}

#[test]
fn a_repeating_event_that_is_cancelled_by_the_init_after_its_trap_stays_cancelled() {
    let mut ledger = game("ledger", "ledger");
    ledger.config.insert("cancel_when_replaced".to_owned(), json!("trap"));
    let world = World::of(vec![ledger]).configured(|config| config.events.retry_ms = 100);
    let mut run = world.start();
    let mut client = run.connect();
    client.schedule("every 100 coalesce trap again");
    run.pass(20, 100);
    let status = run.status();
    assert_eq!((client.pending(), status.events.counts.pending, status.guests[0].failures), (0, 0, 1));
    run.stop().expect("everything is saved");
}
