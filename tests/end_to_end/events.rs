//! Delayed events: scheduled, looked up, cancelled, listed; run once when they are due, also after a stop.

use wheelhouse_tests::{Config, EventId, World, assert_no_drift, hostile, ledger, wait_until_wall, wall_ms};

/// Longer than any test runs.
const HOUR_MS: u64 = 3_600_000;

fn world() -> World {
    World::new(&Config::new().patient().guest(ledger()))
}

#[test]
fn an_event_runs_once_with_what_it_was_scheduled_with() {
    let host = world().serve();
    let mut client = host.connect();
    let before_ms = wall_ms();
    let id = client.schedule("after 150 note hello there");
    assert!((before_ms + 150..=wall_ms() + 151).contains(&id.due_ms), "it is due 150 ms from now: {id:?}");
    let runs = client.wait_for_runs(1);
    assert!(wall_ms() >= id.due_ms, "it ran when it was due and not before");
    let [run] = &runs[..] else { panic!("it ran once: {runs:?}") };
    assert_eq!((run.id, run.count, run.kind.as_str(), run.payload.as_str()), (id, 1, "note", "hello there"));
    assert_eq!(run.missed, 0);
    assert!(run.late_ms <= wall_ms() - id.due_ms, "{run:?}");
    assert_eq!(client.ask(format!("get {}", id.words())), "none", "it is not pending any more");
    let status = host.status();
    assert_eq!((&status["events"]["fired"], &status["events"]["pending"]), (&1.into(), &0.into()));
    assert!(status["events"]["lateness_us"]["max"].as_u64().is_some(), "{status:#}");
    host.stop();
}

#[test]
fn an_event_for_a_time_in_the_past_runs_at_once() {
    let host = world().serve();
    let mut client = host.connect();
    client.schedule("at 1000 note long ago");
    assert_eq!(client.wait_for_runs(1)[0].payload, "long ago");
    host.stop();
}

#[test]
fn an_event_tells_a_client_who_is_connected() {
    let host = world().serve();
    let mut client = host.connect();
    let connection = client.ask("who").replace("you ", "");
    client.send(format!("after 50 tell {connection} it is time"));
    assert_eq!(client.receive_until("told"), "told it is time");
    host.stop();
}

#[test]
fn events_that_schedule_events_go_on_until_there_are_no_more() {
    let host = world().serve();
    let mut client = host.connect();
    client.schedule("after 0 chain 40 links");
    let runs = client.wait_for_runs(40);
    assert_eq!((runs.len(), client.count("links")), (40, 40));
    host.stop();
}

/// An event `after_ms` from now is looked up and cancelled; where it waits, in memory or on disk, makes no difference.
fn can_be_looked_up_and_cancelled(after_ms: u64) {
    let host = world().serve();
    let mut client = host.connect();
    let id = client.schedule(&format!("after {after_ms} note first"));
    let other = client.schedule(&format!("every {after_ms} catch-up note second"));
    assert_eq!(client.ask(format!("get {}", id.words())), format!("{} note once 0 waiting first", id.words()));
    let line = format!("{} note catch-up:{after_ms} 0 waiting second", other.words());
    assert_eq!(client.ask(format!("get {}", other.words())), line);
    assert_eq!(client.ask(format!("cancel {}", id.words())), "cancelled true");
    assert_eq!(client.ask(format!("cancel {}", id.words())), "cancelled false", "it is cancelled already");
    assert_eq!(client.ask(format!("get {}", id.words())), "none");
    assert_eq!(client.ask("cancel 1000 999999"), "cancelled false", "there never was one");
    assert_eq!(client.pending(10, None), [line]);
    assert_eq!(client.ask("cancel-kind note"), "cancelled 1");
    assert_eq!(client.ask("walk"), "pending 0");
    host.wait_until("none is counted", |status| status["events"]["pending"] == 0);
    host.stop();
}

#[test]
fn an_event_that_waits_in_memory_can_be_looked_up_and_cancelled() {
    can_be_looked_up_and_cancelled(30_000);
}

#[test]
fn an_event_that_waits_on_disk_can_be_looked_up_and_cancelled() {
    can_be_looked_up_and_cancelled(HOUR_MS);
}

