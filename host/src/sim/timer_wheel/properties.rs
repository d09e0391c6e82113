//! The wheel against a naive model: whatever is registered, cancelled and waited for, both fire the same timers with
//! the same firings in the same order.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const TICK_MS: u64 = 8;
const NAMES: [&str; 3] = ["sheep", "wolf", "rain"];
/// Small, so that the bound is met.
const MAX_PENDING: usize = 24;

/// One thing done to both.
#[derive(Clone, Debug)]
enum Deed {
    Register {
        name: usize,
        interval_us: u64,
        delay_us: Option<u64>,
        repeat: bool,
        when_fired: WhenFired,
    },
    /// Cancels one of the timers registered so far, dead or alive.
    Cancel {
        nth: usize,
    },
    CancelNamed {
        name: usize,
    },
    CancelAll,
    /// Moves time on, then fires at most so many.
    Advance {
        by_us: u64,
        at_most: usize,
    },
}

/// What a timer's callback does, each time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum WhenFired {
    Nothing,
    CancelSelf,
    CancelNth(usize),
    CancelNamed(usize),
    RegisterOnce { interval_us: u64 },
}

fn durations_us() -> impl Strategy<Value = u64> {
    // Within a tick, a turn (8 slots of 8 ms), several turns, several levels.
    prop_oneof![1..9_000u64, 1..70_000u64, 50_000..1_000_000u64, 1_000_000..500_000_000u64]
}

fn when_fired() -> impl Strategy<Value = WhenFired> {
    prop_oneof![
        4 => Just(WhenFired::Nothing),
        1 => Just(WhenFired::CancelSelf),
        1 => (0..64usize).prop_map(WhenFired::CancelNth),
        1 => (0..NAMES.len()).prop_map(WhenFired::CancelNamed),
        1 => durations_us().prop_map(|interval_us| WhenFired::RegisterOnce { interval_us }),
    ]
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let register = (0..NAMES.len(), durations_us(), proptest::option::of(durations_us()), any::<bool>(), when_fired())
        .prop_map(|(name, interval_us, delay_us, repeat, when_fired)| Deed::Register {
            name,
            // Not so short that the model would count occurrences for hours.
            interval_us: interval_us.max(if repeat { 2_000 } else { 1 }),
            delay_us,
            repeat,
            when_fired,
        });
    let deed = prop_oneof![
        8 => register,
        3 => (0..64usize).prop_map(|nth| Deed::Cancel { nth }),
        1 => (0..NAMES.len()).prop_map(|name| Deed::CancelNamed { name }),
        6 => (durations_us(), prop_oneof![Just(usize::MAX), 0..4usize])
            .prop_map(|(by_us, at_most)| Deed::Advance { by_us, at_most }),
    ];
    let deed = prop_oneof![60 => deed, 1 => Just(Deed::CancelAll)];
    proptest::collection::vec(deed, 1..80)
}

/// A timer of the model.
#[derive(Clone)]
struct Plain {
    name: usize,
    deadline_ns: u64,
    interval_ns: Option<u64>,
    when_fired: WhenFired,
}

/// Timers in a map by id, which is by order of registration; whatever is asked is found by looking at all of them.
#[derive(Default)]
struct Model {
    timers: BTreeMap<TimerId, Plain>,
}

fn tick_of(ns: u64) -> u64 {
    ns.div_ceil(TICK_MS * 1_000_000)
}

impl Model {
    fn next_tick(&self) -> Option<u64> {
        self.timers.values().map(|timer| tick_of(timer.deadline_ns)).min()
    }

    /// The firing that is due at `now`: its id, missed occurrences and nominal deadline.
    fn fire(&mut self, now_ns: u64) -> Option<(TimerId, u64, u64)> {
        let now_tick = now_ns / (TICK_MS * 1_000_000);
        let (&id, timer) = self.timers.iter_mut().min_by_key(|(id, timer)| (tick_of(timer.deadline_ns), **id))?;
        if tick_of(timer.deadline_ns) > now_tick {
            return None;
        }
        let due_ns = timer.deadline_ns;
        let Some(interval_ns) = timer.interval_ns else {
            self.timers.remove(&id);
            return Some((id, 0, due_ns));
        };
        timer.deadline_ns += interval_ns;
        let mut missed = 0;
        while tick_of(timer.deadline_ns) <= now_tick {
            timer.deadline_ns += interval_ns;
            missed += 1;
        }
        Some((id, missed, due_ns))
    }

    fn cancel_named(&mut self, name: usize) -> usize {
        let before = self.timers.len();
        self.timers.retain(|_, timer| timer.name != name);
        before - self.timers.len()
    }
}

/// The wheel and the model side by side.
struct Pair {
    wheel: TimerWheel<WhenFired>,
    model: Model,
    now_us: u64,
    ids: Vec<TimerId>,
}

