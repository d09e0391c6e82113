//! One swap after another while clients play and NPCs think, a third of them with code that must be refused: no packet is
//! lost or comes out of order, no NPC loses its memory, no timer and no event is lost or happens twice.
//!
//! The environment says how many: `WHEELHOUSE_SWAPS`, `WHEELHOUSE_SWAP_CLIENTS`, `WHEELHOUSE_SWAP_NPCS`. `just swaps`
//! does it with an optimised host and prints the figures.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use wheelhouse_tests::{Client, Config, Host, World, guest, helpful, tests_folder, version};

/// Packets that a client has sent and not heard of yet.
const IN_FLIGHT: u64 = 3;

/// A client sends so often.
const PACKET_EVERY: Duration = Duration::from_millis(40);

/// Every so many packets one goes on to the service, and one sets a timer and an event.
const ASK_EVERY: u64 = 4;
const LATER_EVERY: u64 = 8;

fn from_environment(name: &str, otherwise: u64) -> u64 {
    env::var(name).ok().map_or(otherwise, |text| text.parse().expect("a number"))
}

/// What has happened to all clients together.
#[derive(Default)]
struct Totals {
    numbers: AtomicU64,
    asked: AtomicU64,
    later: AtomicU64,
    is_over: AtomicBool,
}

/// Does something when it is dropped.
struct WhenDropped<F: FnMut()>(F);

impl<F: FnMut()> Drop for WhenDropped<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A client that sends numbers and looks at every answer.
struct Player {
    client: Client,
    sent: u64,
    heard: u64,
    asked: u64,
    answered: u64,
    last_count: u64,
}

impl Player {
    fn join(host: &Host, npcs: u64) -> Self {
        let mut client = host.connect();
        assert_eq!(client.ask(format!("herd {npcs}")), format!("herd {npcs}"));
        Self { client, sent: 0, heard: 0, asked: 0, answered: 0, last_count: 0 }
    }

