//! The settings of a host as plain structs, one per section of `wheelhouse.toml`, each with its defaults. The loader
//! fills them from a file, a program that embeds Wheelhouse builds them itself; both call [`Config::validate`]. Nothing
//! here reads a file or starts anything.
//!
//! Every key of the file is the name of a field here, so the unit is in the name (`_ms`, `_s`, `_kb`, `_mb`); the
//! accessors without a unit return a [`Duration`] or bytes.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::guest::{GuestKind, GuestLimits, GuestSettings};

const KIB: usize = 1024;
const MIB: usize = 1024 * 1024;

/// Everything that a host can be told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the world and the control port's token are kept.
    pub data_dir: PathBuf,
    /// Admission to the loop and the size of its batches: the section `loop`.
    #[serde(rename = "loop")]
    pub game_loop: LoopSettings,
    /// The timer wheel.
    pub timers: TimerSettings,
    /// Step tasks and jobs.
    pub dispatch: DispatchSettings,
    /// Limits that every guest has.
    pub guest: GuestLimits,
    /// The world.
    pub world: WorldSettings,
    /// How NPCs think.
    pub npcs: NpcSettings,
    /// The listener for clients.
    pub gate: GateSettings,
    /// The control port.
    pub admin: AdminSettings,
    /// Durable state.
    pub store: StoreSettings,
    /// The log.
    pub log: LogSettings,
    /// The guests, in the order in which they are started.
    pub guests: Vec<GuestSettings>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            data_dir: PathBuf::from("wheelhouse-data"),
            game_loop: LoopSettings::default(),
            timers: TimerSettings::default(),
            dispatch: DispatchSettings::default(),
            guest: GuestLimits::default(),
            world: WorldSettings::default(),
            npcs: NpcSettings::default(),
            gate: GateSettings::default(),
            admin: AdminSettings::default(),
            store: StoreSettings::default(),
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

/// Admission to the loop and the size of its batches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoopSettings {
    /// Work items that may wait, the running one not counted.
    pub queue_capacity: usize,
    /// Items attempted in one batch.
    pub max_items_per_batch: usize,
    /// Time for the items of one batch, looked at between two items.
    pub item_budget_ms: u64,
}

impl Default for LoopSettings {
    fn default() -> Self {
        LoopSettings { queue_capacity: 4096, max_items_per_batch: 256, item_budget_ms: 5 }
    }
}

impl LoopSettings {
    /// `item_budget_ms` as a duration.
    pub fn item_budget(&self) -> Duration {
        Duration::from_millis(self.item_budget_ms)
    }
}

/// The timer wheel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TimerSettings {
    /// Length of a tick: deadlines are rounded up to it.
    pub tick_ms: u64,
    /// Slots of the wheel.
    pub wheel_size: usize,
    /// Timers that may be pending.
    pub max_pending: usize,
    /// Callbacks attempted in one batch.
    pub max_callbacks_per_batch: usize,
    /// Time for the callbacks of one batch, looked at between two callbacks.
    pub callback_budget_ms: u64,
}

impl Default for TimerSettings {
    fn default() -> Self {
        TimerSettings {
            tick_ms: 8,
            wheel_size: 512,
            max_pending: 65_536,
            max_callbacks_per_batch: 256,
            callback_budget_ms: 5,
        }
    }
}

impl TimerSettings {
    /// `tick_ms` as a duration.
    pub fn tick(&self) -> Duration {
        Duration::from_millis(self.tick_ms)
    }

    /// `callback_budget_ms` as a duration.
    pub fn callback_budget(&self) -> Duration {
        Duration::from_millis(self.callback_budget_ms)
    }
}

/// Step tasks and jobs: what they get of each frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DispatchSettings {
    /// Frames a second; what a frame leaves over goes to tasks.
    pub target_tps: u32,
    /// A task too dear to fit still gets one step every so many frames.
    pub starvation_frames: u32,
    /// How long a job runs before the loop takes control back.
    pub job_slice_ms: u64,
    /// Tasks that may run at the same time.
    pub max_tasks: usize,
}

