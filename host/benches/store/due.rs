//! A host with 10,000 events due in every second, each of which changes something durable: how late they run, and what
//! that costs the loop and the disk.

use std::thread;
use std::time::{Duration, Instant};

use wheelhouse::clock::MonotonicClock;
use wheelhouse::server::Host;

use super::verdict;
use super::world::{self, Client};

const PER_MS: u64 = 10;
const SECONDS: u64 = 10;
const EVENTS: u64 = SECONDS * 1000 * PER_MS;
/// Events that one handler schedules.
const BATCH: u64 = 1_000;
/// From the scheduling of the first to when it is due, time enough to schedule all.
const LEAD_MS: u64 = 4_000;

const GOAL_P99_US: u64 = 16_000;

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

    let commits = after.store.commits - before.store.commits;
    let (late, commit) = (end.events.lateness_us, end.store.commit_us);
    println!("A host with {} events due per second for {SECONDS} s, each adding one in kv", PER_MS * 1000);
    println!(
        "{:>9} {:>9} {:>9} {:>9} {:>9} {:>11} {:>12} {:>12} {:>6}",
        "fired/s", "late p50", "p99", "max", "loop CPU", "commits/s", "commit p50", "p99", "goal"
    );
    println!(
        "{:>9.0} {:>6.1} ms {:>6.1} ms {:>6.1} ms {:>8.0}% {:>11.0} {:>9.1} ms {:>9.1} ms {:>6}",
        (after.events.counts.fired - before.events.counts.fired) as f64 / took.as_secs_f64(),
        late.p50 as f64 / 1e3,
        late.p99 as f64 / 1e3,
        late.max as f64 / 1e3,
        100.0 * cpu.as_secs_f64() / took.as_secs_f64(),
        commits as f64 / took.as_secs_f64(),
        commit.p50 as f64 / 1e3,
        commit.p99 as f64 / 1e3,
        verdict(late.p99 <= GOAL_P99_US),
    );
    println!();
}
