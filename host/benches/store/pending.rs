//! What pending events cost a host that does not run them yet: the real program on a store with one event and on one
//! with five million, its memory, how long it takes to start, and whether the first event that comes due runs on time.
//! Nothing of the database is in the system's cache when the program starts, as after a loss of power, and the look-ahead
//! is so long that as many events are in memory as may be.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use wheelhouse::store::{
    Batch, Event, EventChange, EventCount, GuestChange, SqliteStore, Store, StoreError, StoreWriter,
};

use super::world::{self, GUEST};
use super::{median, ms, verdict};

const PROGRAM: &str = env!("CARGO_BIN_EXE_wheelhouse");

const PENDING: usize = 5_000_000;
const PAYLOAD_BYTES: usize = 16;
/// Rows of one commit of the filling. In it they are in the order of due times, so that the index is written once from
/// end to end.
const FILL_ROWS: usize = 1_000_000;

/// None of them is due before everything is measured.
const FIRST_OF_MANY: Duration = Duration::from_secs(600);
const LOOK_AHEAD_S: u64 = 1800;

/// Each store is started so often; the medians count.
const STARTS: usize = 3;
/// From the start of the program to when the first event is due.
const FIRST_DUE: Duration = Duration::from_secs(2);
/// From then to when the memory is looked at.
const REST: Duration = Duration::from_millis(500);

const GOAL_MIB: f64 = 64.0;
const GOAL_READY_MS: f64 = 1000.0;
const GOAL_LATE_MS: f64 = 16.0;

/// What one start was like.
#[derive(Clone, Copy)]
struct Started {
    ready_ms: f64,
    resident_mib: f64,
    peak_mib: f64,
    /// Events in memory.
    in_memory: f64,
    late_ms: f64,
    stop_ms: f64,
}

pub fn print_table() {
    let (empty, full) = (Stored::new(), Stored::new());
    let began = Instant::now();
    full.fill().expect("the disk has room");
    let filled = began.elapsed();
    println!(
        "The program on an empty store and with {PENDING} events pending ({:.0} s to fill, {:.0} MiB); medians of {STARTS} \
         starts",
        filled.as_secs_f64(),
        full.file_mib(),
    );
    println!(
        "{:<8} {:>8} {:>12} {:>12} {:>10} {:>20} {:>8}",
        "", "ready", "resident", "peak", "in memory", "first event is late", "stop"
    );
    let row = |name: &str, of: Started| {
        println!(
            "{name:<8} {:>5.0} ms {:>8.1} MiB {:>8.1} MiB {:>10.0} {:>17.0} ms {:>5.0} ms",
            of.ready_ms, of.resident_mib, of.peak_mib, of.in_memory, of.late_ms, of.stop_ms
        );
    };
    let (small, large) = (empty.starts(), full.starts());
    row("empty", small);
    row("pending", large);
    println!(
        "goals: ready {}, memory {}, first event {}",
        verdict(large.ready_ms <= GOAL_READY_MS),
        verdict(large.resident_mib - small.resident_mib <= GOAL_MIB),
        verdict(large.late_ms <= GOAL_LATE_MS),
    );
    println!();
}

/// A folder with a configuration and a data directory.
struct Stored {
    folder: TempDir,
    config: PathBuf,
}

impl Stored {
    fn new() -> Self {
        let folder = world::folder();
        let mut config = world::config(&folder.path().join("data"));
        config.events.look_ahead_s = LOOK_AHEAD_S;
        let file = folder.path().join("wheelhouse.toml");
        fs::write(&file, toml::to_string(&config).expect("a configuration is a table")).expect("the folder is new");
        fs::create_dir(folder.path().join("data")).expect("the folder is new");
        Self { folder, config: file }
    }

    fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn database(&self) -> PathBuf {
        self.data_dir().join("world.db")
    }

    fn file_mib(&self) -> f64 {
        fs::metadata(self.database()).expect("it was filled").len() as f64 / 1024.0 / 1024.0
    }

    fn fill(&self) -> Result<(), StoreError> {
        let mut writer = SqliteStore::open(&self.data_dir())?.writer(Vec::new())?;
        for first in (0..PENDING).step_by(FILL_ROWS) {
            let mut rows = world::scattered(FILL_ROWS.min(PENDING - first), PAYLOAD_BYTES, FIRST_OF_MANY);
            rows.sort_unstable_by_key(|row| row.due_ms);
            let events = rows.into_iter().enumerate().map(|(index, row)| event((first + index) as u64 + 1, row.due_ms));
            commit(&mut *writer, events.collect())?;
            writer.upkeep(false)?;
        }
        writer.close()
    }

