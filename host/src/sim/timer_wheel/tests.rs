//! The sentences of the timer wheel's contract, one test each.

use super::*;

const TICK: Duration = ms(8);
/// One turn of the lowest level: 16 slots of 8 ms.
const TURN: Duration = ms(128);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A small wheel and its time.
struct Bench {
    wheel: TimerWheel<&'static str>,
    now: Duration,
}

impl Bench {
    fn new() -> Self {
        Self { wheel: TimerWheel::new(TICK, 16, 100), now: Duration::ZERO }
    }

    fn once(&mut self, name: &'static str, after: Duration) -> TimerId {
        self.wheel.register_named(self.now, name, after, None, false, name).unwrap()
    }

    fn every(&mut self, name: &'static str, interval: Duration) -> TimerId {
        self.wheel.register_named(self.now, name, interval, None, true, name).unwrap()
    }

    /// Moves to `now` and fires what is due.
    fn run_to(&mut self, now: Duration) -> Vec<(&'static str, Firing)> {
        self.now = now;
        let mut fired = Vec::new();
        while let Some((firing, payload)) = self.wheel.pop_due(now) {
            self.wheel.put_back(firing.id, payload);
            fired.push((payload, firing));
        }
        fired
    }

    fn names_at(&mut self, now: Duration) -> Vec<&'static str> {
        self.run_to(now).into_iter().map(|(name, _)| name).collect()
    }
}

#[test]
fn a_deadline_rounds_up_to_the_tick() {
    let mut bench = Bench::new();
    bench.once("a", ms(9));
    assert!(bench.names_at(ms(9)).is_empty());
    assert!(bench.names_at(Duration::from_micros(15_999)).is_empty());
    assert_eq!(bench.names_at(ms(16)), ["a"]);
}

#[test]
fn a_deadline_on_the_tick_is_not_rounded() {
    let mut bench = Bench::new();
    bench.once("a", ms(16));
    assert!(bench.names_at(ms(15)).is_empty());
    assert_eq!(bench.names_at(ms(16)), ["a"]);
}

#[test]
fn no_timer_fires_early_whatever_its_delay_and_start() {
    for start_us in [0, 1, 7_999, 8_000, 8_001, 127_000] {
        for delay_us in [1, 7_999, 8_000, 8_001, 120_000, 127_999, 128_000, 128_001, 500_000, 70_000_000] {
            let mut bench = Bench::new();
            bench.now = Duration::from_micros(start_us);
            let due = Duration::from_micros(start_us + delay_us);
            bench.once("a", Duration::from_micros(delay_us));
            let tick_of_due = ms(due.as_micros().div_ceil(8_000) as u64 * 8);
            assert!(bench.names_at(tick_of_due - Duration::from_nanos(1)).is_empty(), "{start_us} {delay_us}");
            assert_eq!(bench.names_at(tick_of_due), ["a"], "{start_us} {delay_us}");
        }
    }
}

#[test]
fn without_a_delay_the_first_firing_comes_after_one_interval() {
    let mut bench = Bench::new();
    bench.every("a", ms(40));
    assert!(bench.names_at(ms(39)).is_empty());
    assert_eq!(bench.names_at(ms(40)), ["a"]);
}

#[test]
fn a_delay_moves_the_first_firing_and_the_nominal_schedule() {
    let mut bench = Bench::new();
    bench.wheel.register_named(ms(0), "a", ms(40), Some(ms(8)), true, "a").unwrap();
    assert_eq!(bench.names_at(ms(8)), ["a"]);
    assert!(bench.names_at(ms(47)).is_empty());
    assert_eq!(bench.names_at(ms(48)), ["a"]);
}

#[test]
fn a_timer_that_does_not_repeat_fires_once() {
    let mut bench = Bench::new();
    let id = bench.once("a", ms(8));
    let fired = bench.run_to(ms(8));
    assert!(!fired[0].1.repeats);
    assert!(!bench.wheel.contains(id));
    assert!(bench.run_to(ms(10_000)).is_empty());
}

#[test]
fn a_zero_interval_or_delay_is_refused_with_the_name() {
    let mut bench = Bench::new();
    let error = bench.wheel.register_named(ms(0), "sheep", ms(0), None, true, "a").unwrap_err();
    assert_eq!(error, TimerError::ZeroInterval { name: "sheep".into() });
    let error = bench.wheel.register_named(ms(0), "sheep", ms(1), Some(ms(0)), true, "a").unwrap_err();
    assert_eq!(error, TimerError::ZeroDelay { name: "sheep".into() });
    assert_eq!(bench.wheel.active(), 0);
}

