//! The timer wheel and the admission queue next to their peers, measured in one run and printed as a table: median
//! nanoseconds of CPU time per operation, and how many times as much the peer took. With the argument `timers` or
//! `admission` only that table.
//!
//! Like with like: every wheel can cancel by id and turns in milliseconds; ours carries a name for each timer besides.
//! Timers are spread over ten seconds, registered in random order of deadline, and cancelled in random order.

use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hierarchical_hash_wheel_timer::IdOnlyTimerEntry;
use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::cancellable::QuadWheelWithOverflow;
use tokio_util::time::DelayQueue;
use wheelhouse::clock::MonotonicClock;
use wheelhouse::sim::TimerWheel;
use wheelhouse::sim::admission::{Admission, Take};
use wheelhouse::sim::wait::block_on;

const RUNS: usize = 7;
const SPREAD_MS: u64 = 10_000;

/// Nanoseconds per operation of one run.
#[derive(Clone, Copy)]
struct Cost {
    register: f64,
    cancel: f64,
    fire: f64,
}

/// A small generator, so that all see the same numbers.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn delays(count: usize) -> Vec<Duration> {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    (0..count).map(|_| Duration::from_millis(1 + numbers.next() % SPREAD_MS)).collect()
}

/// The numbers below `count` in random order.
fn shuffled(count: usize) -> Vec<usize> {
    let mut numbers = Numbers(0xD1B5_4A32_D192_ED03);
    let mut order: Vec<usize> = (0..count).collect();
    for end in (1..count).rev() {
        order.swap(end, (numbers.next() % (end as u64 + 1)) as usize);
    }
    order
}

/// CPU time of all threads, so that other programs on the machine do not count.
fn cpu_now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn cpu_per_op(count: usize, run: impl FnOnce()) -> f64 {
    let started = cpu_now();
    run();
    (cpu_now() - started).as_nanos() as f64 / count as f64
}

fn ours(delays: &[Duration], order: &[usize], tick: Duration) -> Cost {
    let count = delays.len();
    let mut wheel = TimerWheel::new(tick, 512, count);
    let name = wheel.name("npc_think");
    let mut ids = Vec::with_capacity(count);
    let register = |wheel: &mut TimerWheel<u64>, ids: &mut Vec<_>| {
        for (index, &delay) in delays.iter().enumerate() {
            let registered = wheel.register(Duration::ZERO, name, delay, None, false, index as u64);
            ids.push(registered.expect("the wheel has room for all of them"));
        }
    };
    let registered = cpu_per_op(count, || register(&mut wheel, &mut ids));
    let cancelled: Vec<_> = order.iter().map(|&index| ids[index]).collect();
    let cancel = cpu_per_op(count, || {
        for &id in &cancelled {
            black_box(wheel.unregister(id));
        }
    });
    assert_eq!(wheel.active(), 0);
    let mut wheel = TimerWheel::new(tick, 512, count);
    wheel.name("npc_think");
    ids.clear();
    register(&mut wheel, &mut ids);
    let mut fired = 0;
    let fire = cpu_per_op(count, || {
        for now in 1..=SPREAD_MS + 8 {
            while let Some((_, payload)) = wheel.pop_due(Duration::from_millis(now)) {
                black_box(payload);
                fired += 1;
            }
        }
    });
    assert_eq!(fired, count);
    Cost { register: registered, cancel, fire }
}

fn hash_wheel(delays: &[Duration], order: &[usize]) -> Cost {
    let count = delays.len();
    let register = |wheel: &mut QuadWheelWithOverflow<IdOnlyTimerEntry<u64>>| {
        for (id, &delay) in delays.iter().enumerate() {
            assert!(wheel.insert(IdOnlyTimerEntry { id: id as u64, delay }).is_ok());
        }
    };
    let mut wheel = QuadWheelWithOverflow::new();
    let registered = cpu_per_op(count, || register(&mut wheel));
    let cancelled: Vec<_> = order.iter().map(|&index| index as u64).collect();
    let cancel = cpu_per_op(count, || {
        for id in &cancelled {
            assert!(black_box(wheel.cancel(id)).is_ok());
        }
    });
    let mut wheel = QuadWheelWithOverflow::new();
    register(&mut wheel);
    let mut fired = 0;
    let fire = cpu_per_op(count, || {
        for _ in 0..SPREAD_MS {
            // What its users do before each tick.
            black_box(matches!(wheel.can_skip(), Skip::Empty));
            for entry in wheel.tick() {
                black_box(entry.id);
                fired += 1;
            }
        }
    });
    assert_eq!(fired, count);
    Cost { register: registered, cancel, fire }
}

