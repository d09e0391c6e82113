//! Random numbers, seeded so that a run can be repeated. They are not for secrets. Every guest may draw them.
//!
//! Each of the functions is a call to the host. [`Random`] draws inside the guest and costs next to nothing; seed it
//! with [`number`].

pub use crate::bindings::random::{below, bytes, number};

/// A quick generator of the guest's own: xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift
/// generators, scrambled", 2016).
#[derive(Clone, Debug)]
pub struct Random {
    /// Never zero, where the generator would stay.
    state: u64,
}

impl Random {
    /// A generator whose numbers follow from `seed`.
    pub fn seeded(seed: u64) -> Self {
        // Seeds that differ in one bit must not begin alike: one round of splitmix64.
        let mixed = (seed ^ (seed >> 30)).wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        Self { state: (mixed ^ (mixed >> 31)).max(1) }
    }

    /// A number of which every bit is random.
    #[inline]
    pub fn number(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number from 0 to `bound` - 1; 0 when `bound` is 0. The bias is below one in four billion per value.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.number() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// A number from `first` to `last`, both included; `first` where `last` is less.
    #[inline]
    pub fn between(&mut self, first: i32, last: i32) -> i32 {
        let count = u32::try_from(i64::from(last) - i64::from(first) + 1).unwrap_or(0);
        first.wrapping_add_unsigned(self.below(count))
    }

    /// True once in `times` on average; never for 0.
    #[inline]
    pub fn once_in(&mut self, times: u32) -> bool {
        times > 0 && self.below(times) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_draw_equal_numbers_and_neighbouring_seeds_do_not() {
        let draw = |seed| {
            std::array::from_fn::<u64, 4, _>({
                let mut random = Random::seeded(seed);
                move |_| random.number()
            })
        };
        assert_eq!(draw(0), draw(0));
        assert_ne!(draw(0), draw(1));
        assert_ne!(draw(6), draw(7));
    }

    #[test]
    fn every_number_of_a_range_is_drawn_about_as_often() {
        let mut random = Random::seeded(1);
        let mut drawn = [0_u32; 5];
        for _ in 0..5_000 {
            drawn[(random.between(-2, 2) + 2) as usize] += 1;
        }
        assert!(drawn.iter().all(|count| (850..1_150).contains(count)), "{drawn:?}");
    }

    #[test]
    fn an_empty_range_draws_its_first_number() {
        let mut random = Random::seeded(1);
        assert_eq!(random.below(0), 0);
        assert_eq!(random.between(3, 2), 3);
        assert!(!random.once_in(0));
    }
}
