//! The kinds of loop guests as one thing: code that can be instantiated, and the calls that some have in common.

use std::ops::Deref;

use wasmtime::Store;
use wasmtime::component::{Func, InstancePre};

use super::contract::sim::types::Occasion;
use super::contract::{game, job, step_task, thinker};
use super::state::InstanceState;

type Pre = InstancePre<InstanceState>;

/// The compiled code of a guest, with its imports linked and its exports found.
pub trait Code: Sized + Send {
    /// An instance's exports.
    type Bindings: Send;

    /// Finds the exports. An error names one that is missing or of another type.
    fn new(pre: Pre) -> wasmtime::Result<Self>;

    /// Makes an instance.
    fn instantiate(&self, store: &mut Store<InstanceState>) -> wasmtime::Result<Self::Bindings>;
}

/// The code of a guest that lives as long as the host: its instances are started with `init`, and hand their state on.
pub trait ResidentCode: Code {
    /// `init`.
    fn init(
        bindings: &Self::Bindings,
        store: &mut Store<InstanceState>,
        config: &str,
        occasion: Occasion,
    ) -> wasmtime::Result<Result<(), String>>;

    /// `lifecycle.save`.
    fn save(bindings: &Self::Bindings, store: &mut Store<InstanceState>) -> wasmtime::Result<Vec<u8>>;

    /// `lifecycle.restore`.
    fn restore(
        bindings: &Self::Bindings,
        store: &mut Store<InstanceState>,
        state: &[u8],
    ) -> wasmtime::Result<Result<(), String>>;
}

/// A thinker's exports: as generated, and `think` as the function itself, which takes its lists in bulk.
pub struct ThinkerExports {
    generated: thinker::Thinker,
    pub(super) think: Func,
}

impl Deref for ThinkerExports {
    type Target = thinker::Thinker;

    fn deref(&self) -> &thinker::Thinker {
        &self.generated
    }
}

fn thinker_exports(
    pre: &thinker::ThinkerPre<InstanceState>,
    store: &mut Store<InstanceState>,
) -> wasmtime::Result<ThinkerExports> {
    let instance = pre.instance_pre().instantiate(&mut *store)?;
    let generated = thinker::Thinker::new(&mut *store, &instance)?;
    let think = instance.get_func(store, "think").ok_or_else(|| wasmtime::format_err!("it exports no `think`"))?;
    Ok(ThinkerExports { generated, think })
}

macro_rules! code {
    ($pre:ty, $bindings:ty, $instantiate:expr) => {
        impl Code for $pre {
            type Bindings = $bindings;

            fn new(pre: Pre) -> wasmtime::Result<Self> {
                <$pre>::new(pre)
            }

            fn instantiate(&self, store: &mut Store<InstanceState>) -> wasmtime::Result<Self::Bindings> {
                $instantiate(self, store)
            }
        }
    };
}

macro_rules! resident {
    ($pre:ty) => {
        impl ResidentCode for $pre {
            fn init(
                bindings: &Self::Bindings,
                store: &mut Store<InstanceState>,
                config: &str,
                occasion: Occasion,
            ) -> wasmtime::Result<Result<(), String>> {
                bindings.call_init(store, config, occasion)
            }

            fn save(bindings: &Self::Bindings, store: &mut Store<InstanceState>) -> wasmtime::Result<Vec<u8>> {
                bindings.wheelhouse_sim_lifecycle().call_save(store)
            }

            fn restore(
                bindings: &Self::Bindings,
                store: &mut Store<InstanceState>,
                state: &[u8],
            ) -> wasmtime::Result<Result<(), String>> {
                bindings.wheelhouse_sim_lifecycle().call_restore(store, state)
            }
        }
    };
}

code!(game::GamePre<InstanceState>, game::Game, game::GamePre::instantiate);
code!(thinker::ThinkerPre<InstanceState>, ThinkerExports, thinker_exports);
code!(step_task::StepTaskPre<InstanceState>, step_task::StepTask, step_task::StepTaskPre::instantiate);
resident!(game::GamePre<InstanceState>);
resident!(thinker::ThinkerPre<InstanceState>);

/// The code of a job, whose calls are futures; it is not [`Code`], since nothing else is called on it.
pub type JobCode = job::JobPre<InstanceState>;
