//! The engine for loop guests: how they are compiled, where their memory lies, and that they can be stopped. One per
//! host. It runs nothing by itself.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use wasmtime::{Cache, CacheConfig, Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use super::epoch::{EpochTicker, Ticking};
use super::function_cache::FunctionCache;
use super::settings::{GuestLimits, GuestSettings};
use crate::clock::{SharedClock, thread_cpu_time};

/// Core instances, memories and tables of one component: the guest's module, adapters and what glues them.
const PARTS_PER_COMPONENT: u32 = 8;

/// Elements of one table. Interpreters bring large tables of functions.
pub(super) const MAX_TABLE_ELEMENTS: usize = 100_000;

/// Machine code that an engine remembers, function by function. The engines of JavaScript and Python have some 40 MiB each.
const MAX_FUNCTION_CACHE_BYTES: usize = 256 * 1024 * 1024;

/// What stays in use of the memory of an instance that is gone, for the next in its place: one that takes over while the
/// loop waits need not fetch each page from the system first.
const KEPT_BYTES: usize = 2 * 1024 * 1024;

/// Wasm stack of a call. A guest that recurses deeper traps.
const MAX_WASM_STACK_BYTES: usize = 512 * 1024;

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(
        "the address space for {instances} instances of guests cannot be reserved: {message}; lower {key}, or raise what \
         one process may have (ulimit -v, and the kernel's vm.max_map_count with sysctl)"
    )]
    Memory { instances: u32, message: String, key: &'static str },
    #[error("the code cache cannot be used: {message}; mend the data directory or set guest.code_cache = false")]
    Cache { message: String },
    #[error("the thread that watches deadlines cannot be started: {0}")]
    Ticker(std::io::Error),
}

impl EngineError {
    /// There is no room for so many instances, of which `key` has the number.
    pub(crate) fn memory(instances: u32, key: &'static str, error: &wasmtime::Error) -> Self {
        EngineError::Memory { instances, message: format!("{error:#}"), key }
    }
}

/// A wasmtime engine with concurrency support off, which halves what a call costs, and its epoch thread.
#[derive(Clone)]
pub struct LoopEngine {
    engine: Engine,
    ticker: Arc<EpochTicker>,
    limits: Arc<GuestLimits>,
    clock: SharedClock,
    cpu: Arc<CpuMark>,
}

/// When the loop thread's CPU time was read last, and what it was. A call that has passed its deadline on the clock is
/// stopped only if its thread has also worked for that long: on a busy machine the thread may not have run at all.
#[derive(Debug, Default)]
pub(super) struct CpuMark {
    read_at_ns: AtomicU64,
    cpu_ns: AtomicU64,
}

/// How old the mark may be when a call begins. A call is charged with no more than that of its predecessors' time.
const CPU_MARK_AGE_NS: u64 = 1_000_000;

impl CpuMark {
    /// To be called when a call begins, at `now`.
    pub fn refresh(&self, now: Duration) {
        let now_ns = now.as_nanos() as u64;
        if now_ns.saturating_sub(self.read_at_ns.load(Ordering::Relaxed)) >= CPU_MARK_AGE_NS {
            self.cpu_ns.store(thread_cpu_time().as_nanos() as u64, Ordering::Relaxed);
            self.read_at_ns.store(now_ns, Ordering::Relaxed);
        }
    }

    /// CPU time since the mark, of the thread that called [`refresh`](Self::refresh).
    pub fn used(&self) -> Duration {
        thread_cpu_time().saturating_sub(Duration::from_nanos(self.cpu_ns.load(Ordering::Relaxed)))
    }
}

impl LoopEngine {
    /// An engine for guests that all have these limits. Compiled code is kept in `cache_folder`, if there is one.
    pub fn new(limits: &GuestLimits, cache_folder: Option<&Path>, clock: SharedClock) -> Result<Self, EngineError> {
        Self::for_guests([], limits, cache_folder, clock)
    }

    /// An engine for these guests, of which some may have a memory of their own size, and for others within `limits`.
    pub fn for_guests<'a>(
        guests: impl IntoIterator<Item = &'a GuestSettings>,
        limits: &GuestLimits,
        cache_folder: Option<&Path>,
        clock: SharedClock,
    ) -> Result<Self, EngineError> {
        let memory = largest_memory(guests, limits);
        let mut config = config(limits.max_instances, memory, KEPT_BYTES, cache_folder)?;
        config.concurrency_support(false);
        let engine = Engine::new(&config)
            .map_err(|error| EngineError::memory(limits.max_instances, "guest.max_instances", &error))?;
        let ticker = EpochTicker::start(vec![engine.clone()]).map_err(EngineError::Ticker)?;
        Ok(Self { engine, ticker: Arc::new(ticker), limits: Arc::new(limits.clone()), clock, cpu: Arc::default() })
    }

    /// The wasmtime engine.
    pub fn wasmtime(&self) -> &Engine {
        &self.engine
    }

    /// The limits that its guests have.
    pub fn limits(&self) -> &Arc<GuestLimits> {
        &self.limits
    }

    /// The host's clock.
    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// The same engine for calls on another thread than the loop's.
    pub(super) fn elsewhere(&self) -> Self {
        Self { cpu: Arc::default(), ..self.clone() }
    }

    /// The CPU time of the thread that calls guests.
    pub(super) fn cpu(&self) -> &Arc<CpuMark> {
        &self.cpu
    }

    /// To be held during a call, so that its deadline passes.
    pub(super) fn tick(&self) -> Ticking<'_> {
        self.ticker.tick()
    }
}

