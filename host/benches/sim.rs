//! Statistics over time of what the loop does most: one timer registered, cancelled or fired while 100,000 are pending,
//! and one item in and out of the queue. `sim_table.rs` compares with peers.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use wheelhouse::clock::MonotonicClock;
use wheelhouse::sim::TimerWheel;
use wheelhouse::sim::admission::{Admission, Take};

const PENDING: u64 = 100_000;

/// A wheel with timers that repeat every 500 ms, spread evenly.
fn busy_wheel() -> TimerWheel<u64> {
    let mut wheel = TimerWheel::new(Duration::from_millis(8), 512, PENDING as usize + 1);
    let name = wheel.name("npc_think");
    for index in 0..PENDING {
        let delay = Duration::from_micros(1 + index * 500_000 / PENDING);
        let interval = Duration::from_millis(500);
        wheel.register(Duration::ZERO, name, interval, Some(delay), true, index).expect("there is room");
    }
    wheel
}

fn timers(c: &mut Criterion) {
    let mut wheel = busy_wheel();
    let name = wheel.name("once");
    c.bench_function("timer: register and cancel", |bencher| {
        bencher.iter(|| {
            let interval = black_box(Duration::from_millis(1234));
            let id = wheel.register(Duration::ZERO, name, interval, None, false, 0).expect("there is room");
            black_box(wheel.unregister(id))
        });
    });
    let mut wheel = busy_wheel();
    let mut now = Duration::ZERO;
    c.bench_function("timer: fire one that repeats", |bencher| {
        bencher.iter(|| {
            loop {
                if let Some((firing, payload)) = wheel.pop_due(now) {
                    wheel.put_back(firing.id, payload);
                    break firing.missed;
                }
                now += wheel.next_wakeup(now).expect("the timers repeat");
            }
        });
    });
}

fn admission(c: &mut Criterion) {
    let queue = Arc::new(Admission::<[u64; 4]>::new(4096, MonotonicClock::shared()));
    let mut intake = queue.intake();
    c.bench_function("admission: one item in and out", |bencher| {
        bencher.iter(|| {
            queue.try_post(black_box([1; 4])).expect("there is room");
            let Take::Item(taken) = intake.take() else { panic!("an item was posted") };
            taken.item
        });
    });
}

criterion_group!(benches, timers, admission);
criterion_main!(benches);