#[test]
fn repeats_keep_the_nominal_schedule_and_do_not_drift() {
    let mut bench = Bench::new();
    bench.every("a", ms(50));
    // Always looked at late, and an interval that is no multiple of the tick.
    for occurrence in 1..=1000u64 {
        let fired = bench.run_to(ms(occurrence * 50 + 13));
        assert_eq!(fired.len(), 1);
        assert_eq!(fired[0].1.due, ms(occurrence * 50));
        assert_eq!(fired[0].1.late, ms(13));
        assert_eq!(fired[0].1.missed, 0);
    }
}

#[test]
fn a_repeating_timer_that_missed_five_turns_fires_once() {
    let mut bench = Bench::new();
    bench.every("a", TURN);
    let fired = bench.run_to(TURN * 6 + ms(3));
    assert_eq!(fired.len(), 1);
    assert_eq!(fired[0].1.missed, 5);
    assert_eq!(fired[0].1.due, TURN);
    assert_eq!(bench.wheel.counts().coalesced, 5);
    assert!(bench.run_to(TURN * 7 - ms(1)).is_empty());
    let fired = bench.run_to(TURN * 7);
    assert_eq!((fired.len(), fired[0].1.missed), (1, 0));
}

#[test]
fn an_interval_shorter_than_the_tick_fires_once_a_tick() {
    let mut bench = Bench::new();
    bench.every("a", ms(1));
    assert_eq!(bench.run_to(ms(8))[0].1.missed, 7);
    assert_eq!(bench.run_to(ms(16))[0].1.missed, 7);
    assert!(bench.run_to(ms(17)).is_empty());
}

#[test]
fn equal_deadlines_fire_in_order_of_registration() {
    let mut bench = Bench::new();
    bench.once("a", ms(20));
    bench.now = ms(1);
    bench.once("b", ms(23));
    bench.once("c", ms(17));
    assert_eq!(bench.names_at(ms(24)), ["a", "b", "c"]);
}

#[test]
fn a_repeat_keeps_its_place_among_equal_deadlines() {
    let mut bench = Bench::new();
    bench.every("old", ms(16));
    bench.once("young", ms(32));
    // The repeat enters the slot after the younger timer, and still goes first.
    assert_eq!(bench.names_at(ms(16)), ["old"]);
    assert_eq!(bench.names_at(ms(32)), ["old", "young"]);
}

#[test]
fn timers_from_all_levels_keep_their_order() {
    let mut bench = Bench::new();
    let due = TURN * 70;
    let names = ["a", "b", "c", "d"];
    // Registered 70 turns, 5 turns, half a turn and one tick before.
    for (name, before) in names.into_iter().zip([TURN * 70, TURN * 5, TURN / 2, TICK]) {
        assert!(bench.names_at(due - before).is_empty());
        bench.once(name, before);
    }
    assert_eq!(bench.names_at(due), names);
}

#[test]
fn earlier_deadlines_fire_first_in_a_late_pass() {
    let mut bench = Bench::new();
    bench.once("late", ms(5000));
    bench.once("early", ms(40));
    bench.once("middle", ms(300));
    assert_eq!(bench.names_at(ms(9000)), ["early", "middle", "late"]);
}

#[test]
fn intervals_of_many_turns_work() {
    let mut bench = Bench::new();
    let year = Duration::from_secs(365 * 24 * 3600);
    bench.every("yearly", year);
    assert!(bench.run_to(year - ms(1)).is_empty());
    assert_eq!(bench.names_at(year), ["yearly"]);
    assert!(bench.run_to(year * 2 - ms(1)).is_empty());
    assert_eq!(bench.names_at(year * 2), ["yearly"]);
}

#[test]
fn the_longest_interval_is_no_trouble() {
    let mut bench = Bench::new();
    bench.wheel.register_named(ms(1), "never", Duration::MAX, Some(Duration::MAX), true, "never").unwrap();
    assert!(bench.names_at(Duration::from_secs(1 << 33)).is_empty());
    assert!(bench.wheel.next_wakeup(bench.now).is_some());
}

#[test]
fn a_cancelled_timer_does_not_fire() {
    let mut bench = Bench::new();
    let a = bench.once("a", ms(8));
    bench.once("b", ms(8));
    assert!(bench.wheel.unregister(a));
    assert!(!bench.wheel.unregister(a));
    assert_eq!(bench.names_at(ms(8)), ["b"]);
    assert_eq!(bench.wheel.counts().cancelled, 1);
}

