//! The settings of a host as plain structs, one per section of `wheelhouse.toml`. A section that concerns one room is
//! that room's own options; the structs here hold only what no room has. The loader fills them from a file, a program
//! that embeds Wheelhouse builds them itself. Nothing here reads a file or starts anything.
//!
//! Every key of the file is the name of a field, so the unit is in the name (`_ms`, `_s`, `_kb`, `_mb`); the accessors
//! without a unit return a [`Duration`] or bytes.
//!
//! Two sections flatten a room's options beside a key of their own. Serde does not promise that `deny_unknown_fields` goes
//! with that; it does, and a test beside the loader holds it to it.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::admin::AdminOptions;
use crate::guest::{GuestKind, GuestLimits, GuestSettings, SwapOptions};
use crate::net::GateOptions;
use crate::service::ServiceOptions;
use crate::sim::{DispatchOptions, LoopOptions, TimerOptions};
use crate::world::{NpcOptions, WorldLimits};

pub(super) const KIB: usize = 1024;
pub(super) const MIB: usize = 1024 * 1024;

/// Everything that a host can be told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the world and the control port's token are kept.
    pub data_dir: PathBuf,
    /// Admission to the loop and the size of its batches: the section `loop`.
    #[serde(rename = "loop")]
    pub game_loop: LoopOptions,
    /// The timer wheel.
    pub timers: TimerOptions,
    /// Step tasks and jobs.
    pub dispatch: DispatchSettings,
    /// Limits that every guest has.
    pub guest: GuestLimits,
    /// New code for guests while the world runs.
    pub swap: SwapOptions,
    /// The world.
    pub world: WorldSettings,
    /// How NPCs think.
    pub npcs: NpcOptions,
    /// Actors outside the loop.
    pub service: ServiceOptions,
    /// The listener for clients.
    pub gate: GateSettings,
    /// The control port.
    pub admin: AdminOptions,
    /// Durable state.
    pub store: StoreSettings,
    /// Delayed events.
    pub events: EventOptions,
    /// The log.
    pub log: LogSettings,
    /// The guests, in the order in which they are started.
    pub guests: Vec<GuestSettings>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            data_dir: PathBuf::from("wheelhouse-data"),
            game_loop: LoopOptions::default(),
            timers: TimerOptions::default(),
            dispatch: DispatchSettings::default(),
            guest: GuestLimits::default(),
            swap: SwapOptions::default(),
            world: WorldSettings::default(),
            npcs: NpcOptions::default(),
            service: ServiceOptions::default(),
            gate: GateSettings::default(),
            admin: AdminOptions::default(),
            store: StoreSettings::default(),
            events: EventOptions::default(),
            log: LogSettings::default(),
            guests: Vec::new(),
        }
    }
}

impl Config {
    /// The guests that are to run.
    pub fn enabled_guests(&self) -> impl Iterator<Item = &GuestSettings> {
        self.guests.iter().filter(|guest| guest.enabled)
    }

    /// The game guest that hears of connections and packets: the one that `gate.guest` names, or else the first.
    pub fn gate_guest(&self) -> Option<&GuestSettings> {
        let mut games = self.enabled_guests().filter(|guest| guest.kind == GuestKind::Game);
        match &self.gate.guest {
            Some(name) => games.find(|guest| guest.name == *name),
            None => games.next(),
        }
    }
}

/// Step tasks and jobs: what they get of each frame, and how many there may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DispatchSettings {
    /// What the dispatcher is told. Its soft budget is not among the keys here: it is `guest.soft_budget_ms`.
    #[serde(flatten)]
    pub options: DispatchOptions,
    /// Tasks that may run at the same time.
    pub max_tasks: usize,
}

impl Default for DispatchSettings {
    fn default() -> Self {
        DispatchSettings { options: DispatchOptions::default(), max_tasks: 64 }
    }
}

/// The world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorldSettings {
    /// Where the guests' random numbers start, so that a run can be repeated.
    pub seed: u64,
    /// Entities on all maps together.
    pub max_entities: usize,
    /// Data of one entity.
    pub max_data_kb: usize,
    /// The key-value space of one guest.
    pub max_kv_mb: usize,
}

impl Default for WorldSettings {
    fn default() -> Self {
        let limits = WorldLimits::default();
        WorldSettings {
            seed: 1,
            max_entities: limits.max_entities,
            max_data_kb: limits.max_data_bytes_per_entity / KIB,
            max_kv_mb: limits.max_kv_bytes_per_space / MIB,
        }
    }
}

/// The listener for clients, and who hears of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GateSettings {
    /// What the gate is told.
    #[serde(flatten)]
    pub options: GateOptions,
    /// The game guest that hears of connections and packets; the first one if absent. Where there is a watchdog, it hears
    /// of those that are bound to it.
    pub guest: Option<String>,
    /// The service that hears of new connections instead, by a name that it has when a client comes.
    pub watchdog: Option<String>,
}

/// Durable state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSettings {
    /// Time between two saves of what is not committed at once: where NPCs went by themselves, and the guests' own state.
    pub checkpoint_interval_s: u64,
    /// Batches of changes that may wait for the disk before the loop takes no more work.
    pub max_pending_batches: usize,
}

impl Default for StoreSettings {
    fn default() -> Self {
        StoreSettings { checkpoint_interval_s: 30, max_pending_batches: 64 }
    }
}

impl StoreSettings {
    /// `checkpoint_interval_s` as a duration.
    pub fn checkpoint_interval(&self) -> Duration {
        Duration::from_secs(self.checkpoint_interval_s)
    }
}

/// Delayed events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EventOptions {
    /// Events due within this time are held in memory, later ones only in the store.
    pub look_ahead_s: u64,
    /// Events of one guest in memory.
    pub max_in_memory: usize,
    /// Attempts after which an event that fails is parked.
    pub max_attempts: u32,
    /// Pause after the first attempt that failed; it doubles with each.
    pub retry_ms: u64,
    /// Pending events of one guest.
    pub max_pending: u64,
    /// Time of one turn of the loop for events that are due, looked at between two of them.
    pub budget_ms: u64,
}

impl Default for EventOptions {
    fn default() -> Self {
        EventOptions {
            look_ahead_s: 60,
            max_in_memory: 16_384,
            max_attempts: 5,
            retry_ms: 1000,
            max_pending: 10_000_000,
            budget_ms: 5,
        }
    }
}

impl EventOptions {
    /// `look_ahead_s` as a duration.
    pub fn look_ahead(&self) -> Duration {
        Duration::from_secs(self.look_ahead_s)
    }

    /// `budget_ms` as a duration.
    pub fn budget(&self) -> Duration {
        Duration::from_millis(self.budget_ms)
    }
}

/// The log, which goes to standard error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// The least important lines that are still written.
    pub level: LogLevel,
    /// How a line looks.
    pub format: LogFormat,
}

impl Default for LogSettings {
    fn default() -> Self {
        LogSettings { level: LogLevel::Info, format: LogFormat::Text }
    }
}

/// How important a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
