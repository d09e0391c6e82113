//! The host is killed with SIGKILL at random moments under load, and nothing that it acknowledged is lost or done twice.
//!
//! [`Workload`] has several clients bump ledgers, schedule events and cancel some, and notes in [`Books`] what they sent
//! and what was acknowledged. Here the rounds are run: how the host is killed, and started again. After each round the
//! world is held against the books.
//!
//! `WHEELHOUSE_CRASH_ROUNDS` says how many rounds there are, `WHEELHOUSE_CRASH_SEED` from which number everything random
//! follows; a failure prints the seed. The moments at which a real program is killed do not repeat exactly, of course.

mod books;
mod workload;

use std::env;
use std::process::{Child, Stdio};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use books::Books;
use rustix::process::Signal;
use wheelhouse_tests::{Config, Host, Random, World, ledger};
use workload::Workload;

/// Rounds where the environment does not say.
const ROUNDS: u64 = 24;

/// Rounds that one world goes through; then a new one begins, so that its books stay short.
const ROUNDS_OF_A_WORLD: u64 = 24;

/// How long a round's load lasts at most before the host is killed.
const LONGEST_LOAD_MS: u64 = 400;

/// How long a start is given at most before the host is killed again; it runs after about half of that.
const LONGEST_START_MS: u64 = 200;

/// How long a stop is given at most before the host is killed.
const LONGEST_STOP_MS: u64 = 60;

/// How the host ends in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    /// Killed under load.
    UnderLoad,
    /// Killed under load, and then again while it starts.
    WhileStarting,
    /// Killed under load while it makes checkpoints as fast as it can.
    WhileSaving,
    /// Told to stop under load, and killed while it does.
    WhileStopping,
}

const DEATHS: [Death; 4] = [Death::UnderLoad, Death::WhileStarting, Death::WhileSaving, Death::WhileStopping];

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_done_twice() {
    let now = UNIX_EPOCH.elapsed().expect("the clock is set");
    let seed = from_environment("WHEELHOUSE_CRASH_SEED").unwrap_or(now.subsec_nanos().into());
    let rounds = from_environment("WHEELHOUSE_CRASH_ROUNDS").unwrap_or(ROUNDS);
    println!("run this again with WHEELHOUSE_CRASH_SEED={seed} WHEELHOUSE_CRASH_ROUNDS={rounds}");
    let mut random = Random::seeded(seed);
    for first in (0..rounds).step_by(usize::try_from(ROUNDS_OF_A_WORLD).expect("a small number")) {
        let mut run = Run::begin();
        for round in first..rounds.min(first + ROUNDS_OF_A_WORLD) {
            run = run.round(round, DEATHS[usize::try_from(round).expect("a small number") % DEATHS.len()], &mut random);
        }
        run.end();
    }
}

fn from_environment(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(u64::from_str(&text).unwrap_or_else(|error| panic!("{name} is {text:?}: {error}")))
}

/// A world, its running host, and what is known of both.
struct Run {
    world: World,
    host: Host,
    books: Books,
}

impl Run {
    fn begin() -> Self {
        let config = Config::new()
            .set("store.checkpoint_interval_s", 1)
            .set("gate.max_frame_bytes", 65535)
            .set("gate.max_frames_per_second", 100_000)
            .set("gate.frame_burst", 100_000)
            .patient()
            .guest(ledger());
        let world = World::new(&config);
        let host = world.serve();
        let books = Books::open(&mut host.connect());
        Self { world, host, books }
    }

    /// Puts load on the host, kills it, starts it again, and looks whether all is well.
    fn round(self, round: u64, death: Death, random: &mut Random) -> Self {
        let Self { world, host, mut books } = self;
        let began = Instant::now();
        let workload = Workload::start(host.gate(), round, random);
        let load = random.time_below_ms(LONGEST_LOAD_MS);
        match death {
            Death::UnderLoad | Death::WhileStarting => {
                thread::sleep(load);
                host.kill();
            }
            Death::WhileSaving => {
                save_for(&host, load);
                host.kill();
            }
            Death::WhileStopping => {
                thread::sleep(load);
                host.signal(Signal::TERM);
                thread::sleep(random.time_below_ms(LONGEST_STOP_MS));
                host.kill();
            }
        }
        books.add(workload.end());
        if death == Death::WhileStarting {
            for _ in 0..3 {
                let starting = world.start();
                thread::sleep(random.time_below_ms(LONGEST_START_MS));
                starting.kill();
            }
        }
        let host = world.serve();
        let mut client = host.connect();
        books.wait_for_due_events(&mut client);
        books.check(&mut client);
        println!("round {round}, {death:?} after {load:.1?}: {}, {:.1?}", books.summary(), began.elapsed());
        Self { world, host, books }
    }

    /// After the last round the host is stopped as it should be, and all is still well.
    fn end(self) {
        let Self { world, host, mut books } = self;
        books.close(&mut host.connect());
        host.stop();
        let host = world.serve();
        books.check(&mut host.connect());
        host.stop();
    }
}

/// Has the host save again and again for that long, the last time perhaps in vain.
fn save_for(host: &Host, time: Duration) {
    let until = Instant::now() + time;
    let mut saving = save(host);
    while Instant::now() < until {
        if matches!(saving.try_wait(), Ok(Some(_))) {
            saving = save(host);
        }
        thread::sleep(Duration::from_millis(1));
    }
    // The host dies while this one is under way; what it prints then does not matter.
    thread::spawn(move || saving.wait());
}

fn save(host: &Host) -> Child {
    let mut command = host.command_line(&["save"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program can be started")
}