/// Ten events, six of them at one time, in pages of eight.
fn are_listed_page_by_page(from_ms: u64) {
    let host = world().serve();
    let mut client = host.connect();
    let ids: Vec<EventId> = [5, 3, 5, 1, 5, 2, 5, 4, 5, 5]
        .iter()
        .map(|time| client.schedule(&format!("at {} note {time}", from_ms + time)))
        .collect();
    let mut in_order = ids.clone();
    in_order.sort_unstable();
    let line = |id: &EventId| format!("{} note once 0 waiting {}", id.words(), id.due_ms - from_ms);
    let expected: Vec<String> = in_order.iter().map(line).collect();

    let first = client.pending(8, None);
    assert_eq!(first, expected[..8]);
    let second = client.pending(8, Some(in_order[7]));
    assert_eq!(second, expected[8..]);
    assert_eq!(client.pending(8, Some(in_order[9])), Vec::<String>::new());
    // What was cancelled is still a place in the order.
    assert_eq!(client.ask(format!("cancel {}", in_order[7].words())), "cancelled true");
    assert_eq!(client.pending(8, Some(in_order[7])), expected[8..]);
    assert_eq!(client.ask("walk"), "pending 9");
    host.stop();
}

#[test]
fn events_that_wait_in_memory_are_listed_page_by_page() {
    are_listed_page_by_page(wall_ms() + 30_000);
}

#[test]
fn events_that_wait_on_disk_are_listed_page_by_page() {
    are_listed_page_by_page(wall_ms() + HOUR_MS);
}

#[test]
fn no_more_events_are_pending_than_the_limit() {
    let host = World::new(&Config::new().patient().set("events.max_pending", 3).guest(ledger())).serve();
    let mut client = host.connect();
    (0..3).for_each(|number| _ = client.schedule(&format!("after {HOUR_MS} note {number}")));
    // The handler refuses with the host's error, and answers nothing.
    client.send(format!("after {HOUR_MS} note 3"));
    assert_eq!(client.ask("walk"), "pending 3");
    assert_eq!(client.ask("cancel-kind note"), "cancelled 3");
    client.schedule(&format!("after {HOUR_MS} note 4"));
    host.stop();
}

/// Does something that must come to its end before the events that it schedules are due, with more and more time for it
/// until that was enough: how long a machine takes nobody knows. `attempt` is given how far ahead it may schedule.
fn before_they_are_due<T>(attempt: impl Fn(u64) -> (u64, T)) -> T {
    for ahead_ms in [500, 2000, 8000, 32_000] {
        let (due_ms, done) = attempt(ahead_ms);
        if wall_ms() < due_ms {
            return done;
        }
        println!("{ahead_ms} ms were not enough");
    }
    panic!("half a minute is not enough on this machine");
}

#[test]
fn events_that_came_due_during_a_stop_run_oldest_first() {
    let (world, mut ids, later, last_ms) = before_they_are_due(|ahead_ms| {
        let world = world();
        let host = world.serve();
        let mut client = host.connect();
        let from_ms = wall_ms() + ahead_ms;
        let times = [9, 2, 7, 7, 1, 8, 7, 3].iter();
        let ids: Vec<EventId> = times.map(|time| client.schedule(&format!("at {} note x", from_ms + time))).collect();
        let later = client.schedule(&format!("after {HOUR_MS} note later"));
        // While a client stays, a host that stops waits for it to go.
        drop(client);
        host.stop();
        (from_ms, (world, ids, later, from_ms + 9))
    });
    wait_until_wall(last_ms + 1);

    let host = world.serve();
    let mut client = host.connect();
    let runs = client.wait_for_runs(ids.len());
    assert!(runs.iter().all(|run| run.count == 1 && run.late_ms > 0), "{runs:?}");
    ids.sort_unstable();
    assert_eq!(client.order(), ids);
    assert_eq!(client.pending(10, None).len(), 1, "what is not due waits on");
    assert_eq!(client.ask(format!("cancel {}", later.words())), "cancelled true");
    host.stop();
}

