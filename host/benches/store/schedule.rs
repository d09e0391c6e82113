//! How many events are scheduled in a second: raw SQLite, our way with the very same transactions, our way as the loop
//! uses it (it goes on while the writer writes, and what waits then is committed together), and all the way from a
//! client's packets through a guest.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use wheelhouse::clock::MonotonicClock;
use wheelhouse::server::Host;
use wheelhouse::store::agenda::NewEvent;
use wheelhouse::store::{Agenda, AgendaLimits, Batch, SqliteStore, Store, StoreError, Writer};

use super::raw::Raw;
use super::world::{self, Client, GUEST};
use super::{cpu_now, median, verdict};

/// Events of a run, and bytes of each one's payload.
const EVENTS: usize = 200_000;
const PAYLOAD_BYTES: usize = 32;
/// Fewer where every commit is small, or it would take too long.
const EVENTS_IN_SMALL_BATCHES: usize = 100_000;
/// Each way is measured so often, in turn with the others; the median counts.
const ROUNDS: usize = 3;
/// None is due sooner, so that none is kept in memory.
const FIRST: Duration = Duration::from_secs(3600);

/// Ours as part of raw.
const GOAL: f64 = 0.6;

/// What one run took.
#[derive(Clone, Copy)]
struct Cost {
    wall: Duration,
    /// Of all threads.
    cpu: Duration,
    commits: u64,
}

/// A way to bring events to the disk, `batch` of them at a time.
type Way = fn(events: &[NewEvent], batch: usize) -> Cost;

const WAYS: [(&str, Way); 4] = [
    ("raw SQLite", raw),
    ("agenda and writer, the same commits", in_lockstep),
    ("agenda and writer, as a host has them", streaming),
    ("guest, loop and writer, from packets", through_a_guest),
];

pub fn print_table() {
    println!(
        "Scheduling events of {PAYLOAD_BYTES} bytes at random times until they are on disk; medians of {ROUNDS} runs"
    );
    println!(
        "{:>6}  {:<40} {:>10} {:>8} {:>10} {:>11} {:>6}",
        "batch", "", "events/s", "of raw", "of raw CPU", "rows/commit", "goal"
    );
    for batch in [100, 1_000, 10_000] {
        let count = if batch < 1_000 { EVENTS_IN_SMALL_BATCHES } else { EVENTS };
        let events = world::scattered(count, PAYLOAD_BYTES, FIRST);
        let mut costs: [Vec<Cost>; 4] = Default::default();
        for _ in 0..ROUNDS {
            for ((_, way), costs) in WAYS.iter().zip(&mut costs) {
                costs.push(way(&events, batch));
            }
        }
        let of = |way: usize, part: fn(&Cost) -> f64| median(costs[way].iter().map(part).collect());
        let (wall, cpu) = (|cost: &Cost| cost.wall.as_secs_f64(), |cost: &Cost| cost.cpu.as_secs_f64());
        for (way, (name, _)) in WAYS.iter().enumerate() {
            let of_raw = of(0, wall) / of(way, wall);
            println!(
                "{batch:>6}  {name:<40} {:>10.0} {:>7.0}% {:>9.0}% {:>11.0} {:>6}",
                events.len() as f64 / of(way, wall),
                100.0 * of_raw,
                100.0 * of(way, cpu) / of(0, cpu),
                events.len() as f64 / of(way, |cost| cost.commits as f64),
                if way == 0 { "" } else { verdict(of_raw >= GOAL) },
            );
        }
    }
    println!();
}

/// What `run` costs; it answers with the number of its commits.
fn measure(run: impl FnOnce() -> u64) -> Cost {
    let (began, cpu_began) = (Instant::now(), cpu_now());
    let commits = run();
    Cost { wall: began.elapsed(), cpu: cpu_now() - cpu_began, commits }
}

fn raw(events: &[NewEvent], batch: usize) -> Cost {
    let folder = world::folder();
    let raw = Raw::create(folder.path()).expect("the folder is new");
    measure(|| {
        raw.insert(events, batch).expect("the disk has room");
        events.len().div_ceil(batch) as u64
    })
}

fn in_lockstep(events: &[NewEvent], batch: usize) -> Cost {
    ours(events, batch, 1)
}

fn streaming(events: &[NewEvent], batch: usize) -> Cost {
    ours(events, batch, wheelhouse::server::config::StoreSettings::default().max_pending_batches)
}

/// Our way, with at most so many batches on their way to the disk. Every event is a transaction of its own in memory, as
/// if by a handler that schedules just one.
fn ours(events: &[NewEvent], batch_events: usize, max_waiting: usize) -> Cost {
    let folder = world::folder();
    let (writer, changes) = writer(&folder).expect("the folder is new");
    let mut agenda = agenda();
    let guest = agenda.guest(&Arc::from(GUEST));
    agenda.set_running(guest, true);
    let now_ms = world::wall_ms();
    measure(|| {
        for (index, events) in events.chunks(batch_events).enumerate() {
            let mut batch = Batch { number: index as u64 + 1, ..Batch::default() };
            for event in events {
                agenda.schedule(guest, event.clone()).expect("there is room for all of them");
                agenda.commit(now_ms, &mut batch);
            }
            writer.submit(batch);
            while index + 1 - writer.committed() as usize >= max_waiting {
                changes.recv().expect("the writer lives");
            }
            agenda.settle(writer.committed());
        }
        // Waits for the rest, and brings the log into the database.
        writer.stop().expect("the disk has room");
        writer.snapshot().commits
    })
}

/// A writer, and what tells that it has committed something.
fn writer(folder: &tempfile::TempDir) -> Result<(Writer, Receiver<()>), StoreError> {
    let (sender, receiver) = crossbeam_channel::unbounded();
    let store = SqliteStore::open(folder.path())?;
    let on_change = move || {
        // Nobody listens any more once everything has been handed over.
        let _ = sender.send(());
    };
    Ok((Writer::start(store.writer(Vec::new())?, MonotonicClock::shared(), Box::new(on_change))?, receiver))
}

fn agenda() -> Agenda {
    let events = wheelhouse::server::config::EventOptions::default();
    let limits = AgendaLimits {
        look_ahead_ms: events.look_ahead_s * 1000,
        max_in_memory: events.max_in_memory,
        max_in_memory_bytes: 64 << 20,
        max_pending: events.max_pending,
    };
    Agenda::new(limits, &[], 1)
}

fn through_a_guest(events: &[NewEvent], batch: usize) -> Cost {
    let folder = world::folder();
    let mut config = world::config(&folder.path().join("data"));
    // The largest batches are longer than what a game should do in one call.
    config.guest.deadline_ms = 1000;
    let host = Host::start(&config, MonotonicClock::shared()).expect("the folder is new and the ports are free");
    let mut client = Client::connect(host.gate_address());
    client.ask("sum");
    let cost = measure(|| {
        let before = host.status().store.commits;
        for _ in 0..events.len() / batch {
            client.send(&format!("scatter {batch} {PAYLOAD_BYTES}"));
        }
        // An answer leaves when the events are on disk.
        for _ in 0..events.len() / batch {
            assert_eq!(client.receive(), format!("scattered {batch}"));
        }
        host.status().store.commits - before
    });
    host.stop().expect("the disk has room");
    cost
}
