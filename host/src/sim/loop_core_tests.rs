//! The sentences of the loop's contract, driven turn by turn on a clock that moves by hand.

use std::time::Duration;

use super::scripted::*;
use super::*;
use crate::clock::Clock;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn options() -> SimOptions {
    SimOptions::default()
}

#[test]
fn items_run_in_the_order_they_were_posted() {
    let mut stage = Stage::new(options());
    for name in ["a", "b", "c"] {
        stage.post(item(name));
    }
    assert_eq!(stage.settle(), Next::WhenPosted);
    assert_eq!(stage.log(), ["a", "b", "c"]);
}

#[test]
fn a_post_never_runs_the_item_itself() {
    let mut stage = Stage::new(options());
    stage.post(item("a"));
    assert!(stage.log().is_empty());
}

#[test]
fn a_batch_ends_after_its_number_of_items() {
    let mut options = options();
    options.game_loop.max_items_per_batch = 2;
    let mut stage = Stage::new(options);
    for name in ["a", "b", "c"] {
        stage.post(item(name));
    }
    assert_eq!(stage.core.turn(), Next::Now);
    assert_eq!(stage.log(), ["a", "b"]);
    assert_eq!(stage.core.turn(), Next::WhenPosted);
    assert_eq!(stage.log(), ["c"]);
}

#[test]
fn a_batch_ends_when_its_budget_is_spent() {
    let mut stage = Stage::new(options());
    for name in ["a", "b", "c"] {
        stage.post(slow_item(name, &stage.clock, ms(3)));
    }
    stage.core.turn();
    assert_eq!(stage.log(), ["a", "b"]);
}

#[test]
fn one_item_is_attempted_however_dear() {
    let mut stage = Stage::new(options());
    for name in ["a", "b"] {
        stage.post(slow_item(name, &stage.clock, ms(1000)));
    }
    stage.core.turn();
    assert_eq!(stage.log(), ["a"]);
    stage.core.turn();
    assert_eq!(stage.log(), ["b"]);
}

#[test]
fn items_do_not_keep_timers_from_firing() {
    let mut options = options();
    options.game_loop.max_items_per_batch = 1;
    let mut stage = Stage::new(options);
    stage.every("t", ms(8), timer("t"));
    stage.advance(ms(8));
    stage.post(item("a"));
    stage.post(item("b"));
    stage.settle();
    assert_eq!(stage.log(), ["a", "t", "b"]);
}

#[test]
fn an_item_that_fails_stops_the_loop_and_the_rest_is_abandoned() {
    let mut stage = Stage::new(options());
    stage.post(item("a"));
    stage.post(failing_item("the world broke"));
    stage.post(item("never"));
    stage.post(item("never"));
    assert_eq!(stage.settle(), Next::Ended);
    assert_eq!(stage.log(), ["a"]);
    for _ in 0..2 {
        let failure = wait::block_on(stage.handle.completion()).unwrap_err();
        assert_eq!(failure.error.to_string(), "the world broke");
        assert_eq!(failure.abandoned, 2);
    }
    let metrics = stage.handle.metrics().game_loop;
    assert_eq!((metrics.accepted, metrics.executed, metrics.abandoned, metrics.faults), (4, 2, 2, 1));
    assert_eq!(metrics.queue_depth, 0);
    assert!(matches!(stage.handle.try_post(item("late")), Err(Rejected::NotRunning(_))));
    assert_eq!(stage.core.turn(), Next::Ended);
}

#[test]
fn an_item_that_panics_stops_the_loop() {
    let mut stage = Stage::new(options());
    stage.post(Box::new(|_, _| panic!("out of sheep")));
    assert_eq!(stage.settle(), Next::Ended);
    let failure = stage.handle.completion().wait().unwrap_err();
    assert!(failure.to_string().contains("out of sheep"), "{failure}");
}

