//! The table `[swap]` of the configuration: how new code takes over while the world runs, and when it has to go again.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The options of swaps, with their defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwapOptions {
    /// How long new code is on probation.
    pub probation_s: u64,
    /// Failures of new code within its probation that bring the old code back. A call beyond its deadline is enough.
    pub max_failures: u32,
    /// How long requests that a service has in hand may take on the old instance. Those that take longer end with an error.
    pub drain_ms: u64,
    /// Generations of each guest's code that are kept, the one that runs included.
    pub keep: usize,
}

impl Default for SwapOptions {
    fn default() -> Self {
        Self { probation_s: 30, max_failures: 2, drain_ms: 5000, keep: 5 }
    }
}

impl SwapOptions {
    /// `probation_s` as a duration.
    pub fn probation(&self) -> Duration {
        Duration::from_secs(self.probation_s)
    }

    /// `drain_ms` as a duration.
    pub fn drain(&self) -> Duration {
        Duration::from_millis(self.drain_ms)
    }
}
