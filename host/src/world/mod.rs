//! The world: entities on maps, the sectors they stand in, which NPCs are near a player, and the transaction that makes
//! every change take effect as a whole or not at all. The loop thread owns one [`World`]; this room knows nothing of
//! Wasm, sockets or disk, and never decides what a game means by a kind, a name or an argument.
//!
//! A turn of thinking goes through the files in this order: a commit tells who woke and who sleeps ([`ActivityChange`]),
//! [`NpcTicks`] keeps a timer for each NPC that is awake and groups those that are due by thinker, [`Sight`] gathers
//! what they see, and [`Intents`] applies what they want.

mod activity;
mod changes;
mod entity;
mod error;
mod intents;
mod kv;
mod limits;
mod nearest;
mod npc_options;
mod npc_ticks;
mod position;
mod queries;
mod sectors;
mod sightings;
mod snapshot;
mod state;
mod undo;

#[cfg(test)]
mod model_tests;

pub use activity::ActivityChange;
pub use changes::WorldChange;
pub use entity::{ConnectionId, Entity, EntityId, ThinkerId};
pub use error::WorldError;
pub use intents::{Action, Intent, Intents, Outcome};
pub use limits::{MAX_RADIUS_TILES, WorldLimits};
pub use npc_options::NpcOptions;
pub use npc_ticks::{NpcCounts, NpcTicks, ThinkTimers};
pub use position::{MapId, Position, SECTOR_TILES, SectorAddress};
pub use sightings::{NpcView, SEEN_PLAYER, Sight, Sighting};
pub use snapshot::{EntitySnapshot, WorldSnapshot};
pub use state::{Spawn, World};
