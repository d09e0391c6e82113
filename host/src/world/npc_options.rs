//! How NPCs live: the `[npcs]` table of the configuration. Read once at start, by whoever makes [`NpcTicks`],
//! [`Sight`] and [`Intents`].
//!
//! [`NpcTicks`]: super::NpcTicks
//! [`Sight`]: super::Sight
//! [`Intents`]: super::Intents

use serde::{Deserialize, Serialize};

/// The options of NPC thinking. Every value must be positive; whoever reads the configuration checks that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NpcOptions {
    /// Time between two thinks of an NPC that is near a player.
    pub think_interval_ms: u64,
    /// How far an NPC sees, in tiles, as the crow flies.
    pub sight_radius: u32,
    /// How many entities an NPC sees at most: the nearest ones.
    pub max_seen: u32,
    /// How many tiles one move intent may cover, in each direction.
    pub max_step: u32,
}

impl Default for NpcOptions {
    fn default() -> Self {
        Self { think_interval_ms: 500, sight_radius: 8, max_seen: 16, max_step: 2 }
    }
}
