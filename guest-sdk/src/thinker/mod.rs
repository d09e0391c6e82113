//! Thinking: the trait that a `thinker` guest implements for one NPC at a time, and the macro that makes it one.
//!
//! [`Thinker`] is the usual way. [`BatchThinker`] takes whole batches as the host sends them.

mod batch;
mod bulk;
mod memories;
mod pack;

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

#[doc(hidden)]
pub use batch::Whole;
pub use batch::{Batch, BatchThinker};
#[doc(hidden)]
pub use bulk::{Exported, exports};
#[doc(hidden)]
pub use pack::Pack;

use crate::random::Random;
use crate::{Action, EntityId, Intent, Npc, Occasion, Refusal, Sighting};

/// One NPC's mind, written for one NPC at a time: `Self` is what that NPC remembers.
///
/// The host asks for many NPCs in one call; the guest's side of that call loops over them, finds each one's memory, and
/// sends back what they want. Memories are carried over swaps and restarts as far as they fit in
/// [`MAX_SAVED_BYTES`](Self::MAX_SAVED_BYTES), and are forgotten when an NPC has not thought for
/// [`FORGET_AFTER`](Self::FORGET_AFTER). They are a cache: an NPC must be able to begin again with the default.
///
/// Thinking is a pure look: it may read [`entities`](crate::entities) and [`kv`](crate::kv), but each such call costs
/// more than the whole thought should. What the NPC sees is in `seen` already.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use wheelhouse_guest::prelude::*;
///
/// #[derive(Deserialize)]
/// struct Settings {
///     afraid_of: u32,
/// }
///
/// /// A hare: runs when it sees what it is afraid of, and then rests for a while.
/// #[derive(Default, Serialize, Deserialize)]
/// struct Hare {
///     rest: u8,
/// }
///
/// impl Thinker for Hare {
///     type Config = Settings;
///
///     fn think(&mut self, npc: &Npc, seen: &[Sighting], context: &mut Context<Settings>) -> Intent {
///         if let Some(enemy) = seen.iter().find(|sighting| sighting.kind == context.config.afraid_of) {
///             self.rest = 5;
///             return npc.move_to(npc.x + 2 * (npc.x - enemy.x).signum(), npc.y + 2 * (npc.y - enemy.y).signum());
///         }
///         if self.rest > 0 {
///             self.rest -= 1;
///             return npc.stay();
///         }
///         npc.move_to(npc.x + context.random.between(-1, 1), npc.y + context.random.between(-1, 1))
///     }
/// }
///
/// wheelhouse_guest::thinker!(Hare);
/// # fn main() {}
/// ```
pub trait Thinker: Default + Serialize + DeserializeOwned + 'static {
    /// What the guest's own table of the configuration is read into; `()` for none.
    type Config: DeserializeOwned + 'static;

    /// The version of a memory's saved form. Raise it when fields change, and let [`migrate`](Self::migrate) read the older
    /// forms, or memories of those are forgotten.
    const STATE_VERSION: u32 = 1;

    /// How many bytes of memories are saved at most; those that thought last go first. Must stay below the host's
    /// `guest.max_payload_kb` (1024).
    const MAX_SAVED_BYTES: usize = 1_000_000;

    /// How long an NPC is remembered that does not think, because no player is near or because it is dead.
    const FORGET_AFTER: Duration = Duration::from_secs(600);

    /// Decides for one NPC. `seen` is what it sees, nearest first. Called twice a second for every NPC near a player,
    /// so that nothing here should allocate.
    fn think(&mut self, npc: &Npc, seen: &[Sighting], context: &mut Context<Self::Config>) -> Intent;

    /// One memory of another version as this one, taken from the front of `saved` with
    /// [`state::take`](crate::state::take), which leaves the next one there. Refusing it forgets all memories of that
    /// version.
    #[allow(unused_variables)]
    fn migrate(version: u32, saved: &mut &[u8]) -> Result<Self, Refusal> {
        refuse!("memories of version {version} are forgotten, this thinker has {}", Self::STATE_VERSION)
    }
}

/// What all NPCs of a thinker share.
#[derive(Debug)]
pub struct Context<C> {
    /// The guest's configuration.
    pub config: C,
    /// Monotonic time since the host started.
    pub now: Duration,
    /// Random numbers, quick to draw and seeded by the host.
    pub random: Random,
    /// Why this instance was started.
    pub occasion: Occasion,
}

impl<C> Context<C> {
    fn init(config: &str, occasion: Occasion) -> Result<Self, Refusal>
    where
        C: DeserializeOwned + 'static,
    {
        let config = crate::config::parse(config)?;
        Ok(Self { config, now: Duration::ZERO, random: Random::seeded(crate::random::number()), occasion })
    }
}

impl Npc {
    /// What this NPC sees, out of what the whole batch sees.
    #[inline]
    pub fn sightings<'a>(&self, seen: &'a [Sighting]) -> &'a [Sighting] {
        let first = self.seen_first as usize;
        seen.get(first..first + self.seen_count as usize).unwrap_or_default()
    }

    /// To stay where it is.
    #[inline]
    pub fn stay(&self) -> Intent {
        self.intent(Action::Stay)
    }

    /// To go to the tile (`x`, `y`), as far as one think takes it.
    #[inline]
    pub fn move_to(&self, x: i32, y: i32) -> Intent {
        Intent { x, y, ..self.intent(Action::Move) }
    }

    /// To do something that the game decides: `target` is whom it is about, `argument` what thinker and game agree on.
    #[inline]
    pub fn act(&self, target: EntityId, argument: u32) -> Intent {
        Intent { target, argument, ..self.intent(Action::Act) }
    }

    fn intent(&self, action: Action) -> Intent {
        Intent { npc: self.id, action, x: self.x, y: self.y, target: 0, argument: 0 }
    }
}

impl Sighting {
    /// Whether it is a player.
    #[inline]
    pub fn is_player(&self) -> bool {
        self.traits & crate::Traits::PLAYER == crate::Traits::PLAYER
    }
}

/// Makes a type that implements [`Thinker`] the guest that this crate compiles to.
#[macro_export]
macro_rules! thinker {
    ($thinker:ty) => {
        $crate::__thinker!($thinker, $crate::thinker::Pack<$thinker>);
    };
}

/// Makes a type that implements [`BatchThinker`] the guest that this crate compiles to.
#[macro_export]
macro_rules! batch_thinker {
    ($thinker:ty) => {
        $crate::__thinker!($thinker, $crate::thinker::Whole<$thinker>);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __thinker {
    ($thinker:ty, $mind:ty) => {
        const _: () = {
            $crate::__hosted!($thinker, $mind);
            #[allow(dead_code)]
            type Exported = $crate::thinker::Exported<$thinker>;
            #[cfg(target_arch = "wasm32")]
            $crate::bindings::thinker::export_thinker! { Exported with_types_in $crate::thinker::exports }
        };
    };
}

/// What the exports need of either kind of thinker.
#[doc(hidden)]
pub trait Mind: Sized {
    /// Starts it with the JSON of its table.
    fn init(config: &str, occasion: Occasion) -> Result<Self, Refusal>;

    /// Decides for a batch, and adds what the NPCs want to `intents`.
    fn think(&mut self, now: Duration, batch: Batch<'_>, intents: &mut Vec<Intent>);

    /// The state as bytes.
    fn save(&self) -> Result<Vec<u8>, postcard::Error>;

    /// Takes a state over.
    fn restore(&mut self, state: &[u8]) -> Result<(), Refusal>;
}
