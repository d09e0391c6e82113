//! Stops at bad moments: while the disk takes nothing, while events come due, while a backup is made.

use std::thread;
use std::time::Duration;

use wheelhouse::server::StopError;
use wheelhouse::store::StoreError;

use crate::world::World;

/// How long a stop may try in vain to write what is not saved.
const LONGEST_TRY: Duration = Duration::from_secs(3);

#[test]
fn a_stop_while_the_disk_is_full_ends_and_says_what_is_not_saved() {
    let world = World::new();
    let run = world.start();
    let mut client = run.connect();
    assert_eq!(client.ask("bump a"), "a 1");
    world.disk.fill();
    client.send("bump a");
    run.wait_until("the host notices", |status| status.store.state != "ok");
    drop(client);
    let (stopped, tried) = run.begin_stop().wait_and_measure();
    let error = stopped.expect_err("not everything is saved");
    assert!(matches!(error, StopError::Store(StoreError::Unwritable { .. })), "{error:?}");
    let told = error.to_string();
    assert!(
        ["not everything was saved", "cannot be written", "acknowledged is safe"]
            .iter()
            .all(|part| told.contains(part)),
        "{told}"
    );
    assert!(!told.contains('\n'), "it is one line: {told}");
    assert!(tried <= LONGEST_TRY, "it tried for {tried:?}");

    world.disk.make_room();
    let run = world.start();
    assert_eq!(run.connect().count("a"), 1, "the bump that was acknowledged is there, the other is not");
    run.stop().expect("everything is saved");
}

#[test]
fn a_stop_during_trouble_saves_everything_if_there_is_room_in_time() {
    let world = World::new();
    let run = world.start();
    let (mut client, mut other) = (run.connect(), run.connect());
    world.disk.fill();
    client.send("bump a");
    run.wait_until("the host notices", |status| status.store.state != "ok");
    let executed = run.executed();
    // It is accepted and set aside.
    other.send("bump b");
    run.wait_until("the other bump was tried", |status| status.sim.game_loop.executed > executed);
    let failed = world.disk.failed_commits();
    let stopping = run.begin_stop();
    while world.disk.failed_commits() == failed {
        world.clock.advance(Duration::from_millis(50));
        thread::yield_now();
    }
    world.disk.make_room();
    stopping.wait().expect("there was room in time");
    let run = world.start();
    let mut reader = run.connect();
    assert_eq!((reader.count("a"), reader.count("b")), (1, 1), "what was accepted before the stop is finished");
    run.stop().expect("everything is saved");
}

#[test]
fn a_stop_while_a_commit_is_under_way_waits_for_it() {
    let world = World::new();
    let run = world.start();
    let mut client = run.connect();
    world.disk.hold();
    client.send("bump a");
    world.disk.wait_for_held_commit();
    let stopping = run.begin_stop();
    world.disk.let_go();
    stopping.wait().expect("everything is saved");
    let run = world.start();
    assert_eq!(run.connect().count("a"), 1);
    run.stop().expect("everything is saved");
}

#[test]
fn events_due_in_the_very_moment_of_a_stop_run_once() {
    let world = World::new();
    let mut scheduled = 0;
    for round in 0..10_u64 {
        let run = world.start();
        let mut client = run.connect();
        for _ in 0..20 {
            client.schedule("after 100 bump due");
            scheduled += 1;
        }
        drop(client);
        world.clock.advance(Duration::from_millis(99));
        if round % 2 == 0 {
            world.clock.advance(Duration::from_millis(1));
            run.stop().expect("everything is saved");
        } else {
            let stopping = run.begin_stop();
            world.clock.advance(Duration::from_millis(1));
            stopping.wait().expect("everything is saved");
        }
    }
    let run = world.start();
    let mut reader = run.connect();
    let runs = run.wait_for_runs(&mut reader, scheduled);
    assert_eq!(runs.len(), scheduled);
    assert!(runs.iter().all(|run| run.count == 1), "{runs:?}");
    assert_eq!((reader.count("due"), reader.pending()), (scheduled as u64, 0));
    assert!(reader.order().is_sorted());
    run.stop().expect("everything is saved");
}

#[test]
fn a_backup_that_takes_long_does_not_hold_a_stop_up() {
    let world = World::new();
    let run = world.start();
    assert_eq!(run.connect().ask("bump a"), "a 1");
    world.disk.hold_backups();
    let (control, file) = (run.control(), world.file("copy.db"));
    let backup = thread::spawn(move || control.backup(&file));
    world.disk.wait_for_held_backup();
    // The disk lets the backup go on only afterwards.
    run.stop().expect("everything is saved");
    assert!(
        backup.join().expect("the client does not panic").is_err(),
        "there is no backup, and who waited is told so"
    );
    world.disk.be_good();
    let run = world.start();
    assert_eq!(run.connect().count("a"), 1);
    run.stop().expect("everything is saved");
}