/// On tokio's paused clock, so that no run waits for time to pass.
fn delay_queue(delays: &[Duration], order: &[usize]) -> Cost {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime of one thread needs nothing that could be missing");
    runtime.block_on(async {
        let count = delays.len();
        let mut queue = DelayQueue::new();
        let mut keys = Vec::with_capacity(count);
        let registered = cpu_per_op(count, || {
            for (index, &delay) in delays.iter().enumerate() {
                keys.push(queue.insert(index as u64, delay));
            }
        });
        let cancelled: Vec<_> = order.iter().map(|&index| keys[index]).collect();
        let cancel = cpu_per_op(count, || {
            for key in &cancelled {
                black_box(queue.remove(key));
            }
        });
        let mut queue = DelayQueue::new();
        for (index, &delay) in delays.iter().enumerate() {
            queue.insert(index as u64, delay);
        }
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let mut fired = 0;
        let started = cpu_now();
        let mut advancing = Duration::ZERO;
        for _ in 0..SPREAD_MS + 1 {
            // Moving tokio's clock is not the queue's work.
            let before = cpu_now();
            tokio::time::advance(Duration::from_millis(1)).await;
            advancing += cpu_now() - before;
            while let std::task::Poll::Ready(Some(expired)) = queue.poll_expired(&mut cx) {
                black_box(expired.into_inner());
                fired += 1;
            }
        }
        let fire = (cpu_now() - started - advancing).as_nanos() as f64 / count as f64;
        assert_eq!(fired, count);
        Cost { register: registered, cancel, fire }
    })
}

fn median(mut costs: Vec<f64>) -> f64 {
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}

fn medians(run: impl Fn() -> Cost) -> Cost {
    let costs: Vec<Cost> = (0..RUNS).map(|_| run()).collect();
    let of = |part: fn(&Cost) -> f64| median(costs.iter().map(part).collect());
    Cost { register: of(|cost| cost.register), cancel: of(|cost| cost.cancel), fire: of(|cost| cost.fire) }
}

fn print_row(pending: usize, who: &str, cost: Cost, ours: Cost) {
    let both = |cost: Cost| cost.register + cost.fire;
    println!(
        "{pending:>9}  {who:<34} {:>8.0} {:>8.0} {:>8.0}   {:>13.2}x {:>7.2}x",
        cost.register,
        cost.cancel,
        cost.fire,
        both(cost) / both(ours),
        cost.cancel / ours.cancel,
    );
}

fn timers_table() {
    println!("Timers, ns of CPU time per operation (median of {RUNS} runs); ratios are peer / Wheelhouse");
    println!(
        "{:>9}  {:<34} {:>8} {:>8} {:>8}   {:>14} {:>8}",
        "pending", "", "register", "cancel", "fire", "register+fire", "cancel"
    );
    for pending in [10_000, 100_000, 1_000_000] {
        let delays = delays(pending);
        let order = shuffled(pending);
        let ours_1ms = medians(|| ours(&delays, &order, Duration::from_millis(1)));
        print_row(pending, "wheelhouse, names, tick 1 ms", ours_1ms, ours_1ms);
        print_row(
            pending,
            "wheelhouse, names, tick 8 ms",
            medians(|| ours(&delays, &order, Duration::from_millis(8))),
            ours_1ms,
        );
        print_row(pending, "hash wheel, cancellable", medians(|| hash_wheel(&delays, &order)), ours_1ms);
        print_row(pending, "tokio DelayQueue", medians(|| delay_queue(&delays, &order)), ours_1ms);
    }
}

/// What travels through the queues: as large as a small work item.
type Item = [u64; 4];

const CAPACITY: usize = 4096;
const ITEMS: usize = 1_000_000;

/// What a producer does when there is no room.
#[derive(Clone, Copy)]
enum WhenFull {
    /// Sleeps until there is room.
    Wait,
    /// Lets other threads go first and tries again.
    Yield,
}

