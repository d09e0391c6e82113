//! The interface `random`: numbers from the instance's own seeded generator.

use rand::{Rng, RngExt};

use crate::guest::contract::sim::random;
use crate::guest::state::InstanceState;

impl random::Host for InstanceState {
    fn number(&mut self) -> wasmtime::Result<u64> {
        Ok(self.random.next_u64())
    }

    fn below(&mut self, bound: u64) -> wasmtime::Result<u64> {
        Ok(if bound == 0 { 0 } else { self.random.random_range(0..bound) })
    }

    fn bytes(&mut self, length: u32) -> wasmtime::Result<Vec<u8>> {
        let limit = self.identity.limits.max_payload_bytes();
        if length as usize > limit {
            wasmtime::bail!("{length} random bytes are more than guest.max_payload_kb allows ({limit} bytes)");
        }
        let mut bytes = vec![0; length as usize];
        self.random.fill_bytes(&mut bytes);
        Ok(bytes)
    }
}