impl Default for DispatchSettings {
    fn default() -> Self {
        DispatchSettings { target_tps: 60, starvation_frames: 8, job_slice_ms: 2, max_tasks: 64 }
    }
}

impl DispatchSettings {
    /// The length of a frame at `target_tps`.
    pub fn frame(&self) -> Duration {
        Duration::from_secs(1) / self.target_tps.max(1)
    }

    /// `job_slice_ms` as a duration.
    pub fn job_slice(&self) -> Duration {
        Duration::from_millis(self.job_slice_ms)
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
        WorldSettings { seed: 1, max_entities: 1_000_000, max_data_kb: 64, max_kv_mb: 64 }
    }
}

impl WorldSettings {
    /// `max_data_kb` in bytes.
    pub fn max_data_bytes(&self) -> usize {
        self.max_data_kb.saturating_mul(KIB)
    }

    /// `max_kv_mb` in bytes.
    pub fn max_kv_bytes(&self) -> usize {
        self.max_kv_mb.saturating_mul(MIB)
    }
}

/// How NPCs think.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NpcSettings {
    /// Time between two thinks of an NPC near a player.
    pub think_interval_ms: u64,
    /// Sightings that an NPC gets, the nearest first.
    pub max_seen: usize,
    /// How far an NPC sees, in tiles.
    pub sight_radius: u32,
    /// How far an NPC moves in one think, in tiles.
    pub max_step: u32,
}

impl Default for NpcSettings {
    fn default() -> Self {
        NpcSettings { think_interval_ms: 500, max_seen: 16, sight_radius: 8, max_step: 2 }
    }
}

impl NpcSettings {
    /// `think_interval_ms` as a duration.
    pub fn think_interval(&self) -> Duration {
        Duration::from_millis(self.think_interval_ms)
    }
}

/// The listener for clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GateSettings {
    /// Where clients connect; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Clients connected at the same time.
    pub max_connections: usize,
    /// The longest frame, the two bytes of length not counted.
    pub max_frame_bytes: usize,
    /// Frames of one client in a second, over time.
    pub max_frames_per_second: u32,
    /// Frames of one client at once, before the rate counts.
    pub frame_burst: u32,
    /// A client that sends nothing for so long is closed.
    pub idle_timeout_s: u64,
    /// What may wait to be sent to one client.
    pub max_backlog_kb: usize,
    /// The game guest that hears of connections and packets; the first one if absent.
    pub guest: Option<String>,
}

impl Default for GateSettings {
    fn default() -> Self {
        GateSettings {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7171)),
            max_connections: 10_000,
            max_frame_bytes: 16_384,
            max_frames_per_second: 200,
            frame_burst: 400,
            idle_timeout_s: 300,
            max_backlog_kb: 1024,
            guest: None,
        }
    }
}

impl GateSettings {
    /// `idle_timeout_s` as a duration.
    pub fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.idle_timeout_s)
    }

    /// `max_backlog_kb` in bytes.
    pub fn max_backlog_bytes(&self) -> usize {
        self.max_backlog_kb.saturating_mul(KIB)
    }
}

/// The control port that `wheelhouse status` talks to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdminSettings {
    /// A loopback address; port 0 takes a free one.
    pub listen: SocketAddr,
}

impl Default for AdminSettings {
    fn default() -> Self {
        AdminSettings { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)) }
    }
}

/// Durable state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSettings {
    /// Time between two saves of the guests' own state.
    pub checkpoint_interval_s: u64,
}

impl Default for StoreSettings {
    fn default() -> Self {
        StoreSettings { checkpoint_interval_s: 30 }
    }
}

impl StoreSettings {
    /// `checkpoint_interval_s` as a duration.
    pub fn checkpoint_interval(&self) -> Duration {
        Duration::from_secs(self.checkpoint_interval_s)
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
