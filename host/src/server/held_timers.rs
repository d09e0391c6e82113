//! Timers of guests that fired while nothing could be run, in the order in which they did. One that fires again meanwhile
//! is run once for all its times.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

/// The timers that wait, by the ids that guests know.
#[derive(Debug, Default)]
pub struct HeldTimers {
    order: VecDeque<u64>,
    /// How many runs each stands for beyond its last.
    missed: FxHashMap<u64, u64>,
}

impl HeldTimers {
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// A timer has fired, for `missed` runs beyond this one.
    pub fn push(&mut self, id: u64, missed: u64) {
        let order = &mut self.order;
        self.missed.entry(id).and_modify(|runs| *runs += missed + 1).or_insert_with(|| {
            order.push_back(id);
            missed
        });
    }

    /// The timer that has waited longest, and how many runs it stands for beyond its last.
    pub fn pop(&mut self) -> Option<(u64, u64)> {
        let id = self.order.pop_front()?;
        Some((id, self.missed.remove(&id).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_come_in_the_order_of_their_firing_and_once_for_all_times() {
        let mut held = HeldTimers::default();
        [(7, 0), (3, 2), (7, 1), (7, 0)].iter().for_each(|(id, missed)| held.push(*id, *missed));
        assert_eq!([held.pop(), held.pop(), held.pop()], [Some((7, 3)), Some((3, 2)), None]);
        assert!(held.is_empty());
    }
}
