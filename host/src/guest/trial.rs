//! New code of a guest is tried out before it takes over: an instance of it is started on an empty world and given the
//! state that the old one has saved. This happens off the loop, so that code which hangs costs nobody anything; what
//! the trial does is thrown away. The server calls it between the old one's `save` and the taking over.

use std::sync::Arc;

use wasmtime::Store;

use super::contract::sim::types::Occasion;
use super::counters::GuestCounters;
use super::engine::LoopEngine;
use super::failure::CallError;
use super::instance::{Instance, StageSlot};
use super::kinds::{Code, ResidentCode};
use super::log_lines::LogLines;
use super::resident::SavedState;
use super::settings::GuestKind;
use super::stage::Stage;
use super::state::{Identity, InstanceState};

/// Why new code did not take over. The old one runs on.
#[derive(Debug, thiserror::Error)]
pub enum SwapError {
    #[error("the new code failed its trial in {call}: {error}")]
    Trial { call: &'static str, error: CallError },
    #[error("the new code failed in {call} as it took over: {error}")]
    TakeOver { call: &'static str, error: CallError },
    #[error("the disk takes no changes now; try again when it does")]
    Disk,
}

/// What new code is to carry on.
#[derive(Clone, Debug)]
pub struct Inheritance {
    /// The number of the instance that will take over.
    pub number: u64,
    pub occasion: Occasion,
    /// What the old instance has saved, unless there is nothing to carry.
    pub state: Option<SavedState>,
    /// What this code itself saved when it ran last, where it comes back: empty where that was nothing.
    pub former: Option<SavedState>,
}

/// Code that has passed its trial, with an instance that has yet to be called.
pub struct Prepared<C: ResidentCode> {
    pub(super) code: C,
    pub(super) instance: Instance<C::Bindings>,
    /// The state to begin with in place of the old instance's, which the code does not understand.
    pub(super) former: Option<SavedState>,
}

impl<C: ResidentCode> Prepared<C> {
    /// Whether it will begin with what it saved itself, long ago.
    pub fn has_former_state(&self) -> bool {
        self.former.is_some()
    }
}

/// Tries out the code of a game or a thinker, on stages with nothing in their worlds.
pub fn try_out<C: ResidentCode>(
    engine: &LoopEngine,
    identity: &Arc<Identity>,
    code: C,
    config: &str,
    inheritance: &Inheritance,
    empty_stage: impl Fn() -> Stage,
) -> Result<Prepared<C>, SwapError> {
    let engine = engine.elsewhere();
    let former = rehearse(&engine, identity, &code, config, inheritance, empty_stage)?;
    // Made when the trial's instance has given its memory back: what is in use already is quicker to write to.
    let instance = instance(&engine, identity, &code, inheritance.number)?;
    Ok(Prepared { code, instance, former })
}

/// Has an instance begin with the state of the old one, or else with what this code saved itself: which is answered where
/// that was needed.
fn rehearse<C: ResidentCode>(
    engine: &LoopEngine,
    identity: &Arc<Identity>,
    code: &C,
    config: &str,
    inheritance: &Inheritance,
    empty_stage: impl Fn() -> Stage,
) -> Result<Option<SavedState>, SwapError> {
    let begin = || {
        let mut trial = Trial::start(engine, identity, code, inheritance.number, empty_stage())?;
        let begun = trial.call("init", |bindings, store| C::init(bindings, store, config, inheritance.occasion))?;
        Ok((trial, begun))
    };
    let (mut trial, begun) = begin()?;
    let Some(state) = inheritance.state.as_ref().filter(|_| matches!(begun, Outcome::Passed)) else { return Ok(None) };
    let Err(error) = trial.call("restore", |bindings, store| C::restore(bindings, store, state)) else {
        return Ok(None);
    };
    let Some(own) = &inheritance.former else { return Err(error) };
    let (mut trial, _) = begin()?;
    if !own.is_empty() {
        trial.call("restore", |bindings, store| C::restore(bindings, store, own))?;
    }
    Ok(Some(Arc::clone(own)))
}

/// Looks whether an instance can be made of a step task's code.
pub fn try_to_instantiate<C: Code>(engine: &LoopEngine, identity: &Arc<Identity>, code: &C) -> Result<(), SwapError> {
    instance(&engine.elsewhere(), &apart(identity), code, 0).map(drop)
}

fn instance<C: Code>(
    engine: &LoopEngine,
    identity: &Arc<Identity>,
    code: &C,
    number: u64,
) -> Result<Instance<C::Bindings>, SwapError> {
    Instance::new(engine, code, identity, number, identity.limits.init_deadline())
        .map_err(|error| SwapError::Trial { call: "its start", error })
}

/// What came of a call.
enum Outcome {
    Passed,
    /// It failed, and had looked at the world, which is an empty one here: nobody knows how it would do in the real one.
    Unknown,
}

/// An instance on a stage of its own.
struct Trial<B> {
    instance: Instance<B>,
    stage: StageSlot,
    identity: Arc<Identity>,
}

impl<B> Trial<B> {
    fn start<C: Code<Bindings = B>>(
        engine: &LoopEngine,
        identity: &Arc<Identity>,
        code: &C,
        number: u64,
        mut stage: Stage,
    ) -> Result<Self, SwapError> {
        let identity = apart(identity);
        let instance = instance(engine, &identity, code, number)?;
        stage.events.add_guest(identity.id, &identity.name);
        Ok(Self { instance, stage: Some(Box::new(stage)), identity })
    }

    fn call(
        &mut self,
        call: &'static str,
        guest: impl FnOnce(&B, &mut Store<InstanceState>) -> wasmtime::Result<Result<(), String>>,
    ) -> Result<Outcome, SwapError> {
        if let Some(stage) = &mut self.stage {
            stage.begin();
        }
        let limit = self.identity.limits.init_deadline();
        let result = self.instance.call(&mut self.stage, call, limit, guest);
        if let Some(stage) = &mut self.stage {
            // What it does to the empty world is seen by its next call, as it would be in the real one.
            let _ = stage.commit();
        }
        match result.and_then(|answer| answer.map_err(CallError::refused)) {
            Ok(()) => Ok(Outcome::Passed),
            Err(error @ CallError::Deadline { .. }) => Err(SwapError::Trial { call, error }),
            Err(_) if self.instance.has_asked_for_stage() => Ok(Outcome::Unknown),
            Err(error) => Err(SwapError::Trial { call, error }),
        }
    }
}

/// The guest under another name and with counters of its own, so that what its trial logs is told apart and what it does
/// is not counted.
fn apart(identity: &Arc<Identity>) -> Arc<Identity> {
    let name = format!("{} (trial)", identity.name);
    let kind = if identity.writes { GuestKind::Game } else { GuestKind::Thinker };
    Arc::new(Identity {
        log: Arc::new(LogLines::new(&name, identity.limits.max_log_lines_per_s, Arc::clone(&identity.clock))),
        counters: Arc::new(GuestCounters::new(&name, kind)),
        name: Arc::from(name),
        ..Identity::clone(identity)
    })
}
