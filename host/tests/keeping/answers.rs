//! What a client is told is on disk; what needs no disk does not wait for it; and a disk that is slow makes commits large
//! and posters wait, not memory grow.

use crate::player::Player;
use crate::world::{World, pacer};

#[test]
fn an_answer_leaves_when_its_commit_is_on_disk_and_not_before() {
    let world = World::new();
    let mut run = world.start();
    let (mut bumper, mut other) = (run.connect(), run.connect());
    let before = run.sent();
    world.disk.hold();
    bumper.send("bump a");
    world.disk.wait_for_held_commit();
    ["1", "2"].iter().for_each(|text| assert_eq!(other.ask(format!("ping {text}")), format!("pong {text}")));
    assert_eq!(run.sent(), before + 2, "only the pings are answered");
    world.disk.let_go();
    assert_eq!(bumper.receive(), "a 1");
    run.stop().expect("everything is saved");
}

#[test]
fn an_answer_that_needs_no_disk_stays_behind_one_to_the_same_client_that_does() {
    let world = World::new();
    let mut run = world.start();
    let (mut bumper, mut other) = (run.connect(), run.connect());
    let before = (run.sent(), run.executed());
    world.disk.hold();
    bumper.send("bump a");
    bumper.send("ping behind");
    run.wait_until("both packets have run", |status| status.sim.game_loop.executed >= before.1 + 2);
    assert_eq!(other.ask("ping x"), "pong x");
    assert_eq!(run.sent(), before.0 + 1);
    world.disk.let_go();
    assert_eq!((bumper.receive(), bumper.receive()), ("a 1".into(), "pong behind".into()));
    run.stop().expect("everything is saved");
}

#[test]
fn who_reads_what_is_on_its_way_to_the_disk_waits_for_it() {
    let world = World::new();
    let mut run = world.start();
    let (mut bumper, mut reader, mut other) = (run.connect(), run.connect(), run.connect());
    assert_eq!(bumper.ask("bump a"), "a 1");
    world.disk.hold();
    assert_eq!(reader.ask("read a"), "a 1", "what is on disk is told at once");
    bumper.send("bump a");
    world.disk.wait_for_held_commit();
    let before = (run.sent(), run.executed());
    reader.send("read a");
    run.wait_until("the read has run", |status| status.sim.game_loop.executed > before.1);
    assert_eq!(other.ask("ping x"), "pong x");
    assert_eq!(run.sent(), before.0 + 1, "nobody is told of a bump that a crash could take back");
    world.disk.let_go();
    assert_eq!((bumper.receive(), reader.receive()), ("a 2".into(), "a 2".into()));
    run.stop().expect("everything is saved");
}

#[test]
fn who_looks_at_events_that_are_on_their_way_to_the_disk_waits_for_it() {
    let world = World::new();
    let mut run = world.start();
    let (mut scheduler, mut reader, mut other) = (run.connect(), run.connect(), run.connect());
    world.disk.hold();
    scheduler.send("after 30000 note x");
    world.disk.wait_for_held_commit();
    let before = (run.sent(), run.executed());
    reader.send("walk");
    run.wait_until("the walk has run", |status| status.sim.game_loop.executed > before.1);
    assert_eq!(other.ask("ping x"), "pong x");
    assert_eq!(run.sent(), before.0 + 1);
    world.disk.let_go();
    assert_eq!(reader.receive(), "pending 1");
    assert!(scheduler.receive().starts_with("scheduled"));
    run.stop().expect("everything is saved");
}

#[test]
fn a_batch_grows_while_the_writer_is_busy() {
    const BUMPS: usize = 200;
    let world = World::new();
    let run = world.start();
    let mut bumpers: Vec<Player> = (0..4).map(|_| run.connect()).collect();
    world.disk.hold();
    let commits = run.status().store.commits;
    let executed = run.executed();
    bumpers[0].send("bump first");
    world.disk.wait_for_held_commit();
    for number in 0..BUMPS {
        bumpers[number % 4].send(format!("bump {}", number % 4));
    }
    run.wait_until("all bumps have run", |status| status.sim.game_loop.executed > executed + BUMPS as u64);
    let backlog = run.status().store.backlog;
    assert!(backlog <= 2, "the writer has been handed {backlog} batches: the one that is held, and one to go on with");
    world.disk.let_go();
    assert_eq!(bumpers[0].receive(), "first 1");
    for (name, bumper) in bumpers.iter_mut().enumerate() {
        (1..=BUMPS / 4).for_each(|count| assert_eq!(bumper.receive(), format!("{name} {count}")));
    }
    let commits = run.status().store.commits - commits;
    // The one that was held, what the writer had next, the rest, and perhaps what a turn that was not over added.
    assert!((2..=5).contains(&commits), "{commits} commits for {BUMPS} bumps");
    run.stop().expect("everything is saved");
}

