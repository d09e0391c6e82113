//! Whether messages come in the order in which each source sent them, and one at a time.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wheelhouse_guest::{Handle, Refusal, refuse};

/// Counts messages, and what is wrong with them. Handlers share it by reference, as an async service has to.
#[derive(Default, Serialize, Deserialize)]
pub struct Judge {
    /// The next number that each source should send.
    expected: RefCell<BTreeMap<Handle, u64>>,
    /// Set while a handler runs: never seen set by another that begins, or goes on after a wait.
    is_entered: Cell<bool>,
    counted: Cell<u64>,
    out_of_order: Cell<u64>,
    overlaps: Cell<u64>,
}

/// A message of numbers: `SEQUENCE` and, if there is one, `MS` to wait, as little-endian bytes of 64 and 32 bits.
pub struct Counted {
    /// Each source counts from 0.
    pub sequence: u64,
    /// How long the handler waits; only the async counter does.
    pub wait_ms: Option<u32>,
}

impl Counted {
    /// Reads a message; none where it is no such message.
    pub fn read(payload: &[u8]) -> Option<Self> {
        let (sequence, wait) = payload.split_first_chunk()?;
        let wait_ms = match wait {
            [] => None,
            wait => Some(u32::from_le_bytes(wait.try_into().ok()?)),
        };
        Some(Self { sequence: u64::from_le_bytes(*sequence), wait_ms })
    }
}

impl Judge {
    /// A handler begins, or goes on after a wait.
    pub fn enter(&self) {
        if self.is_entered.replace(true) {
            self.overlaps.set(self.overlaps.get() + 1);
        }
    }

    /// A handler ends, or begins to wait.
    pub fn leave(&self) {
        self.is_entered.set(false);
    }

    /// Takes the next number of a source in.
    pub fn count(&self, source: Handle, sequence: u64) {
        let mut expected = self.expected.borrow_mut();
        let next = expected.entry(source).or_default();
        if sequence != *next {
            self.out_of_order.set(self.out_of_order.get() + 1);
        }
        *next = sequence + 1;
        self.counted.set(self.counted.get() + 1);
    }

    /// Answers an order: `report` with `counted N out-of-order N overlaps N`, `ping` with `pong`, and `reset` after it
    /// has forgotten everything.
    pub fn answer(&self, order: &str) -> Result<Vec<u8>, Refusal> {
        match order {
            "ping" => Ok(b"pong".to_vec()),
            "report" => {
                let (counted, out_of_order, overlaps) =
                    (self.counted.get(), self.out_of_order.get(), self.overlaps.get());
                Ok(format!("counted {counted} out-of-order {out_of_order} overlaps {overlaps}").into_bytes())
            }
            "reset" => {
                self.expected.borrow_mut().clear();
                for count in [&self.counted, &self.out_of_order, &self.overlaps] {
                    count.set(0);
                }
                Ok(b"ok".to_vec())
            }
            other => refuse!("a counter cannot {other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(judge: &Judge) -> String {
        String::from_utf8(judge.answer("report").unwrap()).unwrap()
    }

    #[test]
    fn each_source_has_an_order_of_its_own() {
        let judge = Judge::default();
        for (source, sequence) in [(1, 0), (2, 0), (1, 1), (2, 2), (2, 1)] {
            judge.count(source, sequence);
        }
        assert_eq!(report(&judge), "counted 5 out-of-order 2 overlaps 0");
    }

    #[test]
    fn an_entry_before_the_other_has_left_is_an_overlap() {
        let judge = Judge::default();
        judge.enter();
        judge.leave();
        judge.enter();
        judge.enter();
        assert_eq!(report(&judge), "counted 0 out-of-order 0 overlaps 1");
    }

    #[test]
    fn a_message_is_a_number_and_perhaps_a_wait() {
        assert_eq!(Counted::read(&7_u64.to_le_bytes()).map(|read| (read.sequence, read.wait_ms)), Some((7, None)));
        let wait = [7_u64.to_le_bytes().as_slice(), &3_u32.to_le_bytes()].concat();
        assert_eq!(Counted::read(&wait).map(|read| (read.sequence, read.wait_ms)), Some((7, Some(3))));
        assert!(Counted::read(b"report").is_none());
    }
}