fn admission(producers: usize, when_full: WhenFull) -> f64 {
    let queue = Arc::new(Admission::<Item>::new(CAPACITY, MonotonicClock::shared()));
    let mut intake = queue.intake();
    cpu_per_op(ITEMS, || {
        let threads: Vec<_> = (0..producers)
            .map(|_| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    for index in 0..ITEMS / producers {
                        let item = [index as u64; 4];
                        match when_full {
                            WhenFull::Wait => block_on(queue.post(item)).expect("the queue is open"),
                            WhenFull::Yield => {
                                while queue.try_post(item).is_err() {
                                    thread::yield_now();
                                }
                            }
                        }
                    }
                })
            })
            .collect();
        let mut left = ITEMS / producers * producers;
        while left > 0 {
            match intake.take() {
                Take::Item(taken) => {
                    black_box(taken.item);
                    left -= 1;
                }
                _ => intake.sleep(None, true),
            }
        }
        threads.into_iter().for_each(|thread| thread.join().expect("a producer only posts"));
    })
}

fn bare_channel(producers: usize, when_full: WhenFull) -> f64 {
    let (sender, receiver) = crossbeam_channel::bounded::<Item>(CAPACITY);
    cpu_per_op(ITEMS, || {
        let threads: Vec<_> = (0..producers)
            .map(|_| {
                let sender = sender.clone();
                thread::spawn(move || {
                    for index in 0..ITEMS / producers {
                        let item = [index as u64; 4];
                        match when_full {
                            WhenFull::Wait => sender.send(item).expect("the receiver lives"),
                            WhenFull::Yield => {
                                while sender.try_send(item).is_err() {
                                    thread::yield_now();
                                }
                            }
                        }
                    }
                })
            })
            .collect();
        for _ in 0..ITEMS / producers * producers {
            black_box(receiver.recv().expect("the senders live"));
        }
        threads.into_iter().for_each(|thread| thread.join().expect("a producer only sends"));
    })
}

/// Fills the queue and empties it on one thread: the cost without any contention.
fn admission_alone() -> f64 {
    let queue = Arc::new(Admission::<Item>::new(CAPACITY, MonotonicClock::shared()));
    let mut intake = queue.intake();
    cpu_per_op(ITEMS, || {
        for _ in 0..ITEMS / CAPACITY {
            for index in 0..CAPACITY {
                queue.try_post([index as u64; 4]).expect("the queue was emptied");
            }
            while let Take::Item(taken) = intake.take() {
                black_box(taken.item);
            }
        }
    })
}

fn bare_channel_alone() -> f64 {
    let (sender, receiver) = crossbeam_channel::bounded::<Item>(CAPACITY);
    cpu_per_op(ITEMS, || {
        for _ in 0..ITEMS / CAPACITY {
            for index in 0..CAPACITY {
                sender.try_send([index as u64; 4]).expect("the channel was emptied");
            }
            while let Ok(item) = receiver.try_recv() {
                black_box(item);
            }
        }
    })
}

fn admission_table() {
    println!();
    println!(
        "Admission, ns of CPU time per item in and out (median of {RUNS} runs); ours stamps the time of each item besides"
    );
    println!("{:<32} {:>12} {:>22} {:>14}", "producers", "wheelhouse", "crossbeam bounded", "ours / bare");
    let median_of = |run: &dyn Fn() -> f64| median((0..RUNS).map(|_| run()).collect());
    let row = |who: &str, ours: f64, bare: f64| println!("{who:<32} {ours:>12.0} {bare:>22.0} {:>13.2}x", ours / bare);
    row("none, one thread", median_of(&admission_alone), median_of(&bare_channel_alone));
    for (when_full, does) in [(WhenFull::Yield, "yielding if full"), (WhenFull::Wait, "waiting if full")] {
        for producers in [1, 2, 4] {
            row(
                &format!("{producers} thread(s), {does}"),
                median_of(&|| admission(producers, when_full)),
                median_of(&|| bare_channel(producers, when_full)),
            );
        }
    }
}

fn main() {
    let only = |part: &str| std::env::args().any(|argument| argument == part);
    if !only("admission") {
        timers_table();
    }
    if !only("timers") {
        admission_table();
    }
}
