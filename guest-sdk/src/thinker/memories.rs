//! What each NPC of a thinker remembers, found by the NPC's id.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{EntityId, Refusal, state};

/// The memories by id. Those that are no longer asked for are dropped now and then.
pub(super) struct Memories<M> {
    by_id: HashMap<EntityId, Remembered<M>, BuildHasherDefault<IdHasher>>,
    next_sweep: Duration,
}

struct Remembered<M> {
    memory: M,
    /// When it was last asked for, in seconds since the host started.
    last_used_s: u32,
}

impl<M: Default> Memories<M> {
    pub(super) fn new() -> Self {
        Self { by_id: HashMap::default(), next_sweep: Duration::ZERO }
    }

    /// The memory of an NPC, a new one where there is none.
    #[inline]
    pub(super) fn of(&mut self, id: EntityId, now_s: u32) -> &mut M {
        let remembered =
            self.by_id.entry(id).or_insert_with(|| Remembered { memory: M::default(), last_used_s: now_s });
        remembered.last_used_s = now_s;
        &mut remembered.memory
    }

    /// Drops what has not been asked for since `forget_after`. Looks at all of them, but only four times in that span.
    pub(super) fn sweep(&mut self, now: Duration, forget_after: Duration) {
        if now < self.next_sweep {
            return;
        }
        self.next_sweep = now + (forget_after / 4).max(Duration::from_secs(1));
        let oldest_s = whole_seconds(now.saturating_sub(forget_after));
        self.by_id.retain(|_, remembered| remembered.last_used_s >= oldest_s);
    }
}

impl<M: Default + Serialize + DeserializeOwned> Memories<M> {
    /// Appends ids and memories to `state`, those last used first, until it would be longer than `max_bytes`.
    pub(super) fn save(&self, mut state: Vec<u8>, max_bytes: usize) -> Result<Vec<u8>, postcard::Error> {
        let mut latest_first: Vec<_> = self.by_id.iter().collect();
        // Then by id, so that equal memories make equal bytes.
        latest_first.sort_unstable_by_key(|(id, remembered)| (std::cmp::Reverse(remembered.last_used_s), **id));
        for (id, remembered) in latest_first {
            let whole = state.len();
            state = postcard::to_extend(&(id, &remembered.memory), state)?;
            if state.len() > max_bytes {
                state.truncate(whole);
                break;
            }
        }
        Ok(state)
    }

    /// Takes over what was saved, as if all of them had just been asked for: the clock that saved it is not this one. Each
    /// memory is read by `take`, from the front of what is left.
    pub(super) fn restore(
        &mut self,
        mut saved: &[u8],
        now_s: u32,
        take: impl Fn(&mut &[u8]) -> Result<M, Refusal>,
    ) -> Result<(), Refusal> {
        let mut restored = HashMap::default();
        while !saved.is_empty() {
            let id: EntityId = state::take(&mut saved)?;
            restored.insert(id, Remembered { memory: take(&mut saved)?, last_used_s: now_s });
        }
        self.by_id = restored;
        Ok(())
    }
}

/// Whole seconds in 32 bits, which last for 136 years.
pub(super) fn whole_seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

/// Ids are handed out by counting: one multiplication spreads them over the table, and nobody outside chooses them.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        // The golden ratio in 64 bits (Knuth, The Art of Computer Programming 3, 6.4). The best bits are the upper
        // ones, the table uses the lower ones.
        self.0 = (self.0 ^ id).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORGET_AFTER: Duration = Duration::from_secs(40);

    #[test]
    fn an_npc_finds_what_it_remembered() {
        let mut memories = Memories::<u32>::new();
        *memories.of(7, 0) = 5;
        assert_eq!(*memories.of(7, 1), 5);
        assert_eq!(*memories.of(8, 1), 0);
    }

    #[test]
    fn an_npc_that_does_not_think_is_forgotten() {
        let mut memories = Memories::<u32>::new();
        *memories.of(7, 0) = 5;
        *memories.of(8, 0) = 6;
        for second in 0..=50 {
            memories.of(8, second);
            memories.sweep(Duration::from_secs(u64::from(second)), FORGET_AFTER);
        }
        assert_eq!(memories.by_id.len(), 1);
        assert_eq!(*memories.of(8, 51), 6);
    }

    #[test]
    fn memories_come_back() {
        let mut memories = Memories::<u32>::new();
        for id in 1..=100 {
            *memories.of(id, 3) = id as u32 * 2;
        }
        let state = memories.save(Vec::new(), 10_000).unwrap();
        let mut later = Memories::<u32>::new();
        later.restore(&state, 9, state::take).unwrap();
        assert_eq!(later.by_id.len(), 100);
        assert_eq!(*later.of(77, 9), 154);
        assert_eq!(later.save(Vec::new(), 10_000).unwrap(), state);
    }

    #[test]
    fn too_many_memories_are_saved_as_far_as_they_fit_with_the_latest_first() {
        let mut memories = Memories::<u8>::new();
        for id in 1..=100 {
            memories.of(id, id as u32);
        }
        let state = memories.save(Vec::new(), 21).unwrap();
        assert_eq!(state.len(), 20);
        let mut later = Memories::<u8>::new();
        later.restore(&state, 0, state::take).unwrap();
        let mut ids: Vec<_> = later.by_id.into_keys().collect();
        ids.sort_unstable();
        assert_eq!(ids, (91..=100).collect::<Vec<_>>());
    }

    #[test]
    fn memories_that_do_not_fit_are_refused_and_nothing_changes() {
        let mut memories = Memories::<String>::new();
        *memories.of(1, 0) = "here".into();
        assert!(memories.restore(&[1, 200], 0, state::take).is_err());
        assert_eq!(*memories.of(1, 0), "here");
    }
}