#[test]
fn an_old_id_never_names_a_newer_timer() {
    let mut bench = Bench::new();
    let old = bench.once("a", ms(8));
    bench.wheel.unregister(old);
    let new = bench.once("b", ms(8));
    assert_ne!(old, new);
    assert!(!bench.wheel.unregister(old));
    assert_eq!(bench.names_at(ms(8)), ["b"]);
    assert!(!bench.wheel.unregister(TimerId::from_u64(0)));
    assert!(!bench.wheel.unregister(TimerId::from_u64(u64::MAX)));
}

#[test]
fn names_may_be_shared_and_are_cancelled_together() {
    let mut bench = Bench::new();
    for after in [8, 500, 100_000] {
        bench.once("flock", ms(after));
    }
    bench.once("wolf", ms(8));
    assert_eq!(bench.wheel.active_named("flock"), 3);
    assert_eq!(bench.wheel.unregister_named("flock"), 3);
    assert_eq!(bench.wheel.unregister_named("flock"), 0);
    assert_eq!(bench.wheel.unregister_named("nobody"), 0);
    assert_eq!(bench.names_at(ms(200_000)), ["wolf"]);
}

#[test]
fn all_timers_can_be_cancelled_and_the_wheel_goes_on() {
    let mut bench = Bench::new();
    bench.once("a", ms(8));
    bench.every("b", ms(5000));
    assert_eq!(bench.wheel.unregister_all(), 2);
    assert_eq!(bench.wheel.next_wakeup(ms(0)), None);
    bench.once("c", ms(16));
    assert_eq!(bench.names_at(ms(20_000)), ["c"]);
}

#[test]
fn a_timer_can_cancel_itself_while_it_fires() {
    let mut bench = Bench::new();
    bench.every("a", ms(8));
    let (firing, payload) = bench.wheel.pop_due(ms(8)).unwrap();
    assert!(bench.wheel.unregister(firing.id));
    bench.wheel.put_back(firing.id, payload);
    assert_eq!(bench.wheel.active(), 0);
    assert!(bench.names_at(ms(1000)).is_empty());
}

#[test]
fn a_timer_can_cancel_another_that_is_due_in_the_same_tick() {
    let mut bench = Bench::new();
    bench.once("a", ms(8));
    let b = bench.every("b", ms(8));
    let (first, _) = bench.wheel.pop_due(ms(8)).unwrap();
    assert_eq!(bench.wheel.name_text(first.name), "a");
    assert!(bench.wheel.unregister(b));
    assert!(bench.names_at(ms(1000)).is_empty());
}

#[test]
fn all_can_be_cancelled_while_one_fires() {
    let mut bench = Bench::new();
    bench.every("a", ms(8));
    bench.every("b", ms(8));
    let (firing, payload) = bench.wheel.pop_due(ms(8)).unwrap();
    assert_eq!(bench.wheel.unregister_all(), 2);
    // A new timer in the same entry is not given the old one's payload.
    bench.once("c", ms(8));
    bench.wheel.put_back(firing.id, payload);
    assert_eq!(bench.names_at(ms(16)), ["c"]);
}

#[test]
fn a_timer_registered_while_one_fires_waits_for_its_own_deadline() {
    let mut bench = Bench::new();
    bench.once("a", ms(8));
    bench.wheel.pop_due(ms(8)).unwrap();
    bench.now = ms(8);
    bench.once("b", ms(1));
    assert!(bench.names_at(ms(8)).is_empty());
    assert_eq!(bench.names_at(ms(16)), ["b"]);
}

#[test]
fn the_wheel_is_bounded_and_a_firing_makes_room() {
    let mut bench = Bench::new();
    bench.wheel = TimerWheel::new(TICK, 16, 2);
    bench.once("a", ms(8));
    bench.once("b", ms(16));
    let error = bench.wheel.register_named(ms(0), "c", ms(8), None, false, "c").unwrap_err();
    assert_eq!(error, TimerError::Full { name: "c".into(), max_pending: 2 });
    bench.wheel.pop_due(ms(8)).unwrap();
    bench.once("c", ms(8));
}

#[test]
fn a_closed_wheel_has_no_timers_and_takes_none() {
    let mut bench = Bench::new();
    bench.once("a", ms(8));
    assert_eq!(bench.wheel.close(), 1);
    let error = bench.wheel.register_named(ms(0), "b", ms(8), None, false, "b").unwrap_err();
    assert_eq!(error, TimerError::Stopped { name: "b".into() });
    assert!(bench.names_at(ms(100)).is_empty());
}