/// The largest memory that one of these guests may have. All places of a pool are of one size; what each guest may have of
/// its place is checked when it grows.
pub(crate) fn largest_memory<'a>(guests: impl IntoIterator<Item = &'a GuestSettings>, limits: &GuestLimits) -> usize {
    let own = guests.into_iter().map(|guest| guest.max_memory_bytes(limits));
    own.fold(limits.max_memory_bytes(), usize::max)
}

/// What all engines have in common: a pool of so many instances, of whose memory `kept_bytes` stay in use when one is gone,
/// calls that can be stopped, and a cache of compiled code.
pub(crate) fn config(
    instances: u32,
    max_memory_bytes: usize,
    kept_bytes: usize,
    cache_folder: Option<&Path>,
) -> Result<Config, EngineError> {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(MAX_WASM_STACK_BYTES)
        .async_stack_size(4 * MAX_WASM_STACK_BYTES)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pooling(instances, max_memory_bytes, kept_bytes)));
    config
        .enable_incremental_compilation(Arc::new(FunctionCache::new(MAX_FUNCTION_CACHE_BYTES)))
        .map_err(|error| EngineError::Cache { message: format!("{error:#}") })?;
    if let Some(folder) = cache_folder {
        let mut cache = CacheConfig::new();
        cache.with_directory(folder);
        let cache = Cache::new(cache).map_err(|error| EngineError::Cache { message: format!("{error:#}") })?;
        config.cache(Some(cache));
    }
    Ok(config)
}

fn pooling(instances: u32, max_memory_bytes: usize, kept_bytes: usize) -> PoolingAllocationConfig {
    let parts = instances.saturating_mul(PARTS_PER_COMPONENT);
    // Few components have two memories, and each place takes 4 GiB of the 128 TiB of addresses that there are.
    let memories = instances.saturating_add(instances / 4).saturating_add(2);
    let mut pooling = PoolingAllocationConfig::new();
    pooling
        .total_component_instances(instances)
        .total_core_instances(parts)
        .max_core_instances_per_component(4 * PARTS_PER_COMPONENT)
        .total_memories(memories)
        .max_memories_per_component(2)
        .total_tables(parts)
        .max_tables_per_component(PARTS_PER_COMPONENT)
        .table_elements(MAX_TABLE_ELEMENTS)
        .total_stacks(instances)
        .max_memory_size(max_memory_bytes)
        .linear_memory_keep_resident(kept_bytes);
    pooling
}

#[cfg(test)]
mod tests {
    use wasmtime::{Instance, Module, Store};

    use super::*;
    use crate::clock::ManualClock;
    use crate::guest::GuestKind;

    /// A module whose memory has 1040 pages of 64 KiB from the start: 65 MiB.
    const NEEDS_65_MB: &[u8] = &[0, b'a', b's', b'm', 1, 0, 0, 0, 5, 4, 1, 0, 0x90, 0x08];

    fn runs_on(engine: &LoopEngine) -> bool {
        let module = Module::new(engine.wasmtime(), NEEDS_65_MB);
        module.is_ok_and(|module| Instance::new(&mut Store::new(engine.wasmtime(), ()), &module, &[]).is_ok())
    }

    #[test]
    fn a_guest_may_have_more_memory_than_the_limit_of_all() {
        let limits = GuestLimits { max_instances: 4, ..GuestLimits::default() };
        let mut guest = GuestSettings::new("atlas", GuestKind::Job, "atlas.wasm");
        guest.max_memory_mb = Some(65);
        let engine = LoopEngine::for_guests([&guest], &limits, None, ManualClock::shared()).unwrap();
        assert!(runs_on(&engine));
        assert!(!runs_on(&LoopEngine::new(&limits, None, ManualClock::shared()).unwrap()));
    }

    #[test]
    fn a_guest_with_less_memory_leaves_the_others_what_they_had() {
        let limits = GuestLimits { max_instances: 4, max_memory_mb: 65, ..GuestLimits::default() };
        let mut guest = GuestSettings::new("small", GuestKind::Job, "small.wasm");
        guest.max_memory_mb = Some(1);
        assert!(runs_on(&LoopEngine::for_guests([&guest], &limits, None, ManualClock::shared()).unwrap()));
    }
}
