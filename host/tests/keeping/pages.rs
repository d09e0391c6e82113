//! Pages of events that cannot be read: they are read again, and no event is lost or late for longer than that takes.

use std::time::Instant;

use crate::PATIENCE;
use crate::disk::Disk;
use crate::player::EventId;
use crate::world::World;

/// The look-ahead, and when the events are due: beyond it.
const LOOK_AHEAD_S: u64 = 2;
const DUE_MS: u64 = 10_000;

/// Schedules events in one run of the host; in the next, the reads for their pages go wrong as `spoil` says, at the
/// start or shortly before the events are due.
fn run_in_time(spoil: impl Fn(&Disk), at_the_start: bool) {
    let world = World::new().configured(|config| {
        config.events.look_ahead_s = LOOK_AHEAD_S;
        config.events.max_in_memory = 4;
    });
    let run = world.start();
    let mut client = run.connect();
    // More than fit into memory.
    let mut ids: Vec<EventId> =
        (0..10).map(|number| client.schedule(&format!("after {DUE_MS} note {number}"))).collect();
    ids.push(client.schedule(&format!("after {} note last", DUE_MS + 3000)));
    drop(client);
    run.stop().expect("everything is saved");

    if at_the_start {
        spoil(&world.disk);
    }
    let mut run = world.start();
    let mut client = run.connect();
    run.pass(8, 500);
    if !at_the_start {
        spoil(&world.disk);
    }
    // How much time passes by the clock before they have run is the reader thread's affair: it goes by another.
    let until = Instant::now() + PATIENCE;
    while client.order().len() < ids.len() {
        assert!(Instant::now() < until, "these have run, and no more: {:?}", client.runs());
        run.pass(1, 100);
    }
    assert_eq!(world.disk.bad_reads(), 0, "the reads that were to go wrong did");
    let runs = client.runs();
    assert!(runs.iter().all(|run| run.count == 1), "{runs:?}");
    assert_eq!((client.order(), client.pending()), (ids, 0));
    run.stop().expect("everything is saved");
}

#[test]
fn a_page_that_fails_at_the_start_is_read_again() {
    run_in_time(|disk| disk.fail_reads(2), true);
}

#[test]
fn a_page_that_fails_later_is_read_again() {
    run_in_time(|disk| disk.fail_reads(2), false);
}

#[test]
fn a_page_whose_reading_panics_is_read_again() {
    run_in_time(|disk| disk.panic_in_reads(1), false);
}

#[test]
fn a_page_that_takes_long_holds_nobody_up_and_loses_nothing_that_happens_meanwhile() {
    let world = World::new().configured(|config| config.events.look_ahead_s = LOOK_AHEAD_S);
    let mut run = world.start();
    let mut client = run.connect();
    let [kept, cancelled] = [1, 2].map(|_| client.schedule("after 5000 bump read"));
    world.disk.hold_reads();
    run.pass(8, 500);
    world.disk.wait_for_held_read();
    // While the page is read: one more at the same time, one less, one that is near.
    let added = client.schedule(&format!("at {} bump read", kept.due_ms));
    let near = client.schedule("after 100 bump near");
    world.disk.let_reads_go();
    assert_eq!(client.ask(format!("cancel {}", cancelled.words())), "cancelled true");
    run.pass(8, 500);
    let runs = run.wait_for_runs(&mut client, 3);
    assert!(runs.iter().all(|run| run.count == 1), "{runs:?}");
    assert_eq!(client.order(), [near, kept, added]);
    assert_eq!((client.count("read"), client.pending()), (2, 0));
    run.stop().expect("everything is saved");
}
