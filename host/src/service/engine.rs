//! The engines of services: one for those that handle a message from its beginning to its end, with concurrency support
//! off, which makes a call several times cheaper, and one with the component model's async for those that take the next
//! message while they wait. Both keep calls on stacks of their own, so that any can be suspended. They run nothing by
//! themselves.

use std::path::Path;
use std::sync::Arc;

use wasmtime::Engine;

use crate::clock::SharedClock;
use crate::guest::engine::{config, largest_memory};
use crate::guest::epoch::{EpochTicker, Ticking};
use crate::guest::{EngineError, GuestLimits, GuestSettings};

/// Places beyond the services that may run: one that moves to other code has two for a moment.
pub(super) const SPARE_PLACES: u32 = 16;

/// The two engines and the thread that keeps their epochs going.
#[derive(Clone)]
pub struct ServiceEngine {
    plain: Engine,
    concurrent: Engine,
    ticker: Arc<EpochTicker>,
    limits: Arc<GuestLimits>,
    clock: SharedClock,
}

impl ServiceEngine {
    /// Engines for so many services of these guests at one time.
    pub fn for_guests<'a>(
        guests: impl IntoIterator<Item = &'a GuestSettings>,
        limits: &GuestLimits,
        max_running: u32,
        cache_folder: Option<&Path>,
        clock: SharedClock,
    ) -> Result<Self, EngineError> {
        let max_memory_bytes = largest_memory(guests, limits);
        let engine = |is_concurrent: bool| {
            let mut config = config(max_running.saturating_add(SPARE_PLACES), max_memory_bytes, 0, cache_folder)?;
            config.concurrency_support(is_concurrent).wasm_component_model_async(is_concurrent);
            Engine::new(&config).map_err(|error| EngineError::memory(max_running, "service.max_running", &error))
        };
        let (plain, concurrent) = (engine(false)?, engine(true)?);
        let ticker = EpochTicker::start(vec![plain.clone(), concurrent.clone()]).map_err(EngineError::Ticker)?;
        Ok(Self { plain, concurrent, ticker: Arc::new(ticker), limits: Arc::new(limits.clone()), clock })
    }

    /// The engine for services that wait without taking the next message.
    pub fn plain(&self) -> &Engine {
        &self.plain
    }

    /// The engine for services whose exports are async.
    pub fn concurrent(&self) -> &Engine {
        &self.concurrent
    }

    /// The limits that all guests have.
    pub fn limits(&self) -> &Arc<GuestLimits> {
        &self.limits
    }

    /// The host's clock.
    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// To be held while a service computes, so that it can be pre-empted.
    pub(super) fn tick(&self) -> Ticking<'_> {
        self.ticker.tick()
    }
}
