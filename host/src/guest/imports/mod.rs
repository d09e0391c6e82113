//! What guests may import, a file for each interface of the contract. All are implemented on the state of an instance;
//! what they change goes through the stage that the call was lent. They never wait and never touch a socket or a disk.

mod clock;
mod ended;
mod entities;
pub(super) mod events;
mod gate;
mod groups;
mod kv;
mod log;
mod metrics;
mod random;
mod requests;
mod services;
mod shared;
mod tasks;
mod timers;
pub(crate) mod wasi;

#[cfg(test)]
mod limits_tests;

use wasmtime::component::{HasSelf, Linker};

use super::contract::sim;
use super::settings::Grant;
use super::shared_reads;
use super::state::InstanceState;

type OfInstance = HasSelf<InstanceState>;

impl sim::types::Host for InstanceState {}
impl sim::thinking::Host for InstanceState {}
impl sim::stepping::Host for InstanceState {}

/// Where a store's data has the state of its instance.
pub(crate) type StateOf<T> = fn(&mut T) -> &mut InstanceState;

/// Links what every guest may import.
pub(crate) fn add_free<T: 'static>(linker: &mut Linker<T>, state: StateOf<T>) -> wasmtime::Result<()> {
    sim::log::add_to_linker::<_, OfInstance>(linker, state)?;
    sim::clock::add_to_linker::<_, OfInstance>(linker, state)?;
    sim::random::add_to_linker::<_, OfInstance>(linker, state)
}

/// Links the numbers of the guest's own.
pub(crate) fn add_metrics<T: 'static>(linker: &mut Linker<T>, state: StateOf<T>) -> wasmtime::Result<()> {
    sim::metrics::add_to_linker::<_, OfInstance>(linker, state)
}

/// Links the interface of one grant.
pub(super) fn add_granted(linker: &mut Linker<InstanceState>, grant: Grant) -> wasmtime::Result<()> {
    match grant {
        Grant::Timers => sim::timers::add_to_linker::<_, OfInstance>(linker, |state| state),
        Grant::Tasks => sim::tasks::add_to_linker::<_, OfInstance>(linker, |state| state),
        Grant::Events => sim::events::add_to_linker::<_, OfInstance>(linker, |state| state),
        Grant::Entities => sim::entities::add_to_linker::<_, OfInstance>(linker, |state| state),
        Grant::Kv => sim::kv::add_to_linker::<_, OfInstance>(linker, |state| state),
        Grant::Services => add_services(linker),
        // No guest of the loop can have it.
        Grant::Sockets => Ok(()),
        Grant::Gate => sim::gate::add_to_linker::<_, OfInstance>(linker, |state| state),
        Grant::Metrics => add_metrics(linker, |state| state),
    }
}

/// Links what belongs to services: who is granted one of these interfaces has the use of all.
fn add_services(linker: &mut Linker<InstanceState>) -> wasmtime::Result<()> {
    sim::services::add_to_linker::<_, OfInstance>(linker, |state| state)?;
    sim::requests::add_to_linker::<_, OfInstance>(linker, |state| state)?;
    sim::groups::add_to_linker::<_, OfInstance>(linker, |state| state)?;
    sim::shared::add_to_linker::<_, OfInstance>(linker, |state| state)?;
    shared_reads::link_read(linker)
}