#[test]
fn a_pass_that_is_cut_short_goes_on_where_it_stopped() {
    let mut bench = Bench::new();
    for name in ["a", "b", "c"] {
        bench.once(name, ms(8));
    }
    let (first, _) = bench.wheel.pop_due(ms(8)).unwrap();
    assert_eq!(bench.wheel.name_text(first.name), "a");
    assert_eq!(bench.wheel.next_wakeup(ms(8)), Some(Duration::ZERO));
    bench.now = ms(9);
    bench.once("d", ms(1));
    assert_eq!(bench.names_at(ms(16)), ["b", "c", "d"]);
}

#[test]
fn the_next_wakeup_is_exact_within_a_turn() {
    let mut bench = Bench::new();
    assert_eq!(bench.wheel.next_wakeup(ms(0)), None);
    bench.once("a", ms(50));
    assert_eq!(bench.wheel.next_wakeup(ms(1)), Some(ms(55)));
    assert_eq!(bench.wheel.next_wakeup(ms(60)), Some(Duration::ZERO));
}

#[test]
fn a_loop_that_sleeps_by_the_wheel_wakes_a_few_times_for_a_distant_timer() {
    let mut bench = Bench::new();
    let day = Duration::from_secs(24 * 3600);
    bench.once("a", day);
    let mut wakes = 0;
    loop {
        wakes += 1;
        let wait = bench.wheel.next_wakeup(bench.now).unwrap();
        let fired = bench.names_at(bench.now + wait);
        if !fired.is_empty() {
            assert_eq!(bench.now, day);
            break;
        }
    }
    assert!(wakes <= 5, "{wakes}");
}

#[test]
fn after_the_last_cancellation_there_is_nothing_to_wake_for() {
    let mut bench = Bench::new();
    let ids: Vec<_> = (1..=40).map(|index| bench.once("a", ms(index * 700))).collect();
    for id in ids {
        assert!(bench.wheel.next_wakeup(ms(0)).is_some());
        bench.wheel.unregister(id);
    }
    assert_eq!(bench.wheel.next_wakeup(ms(0)), None);
}

#[test]
fn a_wheel_of_any_size_works() {
    for size in [1, 3, 16, 64, 100, 4096] {
        let mut bench = Bench::new();
        bench.wheel = TimerWheel::new(TICK, size, 100);
        bench.every("a", ms(1000));
        for second in 1..=20 {
            assert!(bench.names_at(ms(second * 1000 - 1)).is_empty(), "{size}");
            assert_eq!(bench.names_at(ms(second * 1000)), ["a"], "{size}");
        }
    }
}

#[test]
fn a_clock_that_went_back_costs_no_timer() {
    let mut bench = Bench::new();
    assert!(bench.names_at(ms(1000)).is_empty());
    bench.once("keeps the wheel where it is", ms(1000));
    bench.now = ms(500);
    bench.once("a", ms(8));
    assert_eq!(bench.names_at(ms(1008)), ["a"]);
}

#[test]
fn names_from_outside_do_not_pile_up() {
    let mut wheel = TimerWheel::new(TICK, 16, 100);
    let kept = wheel.name("kept");
    for round in 0..10_000u64 {
        let now = ms(round * 8);
        wheel.register_named(now, &format!("name {round}"), ms(8), None, false, round).unwrap();
        let fired = wheel.pop_due(now).map(|(firing, round)| (wheel.name_text(firing.name).to_owned(), round));
        assert_eq!(fired, round.checked_sub(1).map(|before| (format!("name {before}"), before)));
    }
    assert!(wheel.names.len() <= 1100, "{}", wheel.names.len());
    assert_eq!(wheel.name_text(kept), "kept");
    assert_eq!(wheel.name("kept"), kept);
}

#[test]
fn a_name_does_not_gather_the_timers_that_ended() {
    let mut wheel = TimerWheel::new(TICK, 16, 1000);
    let name = wheel.name("npc_think");
    let lasting: Vec<_> =
        (0..50).map(|_| wheel.register(ms(0), name, ms(900_000_000), None, false, 0).unwrap()).collect();
    for round in 0..20_000u64 {
        let id = wheel.register(ms(round), name, ms(10), None, false, round).unwrap();
        if round % 3 == 0 {
            assert!(wheel.unregister(id));
        }
        while wheel.pop_due(ms(round)).is_some() {}
        assert!(wheel.names.carried(name) <= 3 * 70 + 32, "{}", wheel.names.carried(name));
    }
    assert!(lasting.iter().all(|&id| wheel.contains(id)));
    let active = wheel.active();
    assert!(active >= 50);
    assert_eq!(wheel.unregister_all_of(name), active);
    assert_eq!((wheel.active(), wheel.next_wakeup(ms(20_000))), (0, None));
}
