//! The interface `metrics`: the guest's own numbers in the host's status.

use crate::guest::contract::sim::metrics;
use crate::guest::state::InstanceState;

impl metrics::Host for InstanceState {
    fn count(&mut self, name: String, by: u64) -> wasmtime::Result<()> {
        self.identity.counters.change_custom(name, |value| *value += by as f64);
        Ok(())
    }

    fn gauge(&mut self, name: String, to: f64) -> wasmtime::Result<()> {
        self.identity.counters.change_custom(name, |value| *value = to);
        Ok(())
    }
}
