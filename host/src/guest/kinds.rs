//! The kinds of loop guests as one thing: code that can be instantiated, and the calls they have in common.

use wasmtime::Store;
use wasmtime::component::InstancePre;

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

    /// `lifecycle.save`.
    fn save(bindings: &Self::Bindings, store: &mut Store<InstanceState>) -> wasmtime::Result<Vec<u8>>;

    /// `lifecycle.restore`.
    fn restore(
        bindings: &Self::Bindings,
        store: &mut Store<InstanceState>,
        state: &[u8],
    ) -> wasmtime::Result<Result<(), String>>;
}

/// The code of a guest that lives as long as the host, and whose instances are started with `init`.
pub trait ResidentCode: Code {
    /// `init`.
    fn init(
        bindings: &Self::Bindings,
        store: &mut Store<InstanceState>,
        config: &str,
        occasion: Occasion,
    ) -> wasmtime::Result<Result<(), String>>;
}

macro_rules! code {
    ($pre:ty, $bindings:ty) => {
        impl Code for $pre {
            type Bindings = $bindings;

            fn new(pre: Pre) -> wasmtime::Result<Self> {
                <$pre>::new(pre)
            }

            fn instantiate(&self, store: &mut Store<InstanceState>) -> wasmtime::Result<Self::Bindings> {
                <$pre>::instantiate(self, store)
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
        }
    };
}

code!(game::GamePre<InstanceState>, game::Game);
code!(thinker::ThinkerPre<InstanceState>, thinker::Thinker);
code!(step_task::StepTaskPre<InstanceState>, step_task::StepTask);
resident!(game::GamePre<InstanceState>);
resident!(thinker::ThinkerPre<InstanceState>);

/// The code of a job, whose calls are futures; it is not [`Code`], since nothing else is called on it.
pub type JobCode = job::JobPre<InstanceState>;
