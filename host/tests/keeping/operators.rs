//! Orders of operators about events, which may come at any moment: whatever they are told is true.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use wheelhouse::admin::ControlClientError;

use crate::world::World;

const HOUR_MS: u64 = 3_600_000;

/// Whether an order found its event; any other failure fails the test.
fn found<T>(answer: Result<T, ControlClientError>) -> bool {
    match answer {
        Ok(_) => true,
        Err(ControlClientError::Refused { status: 404, .. }) => false,
        Err(error) => panic!("the host does not do as it is asked: {error}"),
    }
}

#[test]
fn an_event_that_is_cancelled_while_it_comes_due_either_ran_or_was_cancelled() {
    const ROUNDS: usize = 40;
    let world = World::new();
    let mut run = world.start();
    let (mut client, control) = (run.connect(), run.control());
    let began = Instant::now();
    assert!((1..=10).all(|_| !found(control.cancel_event(1_000_000))));
    let trip = began.elapsed() / 10;
    let mut ran = 0;
    for round in 0..ROUNDS {
        let event = client.schedule("after 100 bump due");
        world.clock.advance(Duration::from_millis(99));
        let both = Barrier::new(2);
        let cancelled = thread::scope(|scope| {
            let order = scope.spawn(|| {
                both.wait();
                found(control.cancel_event(event.sequence))
            });
            both.wait();
            // Sooner and later, around the moment in which the order gets to the loop.
            let from = Instant::now();
            while from.elapsed() < trip * (round as u32 % 10) / 10 {
                thread::yield_now();
            }
            world.clock.advance(Duration::from_millis(1));
            order.join().expect("the order is answered")
        });
        run.pass(2, 50);
        ran += u64::from(!cancelled);
        assert_eq!(client.count("due"), ran, "in round {round} the order was told {cancelled}");
        assert_eq!(client.pending(), 0);
    }
    println!("{ran} of {ROUNDS} events ran before their order");
    run.stop().expect("everything is saved");
    let run = world.start();
    assert_eq!(run.connect().count("due"), ran);
    run.stop().expect("everything is saved");
}

#[test]
fn an_event_that_only_the_disk_knows_is_cancelled() {
    let world = World::new();
    let run = world.start();
    let mut client = run.connect();
    let [event, other] = [1, 2].map(|_| client.schedule(&format!("after {HOUR_MS} bump due")));
    drop(client);
    run.stop().expect("everything is saved");

    let mut run = world.start();
    let (mut client, control) = (run.connect(), run.control());
    assert_eq!(run.status().events.counts.in_memory, 0);
    assert!(found(control.cancel_event(event.sequence)));
    assert!(!found(control.cancel_event(event.sequence)), "it is cancelled already");
    assert_eq!(client.pending(), 1);
    world.clock.set_wall_ms(other.due_ms);
    run.pass(1, 1000);
    run.wait_for_runs(&mut client, 1);
    assert_eq!((client.order(), client.count("due")), (vec![other], 1));
    run.stop().expect("everything is saved");
}

#[test]
fn an_order_that_looks_on_the_disk_heeds_what_happens_meanwhile() {
    let world = World::new();
    let mut run = world.start();
    let (mut client, control) = (run.connect(), run.control());
    let event = client.schedule("after 100000 bump due");
    run.settle();
    world.disk.hold_reads();
    thread::scope(|scope| {
        let order = scope.spawn(|| found(control.cancel_event(event.sequence)));
        world.disk.wait_for_held_read();
        // Meanwhile it comes due, for which the disk is needed too: the order is the first in the queue.
        world.clock.advance(Duration::from_millis(100_000));
        assert_eq!(client.ask("ping x"), "pong x");
        world.disk.let_reads_go();
        let cancelled = order.join().expect("the order is answered");
        run.pass(4, 50);
        client.ask_until("walk", |answer| answer == "pending 0");
        assert_eq!(client.count("due"), u64::from(!cancelled));
    });
    run.stop().expect("everything is saved");
}

#[test]
fn an_order_is_answered_when_it_is_on_disk_and_not_before() {
    let world = World::new();
    let run = world.start();
    let (mut client, control) = (run.connect(), run.control());
    let event = client.schedule("after 30000 bump due");
    world.disk.hold();
    let order = thread::spawn(move || control.cancel_event(event.sequence));
    world.disk.wait_for_held_commit();
    assert_eq!(client.ask("ping x"), "pong x");
    assert!(!order.is_finished());
    world.disk.let_go();
    assert!(found(order.join().expect("the client does not panic")));
    run.stop().expect("everything is saved");
}