impl Pair {
    fn now(&self) -> Duration {
        Duration::from_micros(self.now_us)
    }

    fn register(&mut self, name: usize, interval_us: u64, delay_us: Option<u64>, repeat: bool, when_fired: WhenFired) {
        let interval = Duration::from_micros(interval_us);
        let delay = delay_us.map(Duration::from_micros);
        let registered = self.wheel.register_named(self.now(), NAMES[name], interval, delay, repeat, when_fired);
        if self.model.timers.len() == MAX_PENDING {
            assert!(matches!(registered, Err(TimerError::Full { .. })));
            return;
        }
        let id = registered.unwrap();
        assert!(self.ids.last().is_none_or(|last| *last < id));
        self.ids.push(id);
        let deadline_ns = (self.now_us + delay_us.unwrap_or(interval_us)) * 1000;
        let interval_ns = repeat.then_some(interval_us * 1000);
        self.model.timers.insert(id, Plain { name, deadline_ns, interval_ns, when_fired });
    }

    fn cancel_nth(&mut self, nth: usize) {
        if self.ids.is_empty() {
            return;
        }
        let id = self.ids[nth % self.ids.len()];
        assert_eq!(self.wheel.unregister(id), self.model.timers.remove(&id).is_some());
    }

    fn cancel_named(&mut self, name: usize) {
        assert_eq!(self.wheel.unregister_named(NAMES[name]), self.model.cancel_named(name));
    }

    /// Fires one timer of both, and does what its callback does. `false` when none is due.
    fn fire(&mut self) -> bool {
        let name_of = |model: &Model, id| model.timers.get(&id).map(|timer: &Plain| timer.name);
        let Some((firing, when_fired)) = self.wheel.pop_due(self.now()) else {
            assert_eq!(self.model.fire(self.now_us * 1000), None);
            return false;
        };
        let before = self.model.timers.get(&firing.id).cloned();
        let expected = self.model.fire(self.now_us * 1000).expect("the model has a timer that is due");
        assert_eq!((firing.id, firing.missed, firing.due.as_nanos() as u64), expected);
        assert_eq!(firing.late, self.now() - firing.due);
        assert_eq!(firing.repeats, name_of(&self.model, firing.id).is_some());
        assert_eq!(Some(when_fired), before.map(|timer| timer.when_fired));
        match when_fired {
            WhenFired::Nothing => {}
            WhenFired::CancelSelf => {
                assert_eq!(self.wheel.unregister(firing.id), self.model.timers.remove(&firing.id).is_some());
            }
            WhenFired::CancelNth(nth) => self.cancel_nth(nth),
            WhenFired::CancelNamed(name) => self.cancel_named(name),
            WhenFired::RegisterOnce { interval_us } => self.register(0, interval_us, None, false, WhenFired::Nothing),
        }
        self.wheel.put_back(firing.id, when_fired);
        true
    }

    fn compare(&mut self) {
        assert_eq!(self.wheel.active(), self.model.timers.len());
        for (index, name) in NAMES.into_iter().enumerate() {
            let count = self.model.timers.values().filter(|timer| timer.name == index).count();
            assert_eq!(self.wheel.active_named(name), count);
        }
        let wakeup = self.wheel.next_wakeup(self.now());
        if let Some(tick) = self.model.next_tick() {
            let at = Duration::from_millis(tick * TICK_MS);
            assert!(wakeup.is_some_and(|wait| self.now() + wait <= at.max(self.now())), "would sleep too long");
        }
    }

    fn deed(&mut self, deed: Deed) {
        match deed {
            Deed::Register { name, interval_us, delay_us, repeat, when_fired } => {
                self.register(name, interval_us, delay_us, repeat, when_fired);
            }
            Deed::Cancel { nth } => self.cancel_nth(nth),
            Deed::CancelNamed { name } => self.cancel_named(name),
            Deed::CancelAll => {
                assert_eq!(self.wheel.unregister_all(), self.model.timers.len());
                self.model.timers.clear();
            }
            Deed::Advance { by_us, at_most } => {
                self.now_us += by_us;
                let mut fired = 0;
                while fired < at_most && self.fire() {
                    fired += 1;
                }
            }
        }
        self.compare();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_wheel_does_what_a_sorted_map_does(deeds in deeds(), size in prop_oneof![Just(1usize), Just(8), Just(128)]) {
        let wheel = TimerWheel::new(Duration::from_millis(TICK_MS), size, MAX_PENDING);
        let mut pair = Pair { wheel, model: Model::default(), now_us: 0, ids: Vec::new() };
        for deed in deeds {
            pair.deed(deed);
        }
        // Whatever is left fires or goes on for ever alike.
        pair.deed(Deed::Advance { by_us: 2_000_000_000, at_most: 200 });
    }
}
