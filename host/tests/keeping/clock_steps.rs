//! The wall clock is set forward or back while the loop sleeps: what has become due runs, in order, and nothing twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use wheelhouse::clock::{Clock, MonotonicClock};

use crate::player::{EventId, assert_no_drift};
use crate::world::{BEGIN_MS, Run, World};

/// The longest time after which the loop notices.
const NOTICED_MS: u64 = 1000;

const HOUR_MS: u64 = 3_600_000;

/// Sets the wall clock, and lets the loop notice.
fn set_wall(world: &World, run: &mut Run, wall_ms: u64) {
    world.clock.set_wall_ms(wall_ms);
    run.pass(1, NOTICED_MS);
}

/// Runs by itself, so that nothing wakes the loop but its own timers; the wall clock can be set.
struct SettableClock {
    monotonic: MonotonicClock,
    wall_at_zero_ms: AtomicU64,
}

impl Clock for SettableClock {
    fn now(&self) -> Duration {
        self.monotonic.now()
    }

    fn wall_ms(&self) -> u64 {
        self.wall_at_zero_ms.load(Ordering::SeqCst) + self.now().as_millis() as u64
    }
}

#[test]
fn a_loop_that_sleeps_notices_a_step_forward_by_itself() {
    let clock = Arc::new(SettableClock { monotonic: MonotonicClock::new(), wall_at_zero_ms: AtomicU64::new(BEGIN_MS) });
    let world = World::new();
    let mut run = world.start_by(clock.clone());
    let mut client = run.connect();
    let [near, far] = [50_000, HOUR_MS].map(|after_ms| client.schedule(&format!("after {after_ms} note x")));
    // As long as one is to come the loop looks at the clock.
    client.schedule(&format!("after {} note later", 5 * HOUR_MS));
    run.settle();
    clock.wall_at_zero_ms.store(BEGIN_MS + 2 * HOUR_MS, Ordering::SeqCst);
    // Nobody sends anything meanwhile.
    run.wait_until("both have run", |status| status.events.counts.fired == 2);
    assert_eq!((client.order(), client.pending()), (vec![near, far], 1));
    run.stop().expect("everything is saved");
}

#[test]
fn what_has_become_due_by_a_step_forward_runs_in_order() {
    let world = World::new();
    let mut run = world.start();
    let mut client = run.connect();
    // In memory, on disk, and beyond the step.
    let mut schedule = |after_ms: u64| client.schedule(&format!("at {} note x", BEGIN_MS + after_ms));
    let mut ids: Vec<EventId> =
        [2 * HOUR_MS, 30_000, HOUR_MS, 40_000, HOUR_MS, 20_000, HOUR_MS].into_iter().map(&mut schedule).collect();
    schedule(5 * HOUR_MS);
    set_wall(&world, &mut run, BEGIN_MS + 3 * HOUR_MS);
    let runs = run.wait_for_runs(&mut client, ids.len());
    assert!(runs.len() == ids.len() && runs.iter().all(|run| run.count == 1), "{runs:?}");
    ids.sort_unstable();
    assert_eq!((client.order(), client.pending()), (ids, 1));
    run.stop().expect("everything is saved");
}

#[test]
fn a_step_back_runs_nothing_twice_and_nothing_early() {
    let world = World::new();
    let mut run = world.start();
    let mut client = run.connect();
    let ran = client.schedule("after 1000 note first");
    run.pass(1, 1000);
    run.wait_for_runs(&mut client, 1);
    let waiting = client.schedule("after 2000 note second");
    let far = client.schedule(&format!("after {HOUR_MS} note third"));

    set_wall(&world, &mut run, BEGIN_MS);
    run.pass(2, 500);
    let runs = client.runs();
    assert_eq!(runs.iter().map(|run| (run.id, run.count)).collect::<Vec<_>>(), [(ran, 1)], "its time has not come");
    assert_eq!(client.pending(), 2);
    run.pass(4, 500);
    let runs = run.wait_for_runs(&mut client, 2);
    assert_eq!(runs.iter().map(|run| (run.id, run.count)).collect::<Vec<_>>(), [(ran, 1), (waiting, 1)]);

    // Back before everything, and over a restart.
    world.clock.set_wall_ms(BEGIN_MS - HOUR_MS);
    drop(client);
    run.stop().expect("everything is saved");
    let mut run = world.start();
    let mut client = run.connect();
    run.pass(4, 500);
    assert_eq!((client.runs().len(), client.pending()), (2, 1));
    set_wall(&world, &mut run, far.due_ms);
    let runs = run.wait_for_runs(&mut client, 3);
    assert!(runs.iter().all(|run| run.count == 1), "{runs:?}");
    assert_eq!(client.order(), [ran, waiting, far]);
    run.stop().expect("everything is saved");
}

/// A repeating event over a step forward and one back: answers how many runs stood for others.
fn keeps_its_phase(missed: &str) -> usize {
    const INTERVAL_MS: u64 = 500;
    let world = World::new();
    let mut run = world.start();
    let mut client = run.connect();
    let first = client.schedule(&format!("every {INTERVAL_MS} {missed} note tick"));
    assert_eq!(first.due_ms, BEGIN_MS + INTERVAL_MS);
    run.pass(6, 250);
    assert_eq!(run.wait_for_runs(&mut client, 3).len(), 3);

    // Ten turns and a bit; with the time in which it is noticed there are two more.
    set_wall(&world, &mut run, BEGIN_MS + 1500 + 10 * INTERVAL_MS + 137);
    let next_after_ms = BEGIN_MS + 1500 + 13 * INTERVAL_MS;
    let is_next = |answer: &str| answer.contains(&format!("\n{next_after_ms} "));
    client.ask_until("pending 1", is_next);
    let runs = client.runs();
    assert_eq!(assert_no_drift(&runs, first, INTERVAL_MS), 15, "none is lost: {runs:#?}");

    world.clock.set_wall_ms(BEGIN_MS);
    run.pass(10, 250);
    assert_eq!(client.runs(), runs, "its next time has not come again");
    world.clock.set_wall_ms(next_after_ms - 100);
    run.pass(6, 250);
    client.ask_until("pending 1", |answer| answer.contains(&format!("\n{} ", next_after_ms + 3 * INTERVAL_MS)));
    let runs = client.runs();
    assert_eq!(assert_no_drift(&runs, first, INTERVAL_MS), 18, "{runs:#?}");
    run.stop().expect("everything is saved");
    runs.iter().filter(|run| run.missed > 0).count()
}

#[test]
fn an_event_that_coalesces_keeps_its_phase_over_steps_of_the_clock() {
    assert_eq!(keeps_its_phase("coalesce"), 1);
}

#[test]
fn an_event_that_catches_up_keeps_its_phase_over_steps_of_the_clock() {
    assert_eq!(keeps_its_phase("catch-up"), 0);
}
