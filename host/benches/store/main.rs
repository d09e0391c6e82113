//! The store next to raw SQLite, and what it costs a host when many events are due and when many are pending. Prints three
//! tables; with the argument `schedule`, `due` or `pending` only that one. The guest is built by `just bench`.
//!
//! Everything is on the disk that has the target folder, since a disk in memory would hide what a commit costs.

mod due;
mod pending;
mod raw;
mod schedule;
mod world;

use std::time::Duration;

/// The argument that stands for a table, and what prints it.
const TABLES: [(&str, fn()); 3] =
    [("schedule", schedule::print_table), ("due", due::print_table), ("pending", pending::print_table)];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Cargo runs benches as tests too, with an argument; there is nothing to test here.
    if arguments.iter().any(|argument| argument == "--test") {
        return;
    }
    let is_asked = |name: &str| arguments.iter().any(|argument| argument == name);
    let all = !TABLES.iter().any(|(name, _)| is_asked(name));
    for (name, print_table) in TABLES {
        if all || is_asked(name) {
            print_table();
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// CPU time of all threads of this process.
fn cpu_now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Whether a goal is met, for the end of a line.
fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}
