//! Counts the primes below a number, a few at a step.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

/// So many numbers are looked at in a step: about a millisecond.
const NUMBERS_PER_STEP: u32 = 10_000;

#[derive(Serialize, Deserialize)]
struct Primes {
    next: u32,
    limit: u32,
    count: u32,
}

impl StepTask for Primes {
    fn start(arguments: Vec<u8>) -> Result<Self, Refusal> {
        Ok(Self { next: 2, limit: std::str::from_utf8(&arguments)?.parse()?, count: 0 })
    }

    fn step(&mut self, _timeslice: Duration) -> StepResult {
        let until = self.limit.min(self.next + NUMBERS_PER_STEP);
        self.count += (self.next..until).filter(|number| is_prime(*number)).count() as u32;
        self.next = until;
        if until < self.limit { StepResult::InProgress } else { StepResult::Finished(self.count.to_string().into_bytes()) }
    }
}

fn is_prime(number: u32) -> bool {
    (2..).take_while(|divisor| divisor * divisor <= number).all(|divisor| number % divisor != 0)
}

wheelhouse_guest::step_task!(Primes);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_2262_primes_below_20000_and_they_take_two_steps() {
        let mut primes = Primes::start(b"20000".to_vec()).unwrap();
        assert!(matches!(primes.step(Duration::ZERO), StepResult::InProgress));
        assert!(matches!(primes.step(Duration::ZERO), StepResult::Finished(count) if count == b"2262"));
    }
}