/// Items that the loop may take in a turn, and that may wait for it.
const ITEMS_OF_A_TURN: u64 = 4;
const QUEUE: u64 = 8;

/// What each of eight clients sends: far more than all that may wait.
const BUMPS_OF_A_CLIENT: u64 = 20;

#[test]
fn a_disk_that_is_too_far_behind_makes_posters_wait_and_nothing_else() {
    let world = World::new().configured(|config| {
        config.guests.push(pacer());
        config.npcs.think_interval_ms = 100;
        config.store.max_pending_batches = 1;
        config.game_loop.queue_capacity = QUEUE;
        config.game_loop.max_items_per_batch = ITEMS_OF_A_TURN;
    });
    let mut run = world.start();
    let mut clients: Vec<Player> = (0..8).map(|_| run.connect()).collect();
    assert!(clients[0].ask("stand 0 0").starts_with("spawned"));
    assert!(clients[0].ask("spawn pacer 0 1").starts_with("spawned"));
    assert_eq!(clients[0].ask("beat 100 beats"), "timer set");
    // The first think comes at a random moment of the first 256 ms.
    run.pass(3, 100);
    run.wait_until("an NPC thinks", |status| status.npcs.thinks >= 1);
    run.wait_until("that all is on disk", |status| status.store.backlog == 0);

    // Counts exactly what was sent before.
    run.sent();
    world.disk.hold();
    let before = run.status();
    for _ in 0..BUMPS_OF_A_CLIENT {
        for (name, client) in clients.iter_mut().enumerate() {
            client.send(format!("bump {name}"));
        }
    }
    // With two batches under way nothing is taken any more.
    run.wait_until("the queue is full", |status| {
        status.store.backlog == 2 && status.sim.game_loop.queue_depth == QUEUE
    });
    let full = run.status();
    let executed = full.sim.game_loop.executed - before.sim.game_loop.executed;
    assert!(executed <= 3 * ITEMS_OF_A_TURN, "{executed} items ran: more than one batch that is held and one more");

    // NPCs go on thinking, one time after another.
    for times in 1..=5 {
        world.clock.advance(std::time::Duration::from_millis(100));
        run.wait_until("it thinks", |status| status.npcs.thinks >= full.npcs.thinks + times);
    }
    world.clock.advance(std::time::Duration::from_millis(50));
    let after = run.status();
    assert_eq!(after.sim.game_loop.executed, full.sim.game_loop.executed, "no item ran");
    assert_eq!(after.sim.game_loop.queue_depth, QUEUE);
    assert_eq!(after.connections.frames_out, before.connections.frames_out, "nothing is acknowledged");

    world.disk.let_through(1);
    run.wait_until("one commit makes room", |status| status.sim.game_loop.executed > full.sim.game_loop.executed);
    world.disk.let_go();
    for (name, client) in clients.iter_mut().enumerate() {
        (1..=BUMPS_OF_A_CLIENT).for_each(|count| assert_eq!(client.receive(), format!("{name} {count}")));
    }
    assert_eq!(clients[0].count("beats"), 8, "a guest's timer stands for all its times once it runs");
    run.stop().expect("everything is saved");
}

#[test]
fn what_waits_for_the_disk_is_bounded_in_bytes_too() {
    const PIECES: u64 = 80;
    const PIECE_KB: u64 = 512;
    let world = World::new().configured(|config| {
        config.store.max_pending_batches = 2;
        // A turn's time does not end by a clock that stands still.
        config.game_loop.max_items_per_batch = ITEMS_OF_A_TURN;
    });
    let run = world.start();
    let (mut client, mut other) = (run.connect(), run.connect());
    world.disk.hold();
    let before = run.executed();
    // Forty megabytes in handlers that change few rows.
    (0..PIECES).for_each(|piece| client.send(format!("put {piece} {PIECE_KB}")));
    // With three batches under way nothing is taken any more.
    run.wait_until("its packets wait in the queue", |status| {
        status.store.backlog == 3 && status.sim.game_loop.queue_depth == 4
    });
    other.send("ping x");
    run.wait_until("a ping waits, too", |status| status.sim.game_loop.queue_depth == 5);
    let taken_kb = (run.executed() - before) * PIECE_KB;
    assert!(taken_kb <= 20 * 1024, "{taken_kb} KiB wait for the disk, and two batches of 4 MiB may");
    world.disk.let_go();
    assert_eq!(other.receive(), "pong x");
    (0..PIECES).for_each(|piece| assert_eq!(client.receive(), format!("put {piece}")));
    run.stop().expect("everything is saved");
}
