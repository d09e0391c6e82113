//! Work that the guest cuts in steps: the trait that a `step-task` guest implements, and the macro that makes it one.

use std::marker::PhantomData;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::step_task as exports;
use crate::instance::{self, Hosted};
use crate::{Refusal, StepResult};

/// Long work in steps, which the host runs in what each frame leaves over. Every task has an instance of its own.
///
/// The host learns how long a step takes, and gives one only where it fits: steps of equal length, around a
/// millisecond, serve best. What has no natural steps is better a [`job`](crate::job).
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use std::time::Duration;
/// use wheelhouse_guest::prelude::*;
///
/// /// Adds up the bytes of its arguments.
/// #[derive(Serialize, Deserialize)]
/// struct Sum {
///     bytes: Vec<u8>,
///     sum: u64,
/// }
///
/// impl StepTask for Sum {
///     fn start(arguments: Vec<u8>) -> Result<Self, Refusal> {
///         Ok(Self { bytes: arguments, sum: 0 })
///     }
///
///     fn step(&mut self, _timeslice: Duration) -> StepResult {
///         let rest = self.bytes.len().saturating_sub(10_000);
///         self.sum += self.bytes.drain(rest..).map(u64::from).sum::<u64>();
///         if self.bytes.is_empty() {
///             StepResult::Finished(self.sum.to_string().into_bytes())
///         } else {
///             StepResult::InProgress
///         }
///     }
/// }
///
/// wheelhouse_guest::step_task!(Sum);
/// # fn main() {}
/// ```
#[allow(unused_variables)]
pub trait StepTask: Serialize + DeserializeOwned + 'static {
    /// The version of this struct's saved form. Raise it when fields change, and let [`migrate`](Self::migrate) read
    /// the older forms.
    const STATE_VERSION: u32 = 1;

    /// Begins the task, with the arguments that [`tasks::start`](crate::tasks::start) was given. An error ends it.
    fn start(arguments: Vec<u8>) -> Result<Self, Refusal>;

    /// Does a little more. `timeslice` is the length of the previous frame.
    fn step(&mut self, timeslice: Duration) -> StepResult;

    /// The saved form of another version as this one.
    fn migrate(version: u32, state: &[u8]) -> Result<Self, Refusal> {
        refuse!("the saved state has version {version}, this task has version {}", Self::STATE_VERSION)
    }
}

/// Makes a type that implements [`StepTask`] the guest that this crate compiles to.
#[macro_export]
macro_rules! step_task {
    ($task:ty) => {
        const _: () = {
            $crate::__hosted!($task, $task);
            #[allow(dead_code)]
            type Exported = $crate::step_task::Exported<$task>;
            #[cfg(target_arch = "wasm32")]
            $crate::bindings::step_task::export_step_task! { Exported with_types_in $crate::bindings::step_task }
        };
    };
}

/// What the world `step-task` exports, over the type `T`.
#[doc(hidden)]
pub struct Exported<T>(PhantomData<T>);

impl<T: StepTask + Hosted<Instance = T>> exports::Guest for Exported<T> {
    fn start(arguments: Vec<u8>) -> Result<(), String> {
        instance::start::<T>(|| T::start(arguments))
    }

    fn step(timeslice_ns: u64) -> StepResult {
        instance::with_instance::<T, _>(|task| Ok(task.step(Duration::from_nanos(timeslice_ns))))
            .unwrap_or_else(StepResult::Failed)
    }
}

impl<T: StepTask + Hosted<Instance = T>> exports::exports::wheelhouse::sim::lifecycle::Guest for Exported<T> {
    fn save() -> Vec<u8> {
        instance::save::<T>(|task| instance::encode(T::STATE_VERSION, task))
    }

    /// A task's arguments went into its state, so that a restored one needs no start.
    fn restore(state: Vec<u8>) -> Result<(), String> {
        instance::start::<T>(|| instance::read_state(&state, T::STATE_VERSION, T::migrate))
    }
}
