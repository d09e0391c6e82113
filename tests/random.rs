//! Random numbers of the tests, the same in every run that begins with the same seed.

use std::time::Duration;

/// A generator: xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", 2016).
#[derive(Clone, Debug)]
pub struct Random {
    /// Never zero, where the generator would stay.
    state: u64,
}

impl Random {
    /// A generator whose numbers follow from `seed`.
    pub fn seeded(seed: u64) -> Self {
        // Seeds that lie side by side must not begin with numbers that do: spread by the golden ratio in 64 bits.
        let mut random = Self { state: seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1 };
        random.number();
        random
    }

    /// A number of which every bit is random.
    pub fn number(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number from 0 to `bound` - 1; `bound` must be positive.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// A time below `bound_ms` milliseconds, to the microsecond.
    pub fn time_below_ms(&mut self, bound_ms: u64) -> Duration {
        Duration::from_micros(self.below(bound_ms * 1000))
    }
}
