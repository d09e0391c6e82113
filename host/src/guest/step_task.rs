//! A running step task: an instance of its own, started with its arguments and stepped until it is done. Who gives it
//! steps, and when, is the dispatcher's business.

use std::sync::Arc;

use super::contract::sim::stepping::StepResult;
use super::contract::step_task::StepTaskPre;
use super::engine::LoopEngine;
use super::failure::CallError;
use super::instance::{Instance, StageSlot};
use super::kinds::Code;
use super::resident::log_failure;
use super::state::{Identity, InstanceState};

/// A step task in progress.
pub struct StepTaskRun {
    identity: Arc<Identity>,
    instance: Instance<<StepTaskPre<InstanceState> as Code>::Bindings>,
}

impl StepTaskRun {
    /// Makes the instance and calls `start`. The `number` seeds its random numbers. A failure has been logged and
    /// counted when this returns.
    pub fn start(
        engine: &LoopEngine,
        code: &StepTaskPre<InstanceState>,
        identity: &Arc<Identity>,
        number: u64,
        slot: &mut StageSlot,
        arguments: &[u8],
    ) -> Result<Self, CallError> {
        let limit = identity.limits.deadline();
        let started =
            Instance::new(engine, code, identity, number, identity.limits.init_deadline()).and_then(|mut instance| {
                let answer = instance
                    .call(slot, "start", limit, |bindings, store| bindings.call_start(store, arguments))?
                    .map_err(CallError::Refused);
                answer.map(|()| Self { identity: Arc::clone(identity), instance })
            });
        started.inspect_err(|error| note(identity, "start", error))
    }

    /// Gives it a step. A failure has been logged and counted when this returns.
    pub fn step(&mut self, slot: &mut StageSlot, timeslice_ns: u64) -> Result<StepResult, CallError> {
        let limit = self.identity.limits.deadline();
        self.instance
            .call(slot, "step", limit, |bindings, store| bindings.call_step(store, timeslice_ns))
            .inspect_err(|error| note(&self.identity, "step", error))
    }
}

fn note(identity: &Identity, what: &'static str, error: &CallError) {
    if !error.keeps_instance() {
        log_failure(identity, what, error);
    }
}