    /// Adds an event that is due in a while.
    fn add(&self) -> Result<(), StoreError> {
        let store = SqliteStore::open(&self.data_dir())?;
        let stored = store.load()?;
        let mut writer = store.writer(Vec::new())?;
        let due_ms = world::wall_ms() + FIRST_DUE.as_millis() as u64;
        commit(&mut *writer, vec![event(stored.next_sequence, due_ms)])?;
        writer.close()
    }

    /// Has the system drop what it keeps of the database in memory.
    fn forget(&self) {
        let file = File::open(self.database()).expect("it was filled");
        fadvise(&file, 0, None, Advice::DontNeed).expect("a file on a disk takes advice");
    }

    fn starts(&self) -> Started {
        // The first compiles the guest.
        Running::start(&self.config).stop();
        let starts: Vec<Started> = (0..STARTS).map(|_| self.start()).collect();
        let of = |part: fn(&Started) -> f64| median(starts.iter().map(part).collect());
        Started {
            ready_ms: of(|start| start.ready_ms),
            resident_mib: of(|start| start.resident_mib),
            peak_mib: of(|start| start.peak_mib),
            in_memory: of(|start| start.in_memory),
            late_ms: of(|start| start.late_ms),
            stop_ms: of(|start| start.stop_ms),
        }
    }

    fn start(&self) -> Started {
        self.add().expect("the disk has room");
        self.forget();
        let began = Instant::now();
        let running = Running::start(&self.config);
        let ready_ms = ms(began.elapsed());
        thread::sleep((FIRST_DUE + REST).saturating_sub(began.elapsed()));
        let (resident_mib, peak_mib) = (running.memory_mib("VmRSS:"), running.memory_mib("VmHWM:"));
        let events = running.events(&self.data_dir());
        assert_eq!(events["fired"], 1, "one event was due, and one alone");
        let in_memory = events["in_memory"].as_f64().expect("a number");
        let late_ms = events["lateness_us"]["max"].as_f64().expect("a number") / 1000.0;
        let began = Instant::now();
        running.stop();
        Started { ready_ms, resident_mib, peak_mib, in_memory, late_ms, stop_ms: ms(began.elapsed()) }
    }
}

fn event(sequence: u64, due_ms: u64) -> Arc<Event> {
    Arc::new(Event {
        sequence,
        guest: GUEST.into(),
        kind: "tick".into(),
        payload: [7; PAYLOAD_BYTES].into(),
        due_ms,
        next_ms: due_ms,
        repeat: None,
        attempts: 0,
        parked: false,
        error: None,
    })
}

/// Commits events beside those that are pending.
fn commit(writer: &mut dyn StoreWriter, events: Vec<Arc<Event>>) -> Result<(), StoreError> {
    let last = events.last().map_or(0, |event| event.sequence);
    writer.commit(&[Batch {
        number: 1,
        counts: vec![EventCount { guest: GUEST.into(), pending: events.len() as i64, parked: 0 }],
        guests: vec![GuestChange::Initialised { guest: GUEST.into() }],
        next_sequence: Some(last + 1),
        events: events.into_iter().map(|event| EventChange::Put { event, claimed: false }).collect(),
        ..Batch::default()
    }])
}

/// The program, with a world that runs.
struct Running {
    process: Child,
}

impl Running {
    fn start(config: &Path) -> Self {
        let mut command = Command::new(PROGRAM);
        command.arg("serve").arg("--config").arg(config).env_remove("RUST_LOG");
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program was built together with this");
        let mut log = BufReader::new(process.stderr.take().expect("it was asked for")).lines();
        let is_ready = log.by_ref().map_while(Result::ok).any(|line| line.contains("the world runs"));
        assert!(is_ready, "the program ended before its world ran");
        // What follows is read, so that the program never waits for it.
        thread::spawn(move || log.for_each(drop));
        Self { process }
    }

    fn memory_mib(&self, name: &str) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("the program runs");
        let kib =
            status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse::<f64>().ok());
        kib.expect("the system tells of memory") / 1024.0
    }

    /// The part about events of what `wheelhouse status --json` prints.
    fn events(&self, data_dir: &Path) -> serde_json::Value {
        let output = Command::new(PROGRAM).args(["status", "--json", "--data-dir"]).arg(data_dir).output();
        let status = output.expect("the program can be started").stdout;
        serde_json::from_slice::<serde_json::Value>(&status).expect("the status is JSON")["events"].take()
    }

    fn stop(mut self) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).expect("the program runs");
        assert!(self.process.wait().expect("it is this process's child").success(), "the program stops well");
    }
}