#[test]
fn the_completion_carries_the_first_error() {
    let mut stage = Stage::new(options());
    stage.post(failing_item("first"));
    stage.post(failing_item("second"));
    stage.settle();
    assert_eq!(stage.handle.completion().wait().unwrap_err().error.to_string(), "first");
}

#[test]
fn a_timer_that_fails_or_panics_is_counted_and_fires_again() {
    let mut stage = Stage::new(options());
    stage.every("fails", ms(8), Box::new(|_, _, _| Err(anyhow::anyhow!("no grass"))));
    stage.every("panics", ms(8), Box::new(|_, _, _| panic!("no grass at all")));
    stage.every("works", ms(8), timer("works"));
    stage.run_until(ms(24));
    stage.settle();
    assert_eq!(stage.log(), ["works", "works", "works"]);
    let metrics = stage.handle.metrics();
    assert_eq!((metrics.timers.faults, metrics.timers.fired, metrics.timers.active), (6, 9, 3));
    assert_eq!(metrics.game_loop.faults, 0);
    assert!(stage.handle.is_running());
}

#[test]
fn a_timer_pass_ends_after_its_number_of_callbacks_and_goes_on_in_the_next() {
    let mut options = options();
    options.timers.max_callbacks_per_batch = 2;
    let mut stage = Stage::new(options);
    stage.core.simulation().log_ends = true;
    for name in ["a", "b", "c"] {
        stage.every(name, ms(8), timer(name));
    }
    stage.advance(ms(8));
    assert_eq!(stage.core.turn(), Next::Now);
    assert_eq!(stage.log(), ["a", "b", "end of pass", "end of turn"]);
    assert_eq!(stage.core.turn(), Next::At(ms(16)));
    assert_eq!(stage.log(), ["c", "end of pass", "end of turn"]);
}

#[test]
fn a_timer_pass_ends_when_its_budget_is_spent_but_fires_one() {
    let mut stage = Stage::new(options());
    for name in ["a", "b"] {
        let clock = stage.clock.clone();
        stage.every(
            name,
            ms(800),
            Box::new(move |script, _, _| {
                clock.advance(ms(6));
                script.note(name);
                Ok(())
            }),
        );
    }
    stage.advance(ms(800));
    stage.core.turn();
    assert_eq!(stage.log(), ["a"]);
    stage.core.turn();
    assert_eq!(stage.log(), ["b"]);
}

#[test]
fn a_turn_without_due_timers_has_no_pass() {
    let mut stage = Stage::new(options());
    stage.core.simulation().log_ends = true;
    stage.every("a", ms(8), timer("a"));
    stage.core.turn();
    assert_eq!(stage.log(), ["end of turn"]);
}

#[test]
fn callbacks_can_register_and_cancel_timers() {
    let mut stage = Stage::new(options());
    stage.every(
        "mother",
        ms(8),
        Box::new(|_, firing, cx| {
            cx.register_timer("child", ms(8), None, false, timer("child"))?;
            assert!(cx.timers.unregister(firing.id));
            Ok(())
        }),
    );
    stage.run_until(ms(100));
    stage.settle();
    assert_eq!(stage.log(), ["child"]);
    assert_eq!(stage.handle.metrics().timers.active, 0);
}

#[test]
fn the_loop_sleeps_until_the_next_deadline_or_a_post() {
    let mut stage = Stage::new(options());
    assert_eq!(stage.settle(), Next::WhenPosted);
    stage.every("a", ms(100), timer("a"));
    assert_eq!(stage.settle(), Next::At(ms(104)));
    stage.post(item("b"));
    assert_eq!(stage.settle(), Next::At(ms(104)));
    assert_eq!(stage.log(), ["b"]);
}