/// A world with far more events of one time than have room in memory, none of them due, and the host that runs it: they
/// come from the disk in pages, and the borders of all pages lie among them. With a restart they are due when it begins.
fn more_of_one_time_than_fit_into_memory_run_in_order(restart: bool) {
    let (world, mut host, mut ids) = before_they_are_due(|ahead_ms| {
        let world = World::new(&Config::new().patient().set("events.max_in_memory", 16).guest(ledger()));
        let host = world.serve();
        let mut client = host.connect();
        let at_ms = wall_ms() + ahead_ms;
        let mut schedule = |time_ms: u64| client.schedule(&format!("at {time_ms} note x"));
        let mut ids: Vec<EventId> = (0..100).map(|_| schedule(at_ms)).collect();
        ids.extend((0..20).map(|number| schedule(at_ms - 10 + number)));
        (at_ms - 10, (world, host, ids))
    });
    ids.sort_unstable();
    if restart {
        host.kill();
        wait_until_wall(ids[ids.len() - 1].due_ms + 1);
        host = world.serve();
    }
    let mut client = host.connect();
    let runs = client.wait_for_runs(ids.len());
    assert!(runs.len() == ids.len() && runs.iter().all(|run| run.count == 1), "each ran once: {runs:?}");
    assert_eq!(client.order(), ids);
    assert_eq!(client.ask("walk"), "pending 0");
    host.stop();
}

#[test]
fn more_events_of_one_time_than_fit_into_memory_run_once_and_in_order() {
    more_of_one_time_than_fit_into_memory_run_in_order(false);
}

#[test]
fn more_overdue_events_than_fit_into_memory_run_once_and_in_order_after_a_crash() {
    more_of_one_time_than_fit_into_memory_run_in_order(true);
}

#[test]
fn an_event_of_a_guest_that_is_missing_in_one_run_runs_in_a_later_one() {
    let (world, id) = before_they_are_due(|ahead_ms| {
        let world = world();
        let host = world.serve();
        let id = host.connect().schedule(&format!("after {ahead_ms} bump waited"));
        host.stop();
        (id.due_ms, (world, id))
    });
    world.configure(&Config::new().guest(hostile("game", "game")));
    let host = world.serve();
    wait_until_wall(id.due_ms + 1);
    assert_eq!(host.connect().ask("ping x"), "pong x");
    let listed = host.events(&[]);
    assert_eq!((listed.len(), &listed[0]["id"], &listed[0]["guest"]), (1, &id.dashed().into(), &"ledger".into()));
    assert_eq!(listed[0]["attempts"], 0, "nobody tried");
    host.stop();

    world.configure(&Config::new().patient().guest(ledger()));
    let host = world.serve();
    let mut client = host.connect();
    assert_eq!(client.wait_for_runs(1)[0].id, id);
    assert_eq!(client.count("waited"), 1);
    host.stop();
}

/// A repeating event over a stop: answers how many runs stood for others.
fn repeats_over_a_stop(missed: &str) -> usize {
    const INTERVAL_MS: u64 = 100;
    let world = world();
    let host = world.serve();
    let mut client = host.connect();
    let first = client.schedule(&format!("every {INTERVAL_MS} {missed} note tick"));
    client.wait_for_runs(3);
    drop(client);
    host.stop();
    let stopped_ms = wall_ms();
    wait_until_wall(stopped_ms + 10 * INTERVAL_MS);

    let host = world.serve();
    let mut client = host.connect();
    let caught_up =
        |line: &str| line.lines().nth(1).and_then(|line| line.split(' ').next()?.parse().ok()) > Some(wall_ms());
    client.ask_until_it("pending 1", "the next run in the future", caught_up);
    let runs = client.runs();
    assert_no_drift(&runs, first, INTERVAL_MS);
    let covered: u64 = runs.iter().map(|run| run.missed + 1).sum();
    assert!(covered * INTERVAL_MS > stopped_ms - first.due_ms + 9 * INTERVAL_MS, "nothing is missing: {runs:?}");
    assert_eq!(client.ask("cancel-kind note"), "cancelled 1");
    let last = client.runs();
    host.stop();
    let host = world.serve();
    assert_eq!(host.connect().runs(), last, "what is cancelled does not run again");
    host.stop();
    runs.iter().filter(|run| run.missed > 0).count()
}

#[test]
fn runs_missed_during_a_stop_coalesce_into_one() {
    assert!(repeats_over_a_stop("coalesce") > 0);
}

#[test]
fn runs_missed_during_a_stop_are_caught_up_one_by_one() {
    assert_eq!(repeats_over_a_stop("catch-up"), 0);
}
