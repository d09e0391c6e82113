//! What a host is told about its guests: the limits they all have, and for each its name, kind, file and grants. Plain
//! structs that the configuration is read into and that a program which embeds the host fills itself.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

const KIB: usize = 1024;
const MIB: usize = 1024 * 1024;

/// Limits that every guest has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuestLimits {
    /// A call longer than this is logged and counted.
    pub soft_budget_ms: u64,
    /// A call longer than this is stopped.
    pub deadline_ms: u64,
    /// The deadline of `init` and `restore`, and of making an instance: for languages whose runtimes start slowly.
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
            init_deadline_ms: 50,
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
    /// Services: whether one is launched when the host starts, under the guest's name.
    #[serde(default)]
    pub start: bool,
    /// The arguments of the service that `start` launches.
    #[serde(default)]
    pub arguments: Option<String>,
    /// Services: whether one that has ended is started again.
    #[serde(default)]
    pub restart: RestartPolicy,
    /// Services: where one may connect to, as `host:port`, or `host:*` for every port of that host.
    #[serde(default)]
    pub sockets: Vec<String>,
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
            start: false,
            arguments: None,
            restart: RestartPolicy::Never,
            sockets: Vec::new(),
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
    /// An actor outside the loop.
    Service,
}

impl GuestKind {
    /// Every kind that this host runs.
    pub const ALL: [GuestKind; 5] =
        [GuestKind::Game, GuestKind::Thinker, GuestKind::StepTask, GuestKind::Job, GuestKind::Service];

    /// The word for it in configurations, logs and the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            GuestKind::Game => "game",
            GuestKind::Thinker => "thinker",
            GuestKind::StepTask => "step-task",
            GuestKind::Job => "job",
            GuestKind::Service => "service",
        }
    }
}

impl fmt::Display for GuestKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// What becomes of a service when it has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestartPolicy {
    /// It stays away.
    #[default]
    Never,
    /// It is started again if it failed, and not if it exited or was killed.
    OnFailure,
    /// It is started again however it ended.
    Always,
}

impl RestartPolicy {
    /// Every policy there is.
    pub const ALL: [RestartPolicy; 3] = [RestartPolicy::Never, RestartPolicy::OnFailure, RestartPolicy::Always];

    /// The word for it in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            RestartPolicy::Never => "never",
            RestartPolicy::OnFailure => "on-failure",
            RestartPolicy::Always => "always",
        }
    }
}

impl fmt::Display for RestartPolicy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// What a guest may import only where it is granted: an interface of the contract, or several that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    Timers,
    Tasks,
    Events,
    Entities,
    Kv,
    Services,
    Sockets,
    Gate,
    Metrics,
}

impl Grant {
    /// Every grant there is.
    pub const ALL: [Grant; 9] = [
        Grant::Timers,
        Grant::Tasks,
        Grant::Events,
        Grant::Entities,
        Grant::Kv,
        Grant::Services,
        Grant::Sockets,
        Grant::Gate,
        Grant::Metrics,
    ];

    /// The word for it in configurations, which is the name of its interface, or of the first of several.
    pub fn as_str(self) -> &'static str {
        match self {
            Grant::Timers => "timers",
            Grant::Tasks => "tasks",
            Grant::Events => "events",
            Grant::Entities => "entities",
            Grant::Kv => "kv",
            Grant::Services => "services",
            Grant::Sockets => "sockets",
            Grant::Gate => "gate",
            Grant::Metrics => "metrics",
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
