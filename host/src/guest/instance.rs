//! One running copy of a guest, and how it is called: with the stage lent to it, with a deadline, and measured. It does
//! not decide what becomes of a guest that fails.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use wasmtime::{Store, Trap, UpdateDeadline};

use super::engine::LoopEngine;
use super::epoch::epochs_in;
use super::failure::CallError;
use super::kinds::Code;
use super::stage::Stage;
use super::state::{Identity, InstanceState};

/// Where the server keeps the stage; empty only while a call has it.
pub type StageSlot = Option<Box<Stage>>;

/// A call may take so many times its deadline by the clock, where its thread did not get the time to work. Whoever waits
/// for the loop has waited long enough then.
pub(super) const MOST_WAITING: u32 = 2;

/// What a guest may spend in one import's arguments beyond one payload, before the call ends: lists of several
/// payloads, and a little too much, which is answered with an error instead.
pub(crate) const HOSTCALL_PAYLOADS: usize = 4;

/// A store with an instance in it.
pub struct Instance<B> {
    engine: LoopEngine,
    store: Store<InstanceState>,
    bindings: B,
}

/// A store for a new instance of a guest.
pub(super) fn new_store(engine: &LoopEngine, identity: &Arc<Identity>, number: u64) -> Store<InstanceState> {
    let mut store = Store::new(engine.wasmtime(), InstanceState::new(Arc::clone(identity), number));
    store.limiter(InstanceState::limiter);
    store.set_hostcall_fuel(identity.limits.max_payload_bytes().saturating_mul(HOSTCALL_PAYLOADS));
    store
}

impl<B> Instance<B> {
    /// Instantiates a guest. Code that runs on instantiation has `limit` to finish and sees no stage.
    pub fn new<C: Code<Bindings = B>>(
        engine: &LoopEngine,
        code: &C,
        identity: &Arc<Identity>,
        number: u64,
        limit: Duration,
    ) -> Result<Self, CallError> {
        let mut store = new_store(engine, identity, number);
        let (cpu, clock) = (Arc::clone(engine.cpu()), Arc::clone(engine.clock()));
        store.epoch_deadline_callback(move |context| {
            let InstanceState { began, limit, .. } = context.data();
            let left = limit.saturating_sub(cpu.used());
            let is_over = left.is_zero() || clock.now() - *began >= *limit * MOST_WAITING;
            // Otherwise the thread has not run for all of that time.
            if is_over { Err(Trap::Interrupt.into()) } else { Ok(UpdateDeadline::Continue(epochs_in(left))) }
        });
        set_limit(engine, &mut store, limit, engine.clock().now());
        let ticking = engine.tick();
        let bindings = code.instantiate(&mut store);
        drop(ticking);
        match bindings {
            Ok(bindings) => Ok(Self { engine: engine.clone(), store, bindings }),
            Err(error) => Err(CallError::from_wasmtime(error, limit)),
        }
    }

    /// Calls the guest: `call` is the generated method. The stage is lent to it and back in `slot` afterwards. When it
    /// fails otherwise than by a refusal the instance cannot be entered again.
    pub fn call<R>(
        &mut self,
        slot: &mut StageSlot,
        what: &'static str,
        limit: Duration,
        call: impl FnOnce(&B, &mut Store<InstanceState>) -> wasmtime::Result<R>,
    ) -> Result<R, CallError> {
        let began = self.engine.clock().now();
        set_limit(&self.engine, &mut self.store, limit, began);
        self.store.data_mut().stage = slot.take();
        let ticking = self.engine.tick();
        let result = call(&self.bindings, &mut self.store);
        let took = self.engine.clock().now() - began;
        drop(ticking);
        *slot = self.store.data_mut().stage.take();
        self.measure(what, took);
        result.map_err(|error| CallError::from_wasmtime(error, limit))
    }

    /// Whether its calls change the world, and so are transactions.
    pub(super) fn writes(&self) -> bool {
        self.store.data().identity.writes
    }

    /// Whether any of its calls has asked for the stage.
    pub(super) fn has_asked_for_stage(&self) -> bool {
        self.store.data().has_asked_for_stage
    }

    fn measure(&self, what: &'static str, took: Duration) {
        let identity = &self.store.data().identity;
        identity.counters.calls.fetch_add(1, Ordering::Relaxed);
        if took > identity.limits.soft_budget() {
            let times = identity.counters.slow.fetch_add(1, Ordering::Relaxed) + 1;
            // A guest that is always slow must not drown the log: it is told at each doubling.
            if times.is_power_of_two() {
                let (guest, took_ms) = (&*identity.name, took.as_millis() as u64);
                tracing::warn!(guest, call = what, took_ms, times, "a call was longer than guest.soft_budget_ms");
            }
        }
    }
}

fn set_limit(engine: &LoopEngine, store: &mut Store<InstanceState>, limit: Duration, now: Duration) {
    engine.cpu().refresh(now);
    let state = store.data_mut();
    (state.began, state.limit) = (now, limit);
    store.set_epoch_deadline(epochs_in(limit));
}
