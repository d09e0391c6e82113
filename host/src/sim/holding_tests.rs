//! A simulation that takes no items for a while: they wait, posters wait, and everything else goes on.

use std::sync::Arc;
use std::time::Duration;

use super::scripted::{Stage, item, timer};
use super::*;
use crate::clock::ManualClock;

fn small_queue() -> SimOptions {
    let mut options = SimOptions::default();
    options.game_loop.queue_capacity = 2;
    options
}

#[test]
fn items_wait_while_none_are_taken_and_timers_fire() {
    let mut stage = Stage::new(small_queue());
    stage.core.simulation().holds = true;
    stage.every("tick", Duration::from_millis(80), timer("tick"));
    stage.post(item("first"));
    stage.post(item("second"));
    assert!(stage.handle.try_post(item("third")).is_err(), "the queue is full");
    assert!(matches!(stage.settle(), Next::At(_)), "the loop sleeps though there are items");
    stage.advance(Duration::from_millis(80));
    stage.settle();
    assert_eq!(stage.log(), ["tick"]);
    stage.core.simulation().holds = false;
    stage.settle();
    assert_eq!(stage.log(), ["first", "second"]);
}

#[test]
fn a_stop_finishes_what_was_accepted_once_it_is_taken() {
    let mut stage = Stage::new(small_queue());
    stage.core.simulation().holds = true;
    stage.post(item("accepted"));
    stage.handle.begin_stop();
    assert_eq!(stage.settle(), Next::WhenPosted);
    stage.core.simulation().holds = false;
    assert_eq!(stage.settle(), Next::Ended);
    assert_eq!(stage.log(), ["accepted"]);
}

/// A simulation that holds its items until its timer fires.
struct HoldsUntilTimer {
    holds: bool,
    ran: std::sync::mpsc::Sender<()>,
}

impl Simulation for HoldsUntilTimer {
    type Item = ();
    type Timer = ();

    fn takes_items(&self) -> bool {
        !self.holds
    }

    fn run_item(&mut self, (): (), _: &mut LoopContext<'_, Self>) -> anyhow::Result<()> {
        Ok(self.ran.send(())?)
    }

    fn fire_timer(&mut self, _: Firing, (): &mut (), _: &mut LoopContext<'_, Self>) -> anyhow::Result<()> {
        self.holds = false;
        Ok(())
    }
}

#[test]
fn a_threaded_loop_sleeps_beside_items_that_it_does_not_take() {
    let clock = ManualClock::shared();
    let (ran, runs) = std::sync::mpsc::channel();
    let shared: SharedClock = Arc::clone(&clock) as SharedClock;
    let mut core = LoopCore::new(HoldsUntilTimer { holds: true, ran }, SimOptions::default(), shared).unwrap();
    let (_, mut cx) = core.parts();
    cx.register_timer("go on", Duration::from_millis(100), None, false, ()).unwrap();
    let game_loop = GameLoop::start(core).unwrap();
    game_loop.handle().post_blocking(()).unwrap();
    assert!(runs.try_recv().is_err());
    clock.advance(Duration::from_millis(200));
    runs.recv_timeout(Duration::from_secs(20)).expect("the item runs once the timer has fired");
    game_loop.handle().stop().unwrap();
}

#[test]
fn a_beginning_of_a_turn_that_panics_stops_the_loop() {
    struct Panics;
    impl Simulation for Panics {
        type Item = ();
        type Timer = ();

        fn begin_turn(&mut self, _: &mut LoopContext<'_, Self>) -> anyhow::Result<()> {
            panic!("no");
        }

        fn run_item(&mut self, (): (), _: &mut LoopContext<'_, Self>) -> anyhow::Result<()> {
            Ok(())
        }

        fn fire_timer(&mut self, _: Firing, (): &mut (), _: &mut LoopContext<'_, Self>) -> anyhow::Result<()> {
            Ok(())
        }
    }
    let mut core = LoopCore::new(Panics, SimOptions::default(), ManualClock::shared()).unwrap();
    assert_eq!(core.turn(), Next::Ended);
}
