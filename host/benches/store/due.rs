//! A host with 10,000 events due in every second, each of which changes something durable: how late they run, and what
//! that costs the loop and the disk. Beside it a thread that does nothing but sleep and look how late it is woken, which
//! tells what the machine adds while others use it too.

use std::thread;
use std::time::{Duration, Instant};

use wheelhouse::clock::MonotonicClock;
use wheelhouse::server::Host;

use super::world::{self, Client};
use super::{median, ms, verdict};

const PER_MS: u64 = 10;
const SECONDS: u64 = 6;
const EVENTS: u64 = SECONDS * 1000 * PER_MS;
/// It is measured so often, each time on a new store; the medians count.
const ROUNDS: usize = 3;
/// Events that one handler schedules.
const BATCH: u64 = 1_000;
/// From the scheduling of the first to when it is due, time enough to schedule all.
const LEAD_MS: u64 = 3_000;
/// What the last may be late at most.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two times at which the sleeping thread wants to be woken.
const SLEEP: Duration = Duration::from_millis(4);

const GOAL_P99_MS: f64 = 16.0;

pub fn print_table() {
    let rounds: Vec<Round> = (0..ROUNDS).map(|_| round()).collect();
    let of = |part: fn(&Round) -> f64| median(rounds.iter().map(part).collect());
    let p99_ms = of(|round| round.events.p99_ms);
    println!(
        "A host with {} events due per second, each adding one in kv, for {SECONDS} s; medians of {ROUNDS} runs",
        PER_MS * 1000
    );
    println!("{:<26} {:>9} {:>9} {:>9} {:>6}", "", "late p50", "p99", "max", "goal");
    let row = |of: &str, p50_ms: f64, p99_ms: f64, max_ms: f64, verdict: &str| {
        println!("{of:<26} {p50_ms:>6.1} ms {p99_ms:>6.1} ms {max_ms:>6.1} ms {verdict:>6}");
    };
    row(
        "events",
        of(|round| round.events.p50_ms),
        p99_ms,
        of(|round| round.events.max_ms),
        verdict(p99_ms <= GOAL_P99_MS),
    );
    row(
        "a thread that only sleeps",
        of(|round| round.sleeper.p50_ms),
        of(|round| round.sleeper.p99_ms),
        of(|round| round.sleeper.max_ms),
        "",
    );
    println!(
        "{:.0} events/s with {:.0}% of the loop's time; {:.0} commits/s, each p50 {:.1} ms, p99 {:.1} ms",
        of(|round| round.fired_per_s),
        of(|round| round.loop_percent),
        of(|round| round.commits_per_s),
        of(|round| round.commit_p50_ms),
        of(|round| round.commit_p99_ms),
    );
    println!();
}

/// A distribution of lateness.
struct Late {
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

/// What one run showed.
struct Round {
    events: Late,
    sleeper: Late,
    fired_per_s: f64,
    loop_percent: f64,
    commits_per_s: f64,
    commit_p50_ms: f64,
    commit_p99_ms: f64,
}

fn round() -> Round {
    let folder = world::folder();
    let config = world::config(&folder.path().join("data"));
    let host = Host::start(&config, MonotonicClock::shared()).expect("the folder is new and the ports are free");
    let mut client = Client::connect(host.gate_address());
    let start_ms = schedule_all(&mut client);
    let left_ms = start_ms.checked_sub(world::wall_ms()).expect("all are scheduled before the first is due");
    thread::sleep(Duration::from_millis(left_ms));

    let sleeper = thread::spawn(sleep_and_look);
    let (began, before, cpu_before) = (Instant::now(), host.status(), host.loop_cpu_time());
    thread::sleep(Duration::from_secs(SECONDS));
    let (took, after, cpu) = (began.elapsed(), host.status(), host.loop_cpu_time() - cpu_before);
    let until = Instant::now() + PATIENCE;
    while host.status().events.counts.fired < EVENTS && Instant::now() < until {
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(client.ask("sum"), format!("sum {EVENTS}"), "every event counts once");
    let end = host.status();
    host.stop().expect("the disk has room");

    let us = |us: u64| us as f64 / 1e3;
    let late = end.events.lateness_us;
    Round {
        events: Late { p50_ms: us(late.p50), p99_ms: us(late.p99), max_ms: us(late.max) },
        sleeper: sleeper.join().expect("it only sleeps"),
        fired_per_s: (after.events.counts.fired - before.events.counts.fired) as f64 / took.as_secs_f64(),
        loop_percent: 100.0 * cpu.as_secs_f64() / took.as_secs_f64(),
        commits_per_s: (after.store.commits - before.store.commits) as f64 / took.as_secs_f64(),
        commit_p50_ms: us(end.store.commit_us.p50),
        commit_p99_ms: us(end.store.commit_us.p99),
    }
}

/// Schedules the events and answers when the first is due.
fn schedule_all(client: &mut Client) -> u64 {
    let start_ms = world::wall_ms() + LEAD_MS;
    for first in (0..EVENTS).step_by(BATCH as usize) {
        client.send(&format!("march {start_ms} {PER_MS} {first} {BATCH}"));
    }
    for _ in 0..EVENTS / BATCH {
        assert_eq!(client.receive(), format!("marching {BATCH}"));
    }
    start_ms
}

fn sleep_and_look() -> Late {
    let began = Instant::now();
    let times = (1..).map(|turn| began + SLEEP * turn).take_while(|at| *at < began + Duration::from_secs(SECONDS));
    let mut late_ms: Vec<f64> = times
        .map(|at| {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            ms(at.elapsed())
        })
        .collect();
    late_ms.sort_by(f64::total_cmp);
    let at = |percent: usize| late_ms[(late_ms.len() - 1) * percent / 100];
    Late { p50_ms: at(50), p99_ms: at(99), max_ms: at(100) }
}
