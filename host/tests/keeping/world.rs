//! A world in a folder of its own, and a host that runs it in this process: started, watched and stopped. The world, its
//! clock and its disk outlive a host; the next one goes on with them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use wheelhouse::admin::ControlClient;
use wheelhouse::clock::{Clock, ManualClock, SharedClock};
use wheelhouse::guest::component::grants_for;
use wheelhouse::guest::{Grant, GuestKind, GuestSettings};
use wheelhouse::server::{Config, Host, HostStatus, StopError};

use crate::PATIENCE;
use crate::disk::Disk;
use crate::player::{Player, Ran};

/// What the wall clock shows when a world begins, in milliseconds since 1970-01-01 UTC.
pub const BEGIN_MS: u64 = 1_800_000_000_000;

/// Time between two looks at a condition.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// A world, whether a host runs it or not.
pub struct World {
    folder: TempDir,
    pub config: Config,
    pub clock: Arc<ManualClock>,
    pub disk: Disk,
}

impl World {
    /// A world with the ledger at its gate.
    pub fn new() -> Self {
        Self::of(vec![game("ledger", "ledger")])
    }

    /// A world with these guests.
    pub fn of(guests: Vec<GuestSettings>) -> Self {
        let folder = tempfile::tempdir().expect("there is room for a temporary folder");
        let mut config = Config { data_dir: folder.path().join("data"), guests, ..Config::default() };
        let free_port = ([127, 0, 0, 1], 0).into();
        config.admin.listen = free_port;
        let gate = &mut config.gate.options;
        gate.listen = free_port;
        (gate.max_frame_bytes, gate.max_frames_per_second, gate.frame_burst) = (65_535, 100_000, 100_000);
        // Clients that stay are not waited for.
        gate.drain_timeout_ms = 100;
        // A machine that is busy must not fail guests that do nothing wrong.
        (config.guest.deadline_ms, config.guest.init_deadline_ms) = (2000, 2000);
        config.game_loop.max_items_per_batch = 2;
        let clock = ManualClock::shared();
        clock.set_wall_ms(BEGIN_MS);
        Self { folder, config, clock, disk: Disk::default() }
    }

    /// The same with another configuration.
    pub fn configured(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Milliseconds that have passed by its clock.
    pub fn clock_ms(&self) -> u64 {
        self.clock.now().as_millis() as u64
    }

    /// A file in the world's folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a host, and waits until the game answers and nothing is on its way to the disk.
    pub fn start(&self) -> Run {
        self.start_by(Arc::clone(&self.clock) as SharedClock)
    }

    /// The same by another clock than the world's.
    pub fn start_by(&self, clock: SharedClock) -> Run {
        let host = Host::start_on(&self.config, clock, |data_dir| self.disk.open(data_dir));
        let host = host.expect("the host starts");
        let mut pulse = Player::connect(host.gate_address());
        assert_eq!(pulse.ask("ping first"), "pong first");
        let data_dir = self.config.data_dir.clone();
        let run = Run {
            host: Some(host),
            pulse: Some(pulse),
            probes: Vec::new(),
            pings: self.config.game_loop.max_items_per_batch + 1,
            clock: Arc::clone(&self.clock),
            disk: self.disk.clone(),
            data_dir,
        };
        run.wait_until("that all is on disk", |status| status.store.backlog == 0);
        run
    }
}

/// A host that runs.
pub struct Run {
    /// Here until it is stopped.
    host: Option<Host>,
    /// A client that only asks whether the loop goes round.
    pulse: Option<Player>,
    /// Clients that came only for the item that this makes.
    probes: Vec<Player>,
    /// More items than the loop takes in one turn.
    pings: u64,
    clock: Arc<ManualClock>,
    disk: Disk,
    data_dir: PathBuf,
}

impl Run {
    fn host(&self) -> &Host {
        self.host.as_ref().expect("it is here until it is stopped")
    }

    /// A new client.
    pub fn connect(&self) -> Player {
        Player::connect(self.host().gate_address())
    }

    /// The way of an operator's program to it.
    pub fn control(&self) -> ControlClient {
        ControlClient::find(&self.data_dir).expect("a running host can be found")
    }

    /// The figures now.
    pub fn status(&self) -> HostStatus {
        self.host().status()
    }

    /// Packets that were given to clients' connections so far, by every item that ran before. Only while items are
    /// taken.
    pub fn sent(&mut self) -> u64 {
        // A packet may be received before it is counted; it is once the loop begins another item.
        let executed = self.executed();
        self.probes.push(self.connect());
        let is_begun = |status: &HostStatus| status.sim.game_loop.executed > executed;
        self.wait_until("another item", is_begun).connections.frames_out
    }

    /// Items that the loop has begun so far.
    pub fn executed(&self) -> u64 {
        self.status().sim.game_loop.executed
    }

