//! `save`: everything is on disk when it answers, and it answers also when there is nothing to do or a guest cannot.

use std::thread;

use crate::world::World;

#[test]
fn a_save_on_an_idle_host_is_answered_at_once() {
    let world = World::new();
    let run = world.start();
    let control = run.control();
    // The clock stands still: it waits for no timer.
    (0..3).for_each(|_| assert_eq!(control.save().expect("it is saved")["saved"], true));
    run.stop().expect("everything is saved");
}

#[test]
fn a_save_is_answered_when_it_is_on_disk_and_not_before() {
    let world = World::new();
    let run = world.start();
    let mut client = run.connect();
    assert_eq!(client.ask("remember this"), "recalled this");
    world.disk.hold();
    let control = run.control();
    let saving = thread::spawn(move || control.save());
    world.disk.wait_for_held_commit();
    assert_eq!(client.ask("ping x"), "pong x");
    assert!(!saving.is_finished());
    world.disk.let_go();
    saving.join().expect("the client does not panic").expect("it is saved");
    run.stop().expect("everything is saved");
}

#[test]
fn a_save_in_which_a_guest_traps_is_answered_and_the_game_goes_on() {
    let world = World::new();
    let run = world.start();
    let mut client = run.connect();
    assert_eq!(client.ask("remember this"), "recalled this");
    run.control().save().expect("it is saved");
    assert_eq!((client.ask("bump a"), client.ask("remember trap")), ("a 1".into(), "recalled trap".into()));
    // Whether that is called a success or not: somebody waits for it.
    let answered = run.control().save();
    println!("a save in which the guest traps is answered with {answered:?}");
    run.wait_until("the trap is counted", |status| status.guests[0].failures == 1);
    assert_eq!(client.ask("recall"), "recalled this", "a fresh instance with what was saved last");
    assert_eq!(client.ask("bump a"), "a 2");
    run.control().save().expect("the fresh instance can save");
    run.stop().expect("everything is saved");

    let run = world.start();
    let mut client = run.connect();
    assert_eq!((client.ask("recall"), client.count("a")), ("recalled this".into(), 2));
    run.stop().expect("everything is saved");
}

#[test]
fn a_guest_that_traps_in_the_save_of_the_stop_costs_only_its_own_memory() {
    let world = World::new();
    let run = world.start();
    let mut client = run.connect();
    assert_eq!((client.ask("bump a"), client.ask("remember trap")), ("a 1".into(), "recalled trap".into()));
    run.stop().expect("everything else is saved");
    let run = world.start();
    let mut client = run.connect();
    assert_eq!((client.ask("recall"), client.count("a")), ("recalled ".into(), 1));
    run.stop().expect("everything is saved");
}
