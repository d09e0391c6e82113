//! `wheelhouse demo`: runs the example world with simulated clients over real sockets, and prints a summary at the end.
//! The world is a new one in a temporary folder, sized for the NPCs and players asked for.

mod crowd;
mod summary;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;

use super::{config, logging, report};
use crate::clock::{Clock, MonotonicClock};
use crate::guest::GuestSettings;
use crate::server::{Config, Host};
use crowd::Crowd;
use summary::{Moment, Summary};

/// Sectors to a side of what one player keeps awake.
const SECTORS_PER_PLAYER: u32 = 5;

/// Of so many animals one is a wolf.
const ANIMALS_PER_WOLF: u32 = 20;

/// Of so many animals one is a hare, and one a crow, where there are any: they cost a hundred times as much.
const ANIMALS_PER_HARE: u32 = 20;

/// How long the world may take to fill, and its NPCs to wake.
const FILL_LIMIT: Duration = Duration::from_secs(120);

/// How long the crowd plays before the measurement begins: past every NPC's first think.
const WARM_UP: Duration = Duration::from_secs(1);

const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What `wheelhouse demo` is asked.
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// The configuration of the example world [default: guests/meadow.toml, or guests/polyglot.toml with --polyglot]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Let hares and crows live in it too, whose thinkers are written in JavaScript and in Python
    #[arg(long)]
    pub polyglot: bool,

    /// How many NPCs to put into it
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    pub npcs: u32,

    /// How many clients to simulate
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub players: u32,

    /// How long to run, in seconds
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub seconds: u32,

    /// Print the summary as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Runs the demo.
pub fn run(args: DemoArgs) -> anyhow::Result<()> {
    let usual = if args.polyglot { "guests/polyglot.toml" } else { "guests/meadow.toml" };
    let mut config = config::load(args.config.as_deref().unwrap_or(Path::new(usual)))?;
    let _log = logging::start(&config.log)?;
    let folder = tempfile::Builder::new()
        .prefix("wheelhouse-demo-")
        .tempdir()
        .context("the world needs a temporary folder; set TMPDIR to one that can be written")?;
    config.data_dir = folder.path().to_owned();
    fit(&mut config, &args)?;
    let host = Host::start(&config, MonotonicClock::shared())?;
    let summary = play(&host, &args);
    let stopped = host.stop();
    let summary = summary?;
    stopped?;
    report::print(&if args.json { summary.to_json() } else { summary.to_text() })
}

/// Sizes the example world: every sector near a player, room for a timer to each NPC, and no port that could be taken.
fn fit(config: &mut Config, args: &DemoArgs) -> anyhow::Result<()> {
    // Players beyond the square share homes.
    let side = args.players.isqrt();
    let wolves = args.npcs / ANIMALS_PER_WOLF;
    let map_sectors = side * SECTORS_PER_PLAYER;
    set(&mut config.guests, "rules", "player_grid", side)?;
    set(&mut config.guests, "rules", "wolves", wolves)?;
    let others = if args.polyglot { args.npcs / ANIMALS_PER_HARE } else { 0 };
    for animals in ["hares", "crows"] {
        set(&mut config.guests, "rules", animals, others)?;
    }
    set(&mut config.guests, "rules", "sheep", args.npcs - wolves - 2 * others)?;
    for guest in ["rules", "sheep", "wolf"] {
        set(&mut config.guests, guest, "map_sectors", map_sectors)?;
    }
    let twice = u64::from(args.npcs) * 2;
    config.timers.max_pending = config.timers.max_pending.max(twice);
    config.world.max_entities = config.world.max_entities.max(twice as usize);
    let gate = &mut config.gate.options;
    gate.max_connections = gate.max_connections.max(args.players as usize);
    gate.listen.set_port(0);
    // The crowd comes by the plain door.
    (gate.websocket_listen, gate.tls_certificate, gate.tls_key) = (None, None, None);
    Ok(())
}

fn set(guests: &mut [GuestSettings], name: &str, key: &str, value: u32) -> anyhow::Result<()> {
    match guests.iter_mut().find(|guest| guest.name == name) {
        Some(guest) => {
            guest.config.insert(key.to_owned(), Value::from(value));
            Ok(())
        }
        None => bail!("the configuration has no guest \"{name}\": the demo plays the world of guests/meadow.toml"),
    }
}

/// Lets the crowd in, and measures for as long as was asked.
fn play(host: &Host, args: &DemoArgs) -> anyhow::Result<Summary> {
    let npcs = u64::from(args.npcs);
    wait_until(host, "the world did not fill with NPCs", || host.status().npcs.total >= npcs)?;
    let crowd = Crowd::join(host.gate_address(), args.players)?;
    wait_until(host, "the NPCs did not wake", || host.status().npcs.active >= npcs)?;
    rest(host, WARM_UP)?;
    crowd.begin_measuring();
    let before = Moment::of(host);
    rest(host, Duration::from_secs(args.seconds.into()))?;
    let after = Moment::of(host);
    let round_trips = crowd.leave()?;
    Ok(Summary::new(args.players, before, after, round_trips))
}

fn wait_until(host: &Host, complaint: &str, mut done: impl FnMut() -> bool) -> anyhow::Result<()> {
    let clock = MonotonicClock::new();
    while !done() {
        if clock.now() > FILL_LIMIT {
            bail!("{complaint} within {} s; the log says why", FILL_LIMIT.as_secs());
        }
        rest(host, LOOK_AGAIN)?;
    }
    Ok(())
}

/// Lets time pass, unless the loop fails.
fn rest(host: &Host, length: Duration) -> anyhow::Result<()> {
    let failed = host.runtime().block_on(async { tokio::time::timeout(length, host.loop_ended()).await });
    match failed {
        Err(_passed) => Ok(()),
        Ok(_) => bail!("the loop ended by itself; the log says why"),
    }
}