#[test]
fn stop_finishes_what_was_accepted_and_closes_timers() {
    let mut stage = Stage::new(options());
    stage.every("t", ms(8), timer("t"));
    stage.post(Box::new(|script, cx| {
        let refused = cx.register_timer("late", ms(8), None, false, timer("late"));
        script.note(refused.unwrap_err().to_string());
        Ok(())
    }));
    stage.post(item("b"));
    stage.handle.begin_stop();
    stage.advance(ms(8));
    assert!(matches!(stage.handle.try_post(item("late")), Err(Rejected::NotRunning(_))));
    assert_eq!(stage.settle(), Next::Ended);
    assert_eq!(stage.log(), ["timer `late`: the loop has stopped, so it would never fire", "b"]);
    assert!(stage.handle.completion().wait().is_ok());
    assert_eq!(stage.handle.metrics().timers.active, 0);
}

#[test]
fn registering_fails_after_stop() {
    let mut stage = Stage::new(options());
    stage.handle.begin_stop();
    stage.settle();
    let (_, mut cx) = stage.core.parts();
    assert!(matches!(cx.register_timer("t", ms(8), None, true, timer("t")), Err(TimerError::Stopped { .. })));
}

#[test]
fn the_final_item_runs_after_the_drain_and_its_changes_are_handed_on() {
    let mut options = options();
    options.game_loop.max_items_per_batch = 1;
    let mut stage = Stage::new(options);
    stage.core.simulation().log_ends = true;
    stage.post(item("a"));
    stage.post(item("b"));
    stage.handle.begin_stop_with(item("save")).ok().unwrap();
    assert!(stage.handle.begin_stop_with(item("save again")).is_err());
    stage.settle();
    let log = stage.log();
    let order: Vec<_> = log.iter().filter(|entry| *entry != "end of turn").collect();
    assert_eq!(order, ["a", "b", "save"]);
    assert_eq!(log.last().unwrap(), "end of turn");
}

#[test]
fn a_final_item_that_fails_is_the_outcome() {
    let mut stage = Stage::new(options());
    stage.handle.begin_stop_with(failing_item("disk full")).ok().unwrap();
    assert_eq!(stage.settle(), Next::Ended);
    let failure = stage.handle.completion().wait().unwrap_err();
    assert_eq!((failure.doing, failure.error.to_string().as_str()), ("the final work item", "disk full"));
}

#[test]
fn a_failure_before_the_final_item_abandons_it() {
    let mut stage = Stage::new(options());
    stage.post(failing_item("broken"));
    stage.handle.begin_stop_with(item("save")).ok().unwrap();
    stage.settle();
    assert!(stage.log().is_empty());
    assert_eq!(stage.handle.completion().wait().unwrap_err().abandoned, 1);
}

#[test]
fn stop_on_the_loop_thread_is_an_error() {
    let mut stage = Stage::new(options());
    stage.post(Box::new(|script, cx| {
        assert!(cx.handle.is_on_loop_thread());
        assert!(matches!(cx.handle.stop(), Err(StopError::OnLoopThread(None))));
        assert!(matches!(cx.handle.stop_with(item("save")), Err(StopError::OnLoopThread(Some(_)))));
        script.note("refused");
        Ok(())
    }));
    stage.settle();
    assert_eq!(stage.log(), ["refused"]);
    assert!(!stage.handle.is_on_loop_thread());
    assert!(stage.handle.is_running());
}

#[test]
fn waiting_for_room_on_the_loop_thread_is_an_error_that_hands_the_item_back() {
    let mut stage = Stage::new(options());
    stage.post(Box::new(|script, cx| {
        let Err(PostError::OnLoopThread(back)) = wait::block_on(cx.handle.post(item("back"))) else {
            panic!("it was queued");
        };
        assert!(cx.handle.try_post(item("tried")).is_ok());
        back(script, cx)
    }));
    stage.settle();
    assert_eq!(stage.log(), ["back", "tried"]);
}

#[test]
fn a_reply_comes_back_to_its_poster() {
    let mut stage = Stage::new(options());
    let receiver = stage.handle.try_post_with_reply(|reply| {
        Box::new(move |_: &mut Script, _: &mut Cx<'_>| {
            reply.send(42);
            Ok(())
        }) as ScriptItem
    });
    stage.settle();
    assert_eq!(wait::block_on(receiver.ok().unwrap()), Ok(42));
}