    fn play(mut self, totals: &Totals) {
        while !totals.is_over.load(Ordering::Relaxed) {
            let next = Instant::now() + PACKET_EVERY;
            self.sent += 1;
            self.client.send(format!("n {}", self.sent));
            totals.numbers.fetch_add(1, Ordering::Relaxed);
            if self.sent.is_multiple_of(ASK_EVERY) {
                self.asked += 1;
                self.client.send(format!("ask {}", self.asked));
                totals.asked.fetch_add(1, Ordering::Relaxed);
            }
            if self.sent.is_multiple_of(LATER_EVERY) {
                self.client.send("later 1");
                totals.later.fetch_add(1, Ordering::Relaxed);
            }
            while self.sent - self.heard > IN_FLIGHT {
                self.hear();
            }
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        while self.heard < self.sent || self.answered < self.asked {
            self.hear();
        }
    }

    fn hear(&mut self) {
        let packet = self.client.receive();
        let words: Vec<&str> = packet.split(' ').collect();
        match words[..] {
            ["n", number, _version] => {
                self.heard += 1;
                assert_eq!(number, self.heard.to_string(), "numbers come back in order and none is missing");
            }
            ["a", number, count] => {
                self.answered += 1;
                assert_eq!(number, self.answered.to_string(), "answers come in order and none is missing");
                let count = count.parse().expect("a count");
                assert!(count > self.last_count, "the service has forgotten something: {packet}");
                self.last_count = count;
            }
            ["later", "1"] => {}
            _ => panic!("this should not have come: {packet}"),
        }
    }
}

/// The guests that are swapped, by name, with the kind in the names of their files.
const SWAPPED: [(&str, &str); 3] =
    [("changeling-game", "game"), ("changeling-thinker", "thinker"), ("counter", "service")];

/// Code that must be refused, in each way there is.
fn broken(world: &World, round: u64, kind: &str) -> (PathBuf, &'static str) {
    let harmful = |harm: &str| version(world, kind, &format!("{round} {harm}"));
    match round / 3 % 6 {
        0 => (version(world, if kind == "job" { "step" } else { "job" }, "1"), "and the configuration says kind = "),
        1 => {
            // Others of the same kind, which import more.
            let other =
                if kind == "service" { "../guests/build/agent" } else { &format!("guests/build/hostile-{kind}") };
            (tests_folder().join(format!("{other}.wasm")), "which it is not granted")
        }
        2 => (harmful("restore:refuse"), "refused"),
        3 => (harmful("restore:trap"), "wasm trap"),
        4 => (harmful("restore:loop"), "deadline"),
        _ => (
            world.write("broken.wasm", &std::fs::read(harmful("")).expect("it is there")[..20_000]),
            "is cut off after",
        ),
    }
}

#[test]
fn nothing_is_lost_doubled_or_reordered_by_one_swap_after_another() {
    let swaps = from_environment("WHEELHOUSE_SWAPS", 36);
    let clients = from_environment("WHEELHOUSE_SWAP_CLIENTS", 8);
    let npcs = from_environment("WHEELHOUSE_SWAP_NPCS", 400);
    let world = World::new(&config());
    let host = world.serve();
    let players: Vec<Player> = (0..clients).map(|_| Player::join(&host, npcs / clients)).collect();
    let npcs = npcs / clients * clients;
    host.wait_until("all NPCs are awake", |status| status["npcs"]["active"] == npcs);
    let mut watcher = host.connect();
    watcher.ask_until_it("report", "every NPC has said something", |report| report.contains(&format!(" npcs={npcs} ")));
    let totals = Totals::default();
    let refused = thread::scope(|scope| {
        for player in players {
            let totals = &totals;
            scope.spawn(move || player.play(totals));
        }
        // Also where a swap goes wrong, or the players would play for ever.
        let _over = WhenDropped(|| totals.is_over.store(true, Ordering::Relaxed));
        swap_again_and_again(&world, &host, swaps)
    });
    let (numbers, asked, later) = (totals.numbers.into_inner(), totals.asked.into_inner(), totals.later.into_inner());
    let told = watcher.ask_until_it("report", "every single timer and event has happened once", |report| {
        report.contains(&format!(" once_set={later} once_timers={later} once_events={later} "))
    });
    assert!(told.contains(&format!(" npcs={npcs} torn=0 ")), "an NPC has lost its memory: {told}");
    assert!(told.contains(" whole=true "), "the game's memory is not whole: {told}");
    watcher.ask_until_it("report", "timers and events that repeat are in phase", |report| {
        let of = |name: &str| -> u64 {
            let value = report.split(' ').find_map(|pair| pair.strip_prefix(name)).expect("it is in the report");
            value.parse().expect("a number")
        };
        of("ticks_due=").abs_diff(of("ticks=")) <= 1 && of("tocks_due=").abs_diff(of("tocks=")) <= 1
    });
    let count = watcher.ask_for("ask 1", "a 1 ");
    assert_eq!(count, format!("a 1 {}", asked + 1), "the service has counted everything once");
    let status = host.status();
    println!("{numbers} packets numbered, {asked} asked of the service, {later} timers and events");
    tell(&status, npcs);
    assert_eq!((&status["swaps"]["done"], &status["swaps"]["refused"]), (&(swaps - refused).into(), &refused.into()));
    assert_eq!(status["swaps"]["returned"], 0);
    for (name, _) in SWAPPED {
        assert_eq!(guest(&status, name)["failures"], 0, "{name}");
    }
    host.stop();
}

fn config() -> Config {
    let game = helpful("changeling-game", "game").without("metrics");
    let thinker = helpful("changeling-thinker", "thinker").without("entities");
    let service = helpful("changeling-service", "service").named("counter").without("gate").key("start", true);
    // On a machine that is busy enough a call takes longer than a guest usually may.
    Config::new().set("guest.deadline_ms", 1000).guest(game).guest(thinker).guest(service)
}

/// Answers how many were refused, as they must.
fn swap_again_and_again(world: &World, host: &Host, swaps: u64) -> u64 {
    let mut refused = 0;
    let mut pauses_us = BTreeMap::new();
    for round in 0..swaps {
        let (name, kind) = SWAPPED[round as usize % SWAPPED.len()];
        if round / 9 % 3 == 2 {
            let (file, reason) = broken(world, round, kind);
            let error = host.failure_of(&["swap", name, file.to_str().expect("the folder is text")]);
            assert!(error.contains(reason), "{name}, {}: {error}", file.display());
            refused += 1;
        } else {
            let file = version(world, kind, &(round + 2).to_string());
            let swapped = host.command(&["swap", name, file.to_str().expect("the folder is text")]);
            assert_eq!(swapped["notes"].as_array().map(Vec::len), Some(0), "{swapped}");
            pauses_us.entry(name).or_insert_with(Vec::new).push(swapped["pause_us"].as_u64().expect("a time"));
        }
    }
    for (name, mut pauses_us) in pauses_us {
        pauses_us.sort_unstable();
        let (median, longest) = (pauses_us[pauses_us.len() / 2], pauses_us[pauses_us.len() - 1]);
        println!("{name}: {} swaps, a pause of {median} µs, the longest {longest} µs", pauses_us.len());
    }
    refused
}

fn tell(status: &Value, npcs: u64) {
    let swaps = &status["swaps"];
    println!(
        "{} swaps and {} refused; the longest that the loop served nobody because of one: {} µs; {npcs} NPCs, {} thinks",
        swaps["done"], swaps["refused"], swaps["longest_pause_us"], status["npcs"]["thinks"]
    );
}
