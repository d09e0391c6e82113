//! What is counted of one guest, kept where the loop adds to it and anybody reads it without stopping the loop.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use super::settings::GuestKind;

/// The names of its own that a guest may count under.
const MAX_CUSTOM_NAMES: usize = 64;
const MAX_CUSTOM_NAME_BYTES: usize = 64;

/// Whether a guest runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum GuestState {
    /// It has no instance yet, or none again: its code is being compiled, or it is to be started after a pause.
    Loading,
    /// It answers calls.
    Running,
    /// It failed too often and is left alone.
    Disabled,
    /// Its file cannot be run by this host.
    Refused,
}

impl GuestState {
    fn from_u8(value: u8) -> Self {
        match value {
            0 => GuestState::Loading,
            1 => GuestState::Running,
            2 => GuestState::Disabled,
            _ => GuestState::Refused,
        }
    }
}

/// The counters of one guest.
#[derive(Debug)]
pub struct GuestCounters {
    name: String,
    kind: GuestKind,
    state: AtomicU8,
    generation: AtomicU64,
    /// Calls made.
    pub calls: AtomicU64,
    /// Calls that trapped, passed their deadline or broke a limit, and loads that were refused.
    pub failures: AtomicU64,
    /// Handlers that answered with an error.
    pub refused: AtomicU64,
    /// Calls over the soft budget.
    pub slow: AtomicU64,
    /// Memory of all its instances.
    pub memory_bytes: AtomicUsize,
    custom: Mutex<BTreeMap<String, f64>>,
}

/// A guest's part of the host's metrics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuestSnapshot {
    pub name: String,
    pub kind: GuestKind,
    pub state: GuestState,
    /// Which version of its code runs, counted from 1.
    pub generation: u64,
    pub calls: u64,
    pub failures: u64,
    pub refused: u64,
    pub slow: u64,
    pub memory_bytes: usize,
    /// What it counts itself, by name.
    pub custom: BTreeMap<String, f64>,
}

impl GuestCounters {
    pub fn new(name: &str, kind: GuestKind) -> Self {
        Self {
            name: name.into(),
            kind,
            state: AtomicU8::new(GuestState::Loading as u8),
            generation: AtomicU64::new(1),
            calls: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            slow: AtomicU64::new(0),
            memory_bytes: AtomicUsize::new(0),
            custom: Mutex::default(),
        }
    }

    pub fn state(&self) -> GuestState {
        GuestState::from_u8(self.state.load(Ordering::Relaxed))
    }

    /// Notes whether it runs.
    pub fn set_state(&self, state: GuestState) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// Which version of its code runs, counted from 1.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Notes which version of its code runs.
    pub fn set_generation(&self, generation: u64) {
        self.generation.store(generation, Ordering::Relaxed);
    }

    /// Changes one of the guest's own numbers; a name too many or too long is dropped.
    pub(super) fn change_custom(&self, name: String, change: impl FnOnce(&mut f64)) {
        let mut custom = self.custom.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(value) = custom.get_mut(&name) {
            change(value);
        } else if custom.len() < MAX_CUSTOM_NAMES && name.len() <= MAX_CUSTOM_NAME_BYTES {
            change(custom.entry(name).or_default());
        }
    }

    /// The counters now.
    pub fn snapshot(&self) -> GuestSnapshot {
        GuestSnapshot {
            name: self.name.clone(),
            kind: self.kind,
            state: self.state(),
            generation: self.generation(),
            calls: self.calls.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            slow: self.slow.load(Ordering::Relaxed),
            memory_bytes: self.memory_bytes.load(Ordering::Relaxed),
            custom: self.custom.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone(),
        }
    }
}
