//! The figures of services, for operators: totals for the status, and a line for each that runs.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::member::MemberKind;

/// What is counted while services run.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub launched: AtomicU64,
    pub exited: AtomicU64,
    pub failed: AtomicU64,
    /// The longest that the mailbox of any member that has ended ever was.
    pub longest_of_ended: AtomicU64,
    /// Messages that members handled which have ended.
    pub handled_by_ended: AtomicU64,
}

impl Counters {
    pub fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::SeqCst);
    }
}

/// The part `services` of the status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServicesSnapshot {
    /// Services that run now: always those launched without those that exited or failed.
    pub running: u64,
    pub launched: u64,
    /// Services that ended by themselves or were killed.
    pub exited: u64,
    /// Services that trapped, passed their deadline or broke a limit, or whose `init` refused.
    pub failed: u64,
    /// Messages handled.
    pub messages: u64,
    /// Messages that reached nobody.
    pub dead_letters: u64,
    /// The longest that a mailbox has been.
    pub mailbox_max: u64,
}

/// A service that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceEntry {
    pub handle: u64,
    /// The name of its guest, or what a native service is.
    pub guest: String,
    pub kind: MemberKind,
    /// The names that it is registered under.
    pub names: Vec<String>,
    /// Messages that wait in its mailbox.
    pub mailbox: usize,
    /// Messages that it has in hand.
    pub in_hand: usize,
    /// Messages that it has handled.
    pub messages: u64,
    pub memory_bytes: usize,
    /// Time that it has computed.
    pub used_ms: u64,
}
