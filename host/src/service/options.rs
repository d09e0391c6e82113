//! The table `[service]` of the configuration: how many services there may be, and the limits each lives under.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The options of services, with their defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceOptions {
    /// Threads that run services; as many as there are processors if absent.
    pub threads: Option<usize>,
    /// Services that run at one time.
    pub max_running: u32,
    /// Messages in one mailbox.
    pub mailbox_capacity: usize,
    /// Payloads in one mailbox together, and those of one service's timeouts.
    pub mailbox_mb: usize,
    /// Computing time of one message; a service that takes longer is stopped. Waiting does not count.
    pub deadline_ms: u64,
    /// Messages that an async service has in hand at one time.
    pub max_in_hand: usize,
    /// Requests of one guest that wait for an answer.
    pub max_waiting: u32,
    /// How long an answer is waited for where the caller does not say.
    pub call_limit_ms: u64,
    /// The first pause before a service that ended is started again; it doubles each time, up to a hundredfold.
    pub restart_pause_ms: u64,
    /// Starts of a service in a row after which it is given up: its pauses begin anew once it has run for
    /// `guest.failure_window_s`.
    pub max_restarts: u32,
    /// Shared blobs together.
    pub max_shared_mb: usize,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self {
            threads: None,
            max_running: 6000,
            mailbox_capacity: 16_384,
            mailbox_mb: 16,
            deadline_ms: 1000,
            max_in_hand: 64,
            max_waiting: 4096,
            call_limit_ms: 30_000,
            restart_pause_ms: 250,
            max_restarts: 10,
            max_shared_mb: 64,
        }
    }
}

impl ServiceOptions {
    /// `deadline_ms` as a duration.
    pub fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }

    /// How long an answer is waited for where the caller says so many milliseconds, or does not say.
    pub fn call_limit_of(&self, limit_ms: Option<u32>) -> Duration {
        Duration::from_millis(limit_ms.map_or(self.call_limit_ms, u64::from))
    }

    /// `restart_pause_ms` as a duration.
    pub fn restart_pause(&self) -> Duration {
        Duration::from_millis(self.restart_pause_ms)
    }

    /// `mailbox_mb` in bytes.
    pub fn max_mailbox_bytes(&self) -> usize {
        self.mailbox_mb.saturating_mul(1024 * 1024)
    }

    /// `max_shared_mb` in bytes.
    pub fn max_shared_bytes(&self) -> usize {
        self.max_shared_mb.saturating_mul(1024 * 1024)
    }
}