    /// Waits until the figures are such that `condition`, and answers them.
    pub fn wait_until(&self, what: &str, condition: impl Fn(&HostStatus) -> bool) -> HostStatus {
        let until = Instant::now() + PATIENCE;
        for look in 1.. {
            let status = self.status();
            if condition(&status) {
                return status;
            }
            assert!(Instant::now() < until, "{what} did not come about; the status is {status:#?}");
            if look % 64 == 0 {
                // Figures that could not be put up because somebody was reading them are put up in the next turn.
                self.clock.advance(Duration::ZERO);
            }
            thread::sleep(LOOK_EVERY);
        }
        unreachable!("there is always another look")
    }

    /// Waits until the loop has done all that there was to do when this was called, but for what needs the disk. Only
    /// while items are taken.
    pub fn settle(&mut self) {
        let pulse = self.pulse.as_mut().expect("it is here until the stop");
        // The last answer comes from a turn after the one of the first.
        (0..self.pings).for_each(|number| assert_eq!(pulse.ask(format!("ping {number}")), format!("pong {number}")));
    }

    /// Pings, all of them answered, of one [`settle`](Self::settle).
    pub fn pings(&self) -> u64 {
        self.pings
    }

    /// Lets time pass in steps, and lets the loop do after each what is due.
    pub fn pass(&mut self, steps: u32, step_ms: u64) {
        for _ in 0..steps {
            self.clock.advance(Duration::from_millis(step_ms));
            self.settle();
        }
    }

    /// Lets time pass until the database takes changes again.
    pub fn end_trouble(&self) {
        self.disk.make_room();
        let until = Instant::now() + PATIENCE;
        while self.status().store.state != "ok" {
            assert!(Instant::now() < until, "the trouble has no end: {:?}", self.status().store);
            self.clock.advance(Duration::from_millis(50));
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits until as many runs of events are written down, and answers them. Time stands still meanwhile.
    pub fn wait_for_runs(&self, player: &mut Player, count: usize) -> Vec<Ran> {
        let until = Instant::now() + PATIENCE;
        loop {
            let runs = player.runs();
            if runs.len() >= count {
                return runs;
            }
            assert!(Instant::now() < until, "{} of {count} events have run: {runs:?}", runs.len());
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Begins to stop it, on a thread of its own.
    pub fn begin_stop(mut self) -> Stopping {
        drop((self.pulse.take(), std::mem::take(&mut self.probes)));
        let host = self.host.take().expect("it is stopped once");
        let (sender, stopped) = mpsc::channel();
        // Where nobody waits any more the test has failed already.
        thread::spawn(move || drop(sender.send(host.stop())));
        Stopping { stopped, clock: Arc::clone(&self.clock) }
    }

    /// Stops it.
    pub fn stop(self) -> Result<(), StopError> {
        self.begin_stop().wait()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.host.is_some() {
            self.disk.be_good();
            if thread::panicking() {
                // What made the test fail may also keep the host from its end.
                std::mem::forget(self.host.take());
            }
        }
    }
}

/// A host that stops.
pub struct Stopping {
    stopped: mpsc::Receiver<Result<(), StopError>>,
    clock: Arc<ManualClock>,
}

impl Stopping {
    /// Waits for its end; if that takes long, time passes meanwhile.
    pub fn wait(self) -> Result<(), StopError> {
        self.wait_and_measure().0
    }

    /// The same, and how much time had to pass by the clock.
    pub fn wait_and_measure(self) -> (Result<(), StopError>, Duration) {
        let began = self.clock.now();
        let until = Instant::now() + PATIENCE;
        let mut wait = Duration::from_secs(1);
        loop {
            match self.stopped.recv_timeout(wait) {
                Ok(stopped) => return (stopped, self.clock.now() - began),
                Err(RecvTimeoutError::Disconnected) => panic!("the host panicked while it stopped"),
                Err(RecvTimeoutError::Timeout) => assert!(Instant::now() < until, "the host does not stop"),
            }
            self.clock.advance(Duration::from_millis(50));
            wait = LOOK_EVERY;
        }
    }
}

/// A game from `tests/guests`.
pub fn game(name: &str, package: &str) -> GuestSettings {
    let grants = grants_for(GuestKind::Game);
    GuestSettings { grants, ..GuestSettings::new(name, GuestKind::Game, built(package)) }
}

/// A service from `tests/guests` that runs from the beginning, under its package's name.
pub fn service(package: &str) -> GuestSettings {
    let grants = vec![Grant::Services, Grant::Gate, Grant::Metrics];
    GuestSettings { grants, start: true, ..GuestSettings::new(package, GuestKind::Service, built(package)) }
}

/// The thinker whose NPCs walk to and fro.
pub fn pacer() -> GuestSettings {
    let grants = vec![Grant::Entities, Grant::Kv, Grant::Metrics];
    GuestSettings { grants, ..GuestSettings::new("pacer", GuestKind::Thinker, built("hostile-thinker")) }
}

fn built(package: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("tests");
    let file = tests.join(format!("guests/build/{package}.wasm"));
    assert!(
        file.is_file(),
        "{} is not built: run `just test`, or `wheelhouse guest build tests/guests` before the tests",
        file.display()
    );
    file
}
