//! The figures of services, for operators: totals for the status, and a line for each that runs.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::dead_letters::DeadLetter;
use super::member::{Member, MemberKind};
use super::services::Services;

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

    /// Services that were launched and have not ended.
    pub fn running(&self) -> u64 {
        let [launched, exited, failed] = self.read();
        launched - exited - failed
    }

    /// How many were launched, exited and failed.
    fn read(&self) -> [u64; 3] {
        // Those that have ended are read first: whoever has ended was launched before.
        let [exited, failed] = [&self.exited, &self.failed].map(|counter| counter.load(Ordering::SeqCst));
        [self.launched.load(Ordering::SeqCst), exited, failed]
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
    /// Messages that an async service handles at one time; 0 for others, which handle one after the other.
    pub in_hand: usize,
    /// Messages that it has handled.
    pub messages: u64,
    pub memory_bytes: usize,
    /// Time that it has computed.
    pub used_ms: u64,
}

impl Services {
    /// The figures.
    pub fn snapshot(&self) -> ServicesSnapshot {
        let counters = &self.shared.counters;
        let [launched, exited, failed] = counters.read();
        let mut snapshot = ServicesSnapshot {
            running: launched - exited - failed,
            launched,
            exited,
            failed,
            messages: counters.handled_by_ended.load(Ordering::Relaxed),
            dead_letters: self.shared.dead_letters.count(),
            mailbox_max: counters.longest_of_ended.load(Ordering::Relaxed),
        };
        for member in &self.shared.directory {
            snapshot.messages += member.handled.load(Ordering::Relaxed);
            snapshot.mailbox_max = snapshot.mailbox_max.max(member.mailbox.lengths().1 as u64);
        }
        snapshot
    }

    /// A line for each member, oldest first.
    pub fn list(&self) -> Vec<ServiceEntry> {
        let mut entries: Vec<_> = self.shared.directory.iter().map(|member| self.entry(&member)).collect();
        entries.sort_unstable_by_key(|entry| entry.handle);
        entries
    }

    fn entry(&self, member: &Member) -> ServiceEntry {
        ServiceEntry {
            handle: member.handle.0,
            guest: member.label.to_string(),
            kind: member.kind,
            names: self.shared.names.of(member.handle),
            mailbox: member.mailbox.lengths().0,
            in_hand: member.in_hand.load(Ordering::Relaxed),
            messages: member.handled.load(Ordering::Relaxed),
            memory_bytes: member.memory_bytes.load(Ordering::Relaxed),
            used_ms: member.used_ns.load(Ordering::Relaxed) / 1_000_000,
        }
    }

    /// The last messages that reached nobody, oldest first.
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.shared.dead_letters.last()
    }
}
