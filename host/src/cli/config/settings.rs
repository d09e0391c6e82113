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

/// Limits that every guest has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuestLimits {
    /// A call longer than this is logged and counted.
    pub soft_budget_ms: u64,
    /// A call longer than this is stopped.
    pub deadline_ms: u64,
    /// The deadline of `init`, which may do more than other calls.
    pub init_deadline_ms: u64,
    /// Memory of one instance.
    pub max_memory_mb: usize,
    /// What a guest may hand to an import, or get from the host, in one piece.
    pub max_payload_kb: usize,
    /// Log lines of one guest in a second; what is above is dropped and counted.
    pub max_log_lines_per_s: u32,
    /// Failures within `failure_window_s` after which a guest is disabled.
    pub max_failures: u32,
    /// The window over which failures are counted.
    pub failure_window_s: u64,
    /// Instances of all guests together.
    pub max_instances: u32,
    /// Keep compiled code on disk, so that the next start is fast.
    pub code_cache: bool,
}

impl Default for GuestLimits {
    fn default() -> Self {
        GuestLimits {
            soft_budget_ms: 10,
            deadline_ms: 50,
            init_deadline_ms: 2000,
            max_memory_mb: 64,
            max_payload_kb: 1024,
            max_log_lines_per_s: 200,
            max_failures: 10,
            failure_window_s: 60,
            max_instances: 256,
            code_cache: true,
        }
    }
}

impl GuestLimits {
    /// `soft_budget_ms` as a duration.
    pub fn soft_budget(&self) -> Duration {
        Duration::from_millis(self.soft_budget_ms)
    }

    /// `deadline_ms` as a duration.
    pub fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }

    /// `init_deadline_ms` as a duration.
    pub fn init_deadline(&self) -> Duration {
        Duration::from_millis(self.init_deadline_ms)
    }

    /// `failure_window_s` as a duration.
    pub fn failure_window(&self) -> Duration {
        Duration::from_secs(self.failure_window_s)
    }

    /// `max_memory_mb` in bytes.
    pub fn max_memory_bytes(&self) -> usize {
        self.max_memory_mb.saturating_mul(MIB)
    }

    /// `max_payload_kb` in bytes.
    pub fn max_payload_bytes(&self) -> usize {
        self.max_payload_kb.saturating_mul(KIB)
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

/// One guest: an entry of `[[guests]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestSettings {
    /// The name that logs, metrics and other guests know it by.
    pub name: String,
    /// Which of the contract's worlds it implements.
    pub kind: GuestKind,
    /// The component, or core module with a `component-type` section.
    pub file: PathBuf,
    /// What it may import beyond `log`, `clock` and `random`.
    #[serde(default)]
    pub grants: Vec<Grant>,
    /// False leaves it out.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Memory of one instance, where it is not `guest.max_memory_mb`.
    #[serde(default)]
    pub max_memory_mb: Option<usize>,
    /// Its own table, which reaches its `init` as JSON.
    #[serde(default)]
    pub config: serde_json::Map<String, serde_json::Value>,
}

fn yes() -> bool {
    true
}

impl GuestSettings {
    /// A guest without grants, limits or configuration of its own.
    pub fn new(name: impl Into<String>, kind: GuestKind, file: impl Into<PathBuf>) -> Self {
        GuestSettings {
            name: name.into(),
            kind,
            file: file.into(),
            grants: Vec::new(),
            enabled: true,
            max_memory_mb: None,
            config: serde_json::Map::new(),
        }
    }

    /// The table `config` as the JSON that `init` is given.
    pub fn config_json(&self) -> String {
        serde_json::Value::Object(self.config.clone()).to_string()
    }

    /// Memory of one instance of this guest in bytes, its own limit or the one that all have.
    pub fn max_memory_bytes(&self, limits: &GuestLimits) -> usize {
        self.max_memory_mb.unwrap_or(limits.max_memory_mb).saturating_mul(MIB)
    }
}

/// Which of the contract's worlds a guest implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestKind {
    /// The rules of the game.
    Game,
    /// Decides for NPCs.
    Thinker,
    /// Work that the guest cuts in steps.
    StepTask,
    /// Work written straight through, which the host cuts.
    Job,
}

/// An interface of the contract that a guest may import only where it is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    Timers,
    Tasks,
    Entities,
    Kv,
    Gate,
    Metrics,
}