#[test]
fn a_failure_answers_those_who_wait_for_a_reply() {
    let mut stage = Stage::new(options());
    stage.post(failing_item("broken"));
    let receiver = stage.handle.try_post_with_reply(|reply: Reply<u32>| {
        Box::new(move |_: &mut Script, _: &mut Cx<'_>| {
            reply.send(42);
            Ok(())
        }) as ScriptItem
    });
    stage.settle();
    assert_eq!(wait::block_on(receiver.ok().unwrap()), Err(ReplyLost));
}

#[test]
fn a_core_that_is_dropped_tells_those_who_wait() {
    let stage = Stage::new(options());
    stage.post(item("a"));
    let completion = stage.handle.completion();
    drop(stage.core);
    assert_eq!(completion.wait().unwrap_err().abandoned, 1);
    assert!(!stage.handle.is_running());
}

#[test]
fn metrics_tell_depth_age_delay_and_batch_time() {
    let mut options = options();
    options.game_loop.queue_capacity = 2;
    let mut stage = Stage::new(options);
    stage.post(slow_item("a", &stage.clock, ms(2)));
    stage.advance(ms(3));
    stage.post(item("b"));
    assert!(matches!(stage.handle.try_post(item("c")), Err(Rejected::Full(_))));
    let before = stage.handle.metrics().game_loop;
    assert_eq!((before.queue_depth, before.oldest_age_us, before.accepted, before.rejected), (2, 3000, 2, 1));
    stage.settle();
    let after = stage.handle.metrics().game_loop;
    assert_eq!((after.queue_depth, after.oldest_age_us, after.executed), (0, 0, 2));
    assert_eq!((after.batch_us.last, after.batch_us.max, after.queue_delay_us.max), (2000, 2000, 3000));
}

#[test]
fn lateness_is_counted_from_the_nominal_deadline() {
    let mut stage = Stage::new(options());
    stage.every("a", ms(10), timer("a"));
    stage.run_until(ms(16));
    stage.settle();
    assert_eq!(stage.handle.metrics().timers.lateness_us.max, 6000);
    stage.advance(ms(1000));
    stage.settle();
    assert_eq!(stage.handle.metrics().timers.coalesced, 99);
}

#[test]
fn the_snapshot_has_the_shape_that_others_rely_on() {
    let stage = Stage::new(options());
    let json = serde_json::to_value(stage.handle.metrics()).unwrap();
    let keys = |value: &serde_json::Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let sorted = |mut keys: Vec<String>| {
        keys.sort();
        keys.join(" ")
    };
    assert_eq!(sorted(keys(&json)), "loop tasks timers");
    assert_eq!(
        sorted(keys(&json["loop"])),
        "abandoned accepted batch_us executed faults oldest_age_us queue_delay_us queue_depth rejected"
    );
    assert_eq!(sorted(keys(&json["loop"]["batch_us"])), "last max p50 p99");
    assert_eq!(sorted(keys(&json["loop"]["queue_delay_us"])), "max p50 p99");
    assert_eq!(
        sorted(keys(&json["timers"])),
        "active cancelled coalesced faults fired last_batch_us lateness_us registered"
    );
    assert_eq!(sorted(keys(&json["tasks"])), "average_step_us failed finished over_budget queued running steps");
}

#[test]
fn a_value_of_zero_is_refused_with_its_key_and_value() {
    let mut bad = options();
    bad.timers.tick_ms = 0;
    let error = LoopCore::new(Script::default(), bad, crate::clock::MonotonicClock::shared()).err().unwrap();
    assert_eq!(error.to_string(), "timers.tick_ms = 0: it must be positive");
    let mut bad = options();
    bad.timers.max_pending = 1 << 40;
    assert!(bad.validate().unwrap_err().to_string().starts_with("timers.max_pending = 1099511627776: "));
}

