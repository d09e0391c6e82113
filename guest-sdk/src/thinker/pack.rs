//! All NPCs of a [`Thinker`]: loops over a batch and keeps each one's memory.

use std::time::Duration;

use super::memories::{Memories, whole_seconds};
use super::{Batch, Context, Mind, Thinker};
use crate::{Action, Intent, Occasion, Refusal, instance, state};

/// A [`Thinker`] as the exports see it.
#[doc(hidden)]
pub struct Pack<T: Thinker> {
    context: Context<T::Config>,
    memories: Memories<T>,
}

impl<T: Thinker> Mind for Pack<T> {
    fn init(config: &str, occasion: Occasion) -> Result<Self, Refusal> {
        Ok(Self { context: Context::init(config, occasion)?, memories: Memories::new() })
    }

    fn think(&mut self, now: Duration, batch: Batch<'_>, intents: &mut Vec<Intent>) {
        self.context.now = now;
        let now_s = whole_seconds(now);
        intents.reserve(batch.npcs.len());
        for (npc, seen) in batch.iter() {
            let intent = if size_of::<T>() == 0 {
                T::default().think(npc, seen, &mut self.context)
            } else {
                self.memories.of(npc.id, now_s).think(npc, seen, &mut self.context)
            };
            // An NPC without an intent stays, and the shorter list is the cheaper one.
            if intent.action != Action::Stay {
                intents.push(intent);
            }
        }
        self.memories.sweep(now, T::FORGET_AFTER);
    }

    fn save(&self) -> Result<Vec<u8>, postcard::Error> {
        let version = postcard::to_extend(&T::STATE_VERSION, instance::room_for_state())?;
        self.memories.save(version, T::MAX_SAVED_BYTES)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), Refusal> {
        let (version, memories) = instance::split_version(state)?;
        let now_s = whole_seconds(self.context.now);
        if version == T::STATE_VERSION {
            return self.memories.restore(memories, now_s, state::take);
        }
        if version > T::STATE_VERSION {
            return Err(instance::newer(version, T::STATE_VERSION));
        }
        self.memories.restore(memories, now_s, |saved| T::migrate(version, saved)).or_else(|refusal| {
            crate::info!("{refusal}");
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::random::Random;
    use crate::{Npc, Sighting};

    /// Moves at every second thought, as far as the number of thoughts.
    #[derive(Default, Serialize, Deserialize)]
    struct Counter(i32);

    impl Thinker for Counter {
        type Config = ();

        fn think(&mut self, npc: &Npc, _seen: &[Sighting], _context: &mut Context<()>) -> Intent {
            self.0 += 1;
            if self.0 % 2 == 0 { npc.move_to(self.0, 0) } else { npc.stay() }
        }
    }

    fn pack() -> Pack<Counter> {
        let context = Context { config: (), now: Duration::ZERO, random: Random::seeded(1), occasion: Occasion::First };
        Pack { context, memories: Memories::new() }
    }

    fn npc(id: u64) -> Npc {
        Npc { id, kind: 1, map: 0, x: 0, y: 0, seen_first: 0, seen_count: 0 }
    }

    fn think(pack: &mut Pack<Counter>, ids: &[u64]) -> Vec<(u64, i32)> {
        let npcs: Vec<_> = ids.iter().copied().map(npc).collect();
        let mut intents = Vec::new();
        pack.think(Duration::from_secs(1), Batch { npcs: &npcs, seen: &[] }, &mut intents);
        intents.iter().map(|intent| (intent.npc, intent.x)).collect()
    }

    #[test]
    fn each_npc_has_a_memory_of_its_own_and_who_stays_sends_nothing() {
        let mut pack = pack();
        assert_eq!(think(&mut pack, &[1, 2]), []);
        assert_eq!(think(&mut pack, &[2]), [(2, 2)]);
        assert_eq!(think(&mut pack, &[1, 2, 3]), [(1, 2)]);
    }

    #[test]
    fn memories_survive_a_save_and_a_restore() {
        let mut before = pack();
        think(&mut before, &[1, 2, 2, 2]);
        let mut after = pack();
        after.restore(&before.save().unwrap()).unwrap();
        assert_eq!(think(&mut after, &[1, 2]), [(1, 2), (2, 4)]);
    }
}
