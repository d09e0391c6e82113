//! The interface `clock`: the host's clocks.

use crate::guest::contract::sim::clock;
use crate::guest::state::InstanceState;

impl clock::Host for InstanceState {
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(self.identity.clock.now().as_nanos() as u64)
    }

    fn wall_ms(&mut self) -> wasmtime::Result<u64> {
        Ok(self.identity.clock.wall_ms())
    }
}
