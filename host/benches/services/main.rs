//! What services cost: round trips, requests in flight, one-way messages, launches, timeouts, and memory. Prints one table,
//! beside actors of native code on the same runtime, which are what the guest's calls and the host's bookkeeping are added
//! to. The guests are built by `just bench`.

#[allow(dead_code)]
#[path = "../../tests/services/actors.rs"]
mod actors;
mod native;

use std::time::{Duration, Instant};

use actors::Actors;
use wheelhouse::guest::settings::RestartPolicy;
use wheelhouse::service::{Handle, ServiceOptions};

const RUNS: usize = 5;
const REQUESTS: u32 = 100_000;
const MESSAGES: u32 = 1_000_000;
const LAUNCHES: u32 = 1000;
const ALIVE: u32 = 5000;
const TIMEOUTS: u32 = 50_000;

fn main() {
    // Cargo runs benches as tests too, with an argument; there is nothing to test here.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let options = ServiceOptions { deadline_ms: 600_000, max_running: 8000, ..ServiceOptions::default() };
    let guests = ["pinger", "pinger-async", "counter", "counter-async"];
    let actors = Actors::with(options, &guests, RestartPolicy::Never);
    let [pinger, many, counter, async_counter] = guests_of(&actors);
    let ns = |order: String, to: Handle| -> f64 {
        let answer = actors.told(to, order);
        answer.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or_else(|| panic!("it answered {answer:?}"))
    };
    println!("services, medians of {RUNS} runs (native: the same with actors of native code)\n");
    println!("{:<44} {:>12} {:>12} {:>8}", "", "services", "native", "goal");

    let round_trip = median(|| ns(format!("ask {REQUESTS} {counter}"), pinger) / f64::from(REQUESTS));
    let native_trip = median(|| native::round_trip_ns(REQUESTS));
    row("request round trip, µs", round_trip / 1000.0, Some(native_trip / 1000.0), "5");
    let trip = median(|| ns(format!("ask {REQUESTS} {async_counter}"), pinger) / f64::from(REQUESTS));
    row("  to an async service", trip / 1000.0, None, "");

    let per_second = |ns: f64, count: u32| f64::from(count) / ns * 1e9 / 1000.0;
    let flight = median(|| per_second(ns(format!("ask {REQUESTS} 100 {counter}"), many), REQUESTS));
    row("100 requests in flight, thousands/s", flight, Some(median(|| native::in_flight_k(REQUESTS))), "157");
    let flight = median(|| per_second(ns(format!("ask {REQUESTS} 100 {async_counter}"), many), REQUESTS));
    row("  to an async service", flight, None, "");

    let sends = median(|| per_second(ns(format!("send {MESSAGES} {counter}"), pinger), MESSAGES));
    row("one-way sends, thousands/s", sends, Some(median(|| native::sends_k(MESSAGES))), "1000");
    let sends = median(|| per_second(ns(format!("send {} {async_counter}", MESSAGES / 10), pinger), MESSAGES / 10));
    row("  to an async service", sends, None, "");

    let launch = median(|| launch_and_kill(&actors, pinger, LAUNCHES) / f64::from(LAUNCHES) / 1000.0);
    row("launch until it answers, µs", launch, None, "60");
    let timeout = median(|| {
        let setter = actors.launch("pinger");
        let took = ns(format!("timeouts {TIMEOUTS}"), setter) / f64::from(TIMEOUTS) / 1000.0;
        actors.services.kill(setter);
        took
    });
    row("setting a timeout, µs", timeout, None, "4.2");

    let (before, started) = (resident_bytes(), Instant::now());
    let handles = launched(&actors.told(pinger, format!("launch {ALIVE} counter")));
    handles.iter().for_each(|handle| drop(actors.told(*handle, "ping")));
    let took = started.elapsed();
    let each = (resident_bytes() - before) as f64 / f64::from(ALIVE) / 1024.0;
    row("memory of each of 5,000 services, KiB", each, None, "32");
    println!("{ALIVE} services were launched and had answered after {:.0} ms", took.as_secs_f64() * 1000.0);
}

fn guests_of(actors: &Actors) -> [Handle; 4] {
    ["pinger", "pinger-async", "counter", "counter-async"].map(|guest| actors.launch(guest))
}

/// Nanoseconds from the first launch until the last of them has answered.
fn launch_and_kill(actors: &Actors, pinger: Handle, count: u32) -> f64 {
    let running = actors.services.snapshot().running;
    let began = Instant::now();
    let handles = launched(&actors.told(pinger, format!("launch {count} counter")));
    drop(actors.told(handles[handles.len() - 1], "ping"));
    let took = began.elapsed();
    handles.iter().for_each(|handle| assert!(actors.services.kill(*handle)));
    actors.until_running(running);
    took.as_nanos() as f64
}

fn launched(answer: &str) -> Vec<Handle> {
    answer.split_whitespace().skip(1).filter_map(|handle| handle.parse().ok()).map(Handle).collect()
}

fn median(mut run: impl FnMut() -> f64) -> f64 {
    let mut values: Vec<f64> = (0..RUNS).map(|_| run()).collect();
    values.sort_by(f64::total_cmp);
    values[RUNS / 2]
}

fn row(what: &str, services: f64, native: Option<f64>, goal: &str) {
    let native = native.map_or(String::new(), |native| format!("{native:.2}"));
    println!("{what:<44} {services:>12.2} {native:>12} {goal:>8}");
}

fn resident_bytes() -> usize {
    // The second number of this file is in pages of 4 KiB on the machines that this is measured on.
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux tells what a process has");
    std::thread::sleep(Duration::from_millis(10));
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).expect("it is a number") * 4096
}