#[test]
fn options_that_are_left_out_have_their_defaults() {
    let read: SimOptions = toml::from_str("[loop]\nqueue_capacity = 7\n[dispatch]\ntarget_tps = 30").unwrap();
    let mut expected = options();
    expected.game_loop.queue_capacity = 7;
    expected.dispatch.target_tps = 30;
    assert_eq!(read, expected);
    assert_eq!(read.dispatch.soft_budget_ms, 10);
}

#[test]
fn a_threaded_loop_runs_what_is_posted_and_joins() {
    let clock = crate::clock::MonotonicClock::shared();
    let core = LoopCore::new(Script::default(), options(), clock).unwrap();
    let game_loop = GameLoop::start(core).unwrap();
    let handle = game_loop.handle().clone();
    let ask = handle.post_with_reply(|reply| {
        Box::new(move |_: &mut Script, cx: &mut Cx<'_>| {
            let name = std::thread::current().name().map(str::to_owned);
            reply.send((name, cx.handle.is_on_loop_thread()));
            Ok(())
        }) as ScriptItem
    });
    assert_eq!(wait::block_on(ask).ok().unwrap(), (Some("wheelhouse-loop".into()), true));
    let (reply, saved) = reply::reply();
    let save: ScriptItem = Box::new(move |_, _| {
        reply.send(());
        Ok(())
    });
    assert!(handle.stop_with(save).is_ok());
    assert_eq!(wait::block_on(saved), Ok(()));
    assert!(handle.metrics().cpu_time > Duration::ZERO);
    assert!(handle.stop().is_ok(), "stopping twice is no error");
    assert!(matches!(handle.stop_with(item("save")), Err(StopError::AlreadyStopped(_))));
    assert!(matches!(handle.post_blocking(item("late")), Err(PostError::NotRunning(_))));
}

#[test]
fn a_threaded_loop_wakes_when_its_clock_is_moved_by_hand() {
    let clock = crate::clock::ManualClock::shared();
    let mut core = LoopCore::new(Script::default(), options(), clock.clone()).unwrap();
    let (reply, fired) = reply::reply();
    let mut reply = Some(reply);
    let (_, mut cx) = core.parts();
    let timer: ScriptTimer = Box::new(move |_, firing, _| {
        if let Some(reply) = reply.take() {
            reply.send(firing.late);
        }
        Ok(())
    });
    cx.register_timer("t", ms(10), None, false, timer).unwrap();
    let game_loop = GameLoop::start(core).unwrap();
    clock.advance(ms(16));
    assert_eq!(wait::block_on(fired), Ok(ms(6)));
    assert_eq!(clock.now(), ms(16));
    drop(game_loop);
}

#[test]
fn stop_after_a_failure_joins_and_returns_it() {
    let core = LoopCore::new(Script::default(), options(), crate::clock::MonotonicClock::shared()).unwrap();
    let game_loop = GameLoop::start(core).unwrap();
    let handle = game_loop.handle();
    handle.post_blocking(failing_item("broken")).ok().unwrap();
    let Err(StopError::Failed(failure)) = handle.stop_with(item("save")) else { panic!("it did not fail") };
    assert_eq!(failure.error.to_string(), "broken");
    assert!(matches!(handle.stop(), Err(StopError::Failed(_))));
}

#[test]
fn an_idle_loop_takes_no_turns() {
    let clock = crate::clock::ManualClock::shared();
    let mut core = LoopCore::new(Script::default(), options(), clock).unwrap();
    core.simulation().log_ends = true;
    let game_loop = GameLoop::start(core).unwrap();
    let turns = || {
        let ask = game_loop.handle().post_with_reply(|reply| {
            Box::new(move |script: &mut Script, _: &mut Cx<'_>| {
                reply.send(script.log.len());
                Ok(())
            }) as ScriptItem
        });
        wait::block_on(ask).ok().unwrap()
    };
    // The turn before the first item, and that of each item.
    let before = turns();
    assert!(turns() - before <= 2, "the loop turned without a reason");
}
