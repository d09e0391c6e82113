//! What a store holds beside the guest's memory: whose it is, what it may touch, its random numbers and its limits. The
//! imports are implemented on it; see `imports/`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use wasmtime::component::ResourceTable;
use wasmtime::{ResourceLimiter, StoreLimits, StoreLimitsBuilder};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::counters::{GuestCounters, GuestState};
use super::engine::MAX_TABLE_ELEMENTS;
use super::imports::wasi;
use super::log_lines::LogLines;
use super::settings::GuestLimits;
use super::stage::{Durable, GuestId, Stage};
use super::supervisor::Supervisor;
use crate::clock::SharedClock;

/// What is the same for all instances of a guest.
#[derive(Clone)]
pub struct Identity {
    pub id: GuestId,
    pub name: Arc<str>,
    /// Whether its handlers change the world. Others only read.
    pub writes: bool,
    pub clock: SharedClock,
    pub limits: Arc<GuestLimits>,
    pub max_memory_bytes: usize,
    pub log: Arc<LogLines>,
    pub counters: Arc<GuestCounters>,
    /// The world's seed.
    pub seed: u64,
}

impl Identity {
    /// Who counts the failures of its code.
    pub fn supervisor(&self) -> Supervisor {
        Supervisor::new(self.limits.max_failures, self.limits.failure_window())
    }

    /// Notes and logs that the guest failed too often and is left alone from here on.
    pub fn disable(&self) {
        self.counters.set_state(GuestState::Disabled);
        tracing::error!(
            guest = &*self.name,
            "the guest is disabled: it failed {} times within {} s; mend it and start the host again",
            self.limits.max_failures,
            self.limits.failure_window_s
        );
    }
}

/// The data of one instance's store.
pub struct InstanceState {
    pub(super) identity: Arc<Identity>,
    /// The stage, while a call runs that may touch it.
    pub(super) stage: Option<Box<Stage>>,
    /// Whether it has ever asked for the stage.
    pub(super) has_asked_for_stage: bool,
    /// When the call that runs began, and how long it may take.
    pub(super) began: Duration,
    pub(super) limit: Duration,
    pub(super) random: ChaCha8Rng,
    memory: MemoryLimit,
    /// What its random numbers began with.
    seed: u64,
    /// Made when it is needed: most guests have no use for it.
    wasi: Option<WasiCtx>,
    table: ResourceTable,
}

impl InstanceState {
    /// The state of the `number`-th instance of a guest. The same number gives the same random numbers.
    pub fn new(identity: Arc<Identity>, number: u64) -> Self {
        let seed = seed_for(identity.seed, &identity.name, number);
        Self {
            wasi: None,
            seed,
            memory: MemoryLimit::new(&identity),
            table: ResourceTable::new(),
            stage: None,
            has_asked_for_stage: false,
            began: Duration::ZERO,
            limit: Duration::ZERO,
            random: ChaCha8Rng::seed_from_u64(seed),
            identity,
        }
    }

    /// The same, with its memory counted in one more place.
    pub(crate) fn with_memory_counted_in(mut self, bytes: Arc<AtomicUsize>) -> Self {
        self.memory.of_instance = Some(bytes);
        self
    }

    /// The stage that the call was lent.
    pub(super) fn stage(&mut self) -> wasmtime::Result<&mut Stage> {
        self.has_asked_for_stage = true;
        match &mut self.stage {
            Some(stage) => Ok(stage),
            None => Err(wasmtime::format_err!("the world is not open to this call")),
        }
    }

    /// The stage, for a look at something durable.
    pub(super) fn stage_to_read(&mut self, what: Durable) -> wasmtime::Result<&mut Stage> {
        let stage = self.stage()?;
        stage.note_read(what);
        Ok(stage)
    }

    /// The stage, if this call may change it.
    ///
    /// It counts as a look as well: a change that is refused, or that finds nothing to change, tells something too.
    pub(super) fn stage_to_write(&mut self, what: Durable) -> wasmtime::Result<Option<&mut Stage>> {
        let writes = self.identity.writes;
        self.stage_to_read(what).map(|stage| writes.then_some(stage))
    }

    /// What bounds its memory.
    pub(crate) fn limiter(&mut self) -> &mut dyn ResourceLimiter {
        &mut self.memory
    }
}

impl WasiView for InstanceState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let Self { wasi, identity, seed, table, .. } = self;
        let context = wasi.get_or_insert_with(|| wasi::context(identity, ChaCha8Rng::seed_from_u64(*seed)));
        WasiCtxView { ctx: context, table }
    }
}

/// Mixes the world's seed with a name and a number (FNV-1a), so that guests do not draw the same numbers.
fn seed_for(seed: u64, name: &str, number: u64) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let bytes = seed.to_le_bytes().into_iter().chain(name.bytes()).chain(number.to_le_bytes());
    bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// Bounds the memory of an instance and tells the counters how much it has.
struct MemoryLimit {
    limits: StoreLimits,
    counters: Arc<GuestCounters>,
    /// Where the memory of this instance alone is counted.
    of_instance: Option<Arc<AtomicUsize>>,
    held_bytes: usize,
}

impl MemoryLimit {
    fn new(identity: &Identity) -> Self {
        let limits =
            StoreLimitsBuilder::new().memory_size(identity.max_memory_bytes).table_elements(MAX_TABLE_ELEMENTS).build();
        Self { limits, counters: Arc::clone(&identity.counters), of_instance: None, held_bytes: 0 }
    }
}

impl ResourceLimiter for MemoryLimit {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let allowed = self.limits.memory_growing(current, desired, maximum)?;
        if allowed {
            let grown = desired.saturating_sub(current);
            self.held_bytes += grown;
            self.counters.memory_bytes.fetch_add(grown, Ordering::Relaxed);
            if let Some(bytes) = &self.of_instance {
                bytes.store(self.held_bytes, Ordering::Relaxed);
            }
        }
        Ok(allowed)
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        self.limits.table_growing(current, desired, maximum)
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        self.counters.memory_bytes.fetch_sub(self.held_bytes, Ordering::Relaxed);
    }
}
