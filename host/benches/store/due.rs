//! A host with 10,000 events due in every second, each of which changes something durable: how late they run, and what
//! that costs the loop and the disk. Beside it a thread that does nothing but sleep and look how late it is woken, which
//! tells what the machine adds while others use it too.

use std::thread;
use std::time::{Duration, Instant};

use wheelhouse::clock::MonotonicClock;
use wheelhouse::server::Host;
use wheelhouse::sim::metrics::Micros;

use super::world::{self, Client};
use super::{ms, verdict};

const PER_MS: u64 = 10;
const SECONDS: u64 = 10;
const EVENTS: u64 = SECONDS * 1000 * PER_MS;
/// Events that one handler schedules.
const BATCH: u64 = 1_000;
/// From the scheduling of the first to when it is due, time enough to schedule all.
const LEAD_MS: u64 = 4_000;

/// Between two times at which the sleeping thread wants to be woken.
const SLEEP: Duration = Duration::from_millis(4);

const GOAL_P99_MS: f64 = 16.0;

pub fn print_table() {
    let folder = world::folder();
    let config = world::config(&folder.path().join("data"));
    let host = Host::start(&config, MonotonicClock::shared()).expect("the folder is new and the ports are free");
    let mut client = Client::connect(host.gate_address());
    let start_ms = world::wall_ms() + LEAD_MS;
    for first in (0..EVENTS).step_by(BATCH as usize) {
        client.send(&format!("march {start_ms} {PER_MS} {first} {BATCH}"));
    }
    for _ in 0..EVENTS / BATCH {
        assert_eq!(client.receive(), format!("marching {BATCH}"));
    }
    let left_ms = start_ms.checked_sub(world::wall_ms()).expect("all are scheduled before the first is due");
    thread::sleep(Duration::from_millis(left_ms));

    let sleeper = thread::spawn(sleep_and_look);
    let (began, before, cpu_before) = (Instant::now(), host.status(), host.loop_cpu_time());
    thread::sleep(Duration::from_secs(SECONDS));
    let (took, after, cpu) = (began.elapsed(), host.status(), host.loop_cpu_time() - cpu_before);
    // The last are late too.
    let until = Instant::now() + Duration::from_secs(60);
    while host.status().events.counts.fired < EVENTS && Instant::now() < until {
        thread::sleep(Duration::from_millis(50));
    }
    let (sum, end) = (client.ask("sum"), host.status());
    assert_eq!(sum, format!("sum {EVENTS}"), "every event has counted once");
    host.stop().expect("the disk has room");

    let fired = after.events.counts.fired - before.events.counts.fired;
    let commits = after.store.commits - before.store.commits;
    let late = Late::of_micros(end.events.lateness_us);
    let commit = end.store.commit_us;
    let per_second = |count: u64| count as f64 / took.as_secs_f64();
    println!("A host with {} events due per second for {SECONDS} s, each adding one in kv", PER_MS * 1000);
    println!("{:<24} {:>9} {:>9} {:>9} {:>6}", "", "late p50", "p99", "max", "goal");
    late.print("events", verdict(late.p99_ms <= GOAL_P99_MS));
    sleeper.join().expect("it only sleeps").print("a thread that only sleeps", "");
    println!(
        "{:.0} events/s with {:.0}% of the loop's time; {:.0} commits/s, each p50 {:.1} ms, p99 {:.1} ms",
        per_second(fired),
        100.0 * cpu.as_secs_f64() / took.as_secs_f64(),
        per_second(commits),
        commit.p50 as f64 / 1e3,
        commit.p99 as f64 / 1e3,
    );
    println!();
}

/// A distribution of lateness.
struct Late {
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

impl Late {
    fn of_micros(micros: Micros) -> Self {
        let ms = |us: u64| us as f64 / 1e3;
        Self { p50_ms: ms(micros.p50), p99_ms: ms(micros.p99), max_ms: ms(micros.max) }
    }

    fn print(&self, of: &str, verdict: &str) {
        let Self { p50_ms, p99_ms, max_ms } = self;
        println!("{of:<24} {p50_ms:>6.1} ms {p99_ms:>6.1} ms {max_ms:>6.1} ms {verdict:>6}");
    }
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
    let at = |part: usize| late_ms[(late_ms.len() - 1) * part / 100];
    Late { p50_ms: at(50), p99_ms: at(99), max_ms: at(100) }
}
