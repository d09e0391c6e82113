//! A thinker that takes whole batches, for an author who wants to work over the lists.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Mind;
use crate::{Intent, Npc, Occasion, Refusal, Sighting, config, instance};

/// The NPCs that are to think, and what they see.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The NPCs. Each says which range of `seen` is its own.
    pub npcs: &'a [Npc],
    /// What they see, one after another.
    pub seen: &'a [Sighting],
}

impl<'a> Batch<'a> {
    /// Each NPC with what it sees, nearest first.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (&'a Npc, &'a [Sighting])> + use<'a> {
        let seen = self.seen;
        self.npcs.iter().map(move |npc| (npc, npc.sightings(seen)))
    }
}

/// A thinker that decides for a whole batch of NPCs in one call.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use std::time::Duration;
/// use wheelhouse_guest::prelude::*;
///
/// /// Moths: all go to the first player that any of them sees.
/// #[derive(Serialize, Deserialize)]
/// struct Moths;
///
/// impl BatchThinker for Moths {
///     type Config = ();
///
///     fn init(_config: (), _occasion: Occasion) -> Result<Self, Refusal> {
///         Ok(Self)
///     }
///
///     fn think(&mut self, _now: Duration, batch: Batch<'_>, intents: &mut Vec<Intent>) {
///         if let Some(light) = batch.seen.iter().find(|sighting| sighting.is_player()) {
///             intents.extend(batch.npcs.iter().map(|npc| npc.move_to(light.x, light.y)));
///         }
///     }
/// }
///
/// wheelhouse_guest::batch_thinker!(Moths);
/// # fn main() {}
/// ```
#[allow(unused_variables)]
pub trait BatchThinker: Serialize + DeserializeOwned + 'static {
    /// What the guest's own table of the configuration is read into; `()` for none.
    type Config: DeserializeOwned + 'static;

    /// The version of this struct's saved form. Raise it when fields change, and let [`migrate`](Self::migrate) read
    /// the older forms.
    const STATE_VERSION: u32 = 1;

    /// Starts the thinker.
    fn init(config: Self::Config, occasion: Occasion) -> Result<Self, Refusal>;

    /// Decides for the batch, and adds what the NPCs want to `intents`, which comes empty. An NPC without an intent
    /// stays. `now` is monotonic time since the host started.
    fn think(&mut self, now: Duration, batch: Batch<'_>, intents: &mut Vec<Intent>);

    /// The saved form of another version as this one. Refusing it makes the instance begin afresh, or, at a swap,
    /// keeps the old code.
    fn migrate(version: u32, state: &[u8]) -> Result<Self, Refusal> {
        refuse!("the saved state has version {version}, this thinker has version {}", Self::STATE_VERSION)
    }

    /// Called after a saved state took the place of what `init` made. `self` is what was saved, `fresh` what `init`
    /// made: take from it what must not come from the past, such as the configuration.
    fn restored(&mut self, fresh: Self) {}
}

/// A [`BatchThinker`] as the exports see it.
#[doc(hidden)]
pub struct Whole<B>(B);

impl<B: BatchThinker> Mind for Whole<B> {
    fn init(config: &str, occasion: Occasion) -> Result<Self, Refusal> {
        B::init(config::parse(config)?, occasion).map(Self)
    }

    fn think(&mut self, now: Duration, batch: Batch<'_>, intents: &mut Vec<Intent>) {
        self.0.think(now, batch, intents);
    }

    fn save(&self) -> Result<Vec<u8>, postcard::Error> {
        instance::encode(B::STATE_VERSION, &self.0)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), Refusal> {
        let saved = instance::read_state(state, B::STATE_VERSION, B::migrate)?;
        let fresh = std::mem::replace(&mut self.0, saved);
        self.0.restored(fresh);
        Ok(())
    }
}
