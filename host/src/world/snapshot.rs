//! The whole world as a plain value: what a save writes and a start reads, and what a test compares. The same world
//! always gives the same bytes. It holds what a game has made and nothing that follows from it: sectors, covers and
//! who is awake are worked out again on [`World::restore`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::entity::{ConnectionId, EntityData, EntityId, ThinkerId};
use super::error::WorldError;
use super::limits::WorldLimits;
use super::position::Position;
use super::state::{Spawn, World, new_record};
use super::undo::Undo;

/// One entity with its data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntitySnapshot {
    pub id: EntityId,
    pub kind: u32,
    pub position: Position,
    pub thinker: Option<ThinkerId>,
    pub connection: Option<ConnectionId>,
    pub data: BTreeMap<String, Vec<u8>>,
}

/// A world, in an order that depends on nothing but its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorldSnapshot {
    /// The id the next entity gets.
    pub next_id: u64,
    /// By id, lowest first.
    pub entities: Vec<EntitySnapshot>,
    /// Key-value spaces by the name of their guest; empty ones are left out.
    pub spaces: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
}

impl WorldSnapshot {
    /// Makes every player an entity without a connection: a save outlives the connections it was made with.
    pub fn forget_connections(&mut self) {
        for entity in &mut self.entities {
            entity.connection = None;
        }
    }
}

impl World {
    /// The world as it is now, the open transaction's changes included.
    pub fn snapshot(&self) -> WorldSnapshot {
        let mut entities: Vec<_> = self.entities.occupied_slots().map(|slot| self.entity_snapshot(slot)).collect();
        entities.sort_unstable_by_key(|entity| entity.id);
        let spaces = self
            .spaces
            .iter()
            .filter(|space| !space.pairs.is_empty())
            .map(|space| {
                let pairs = space.pairs.iter().map(|(key, value)| (key.to_string(), value.clone()));
                (space.name.to_string(), pairs.collect())
            })
            .collect();
        WorldSnapshot { next_id: self.next_id, entities, spaces }
    }

    fn entity_snapshot(&self, slot: u32) -> EntitySnapshot {
        let entity = self.entities.record(slot).entity;
        let values = self.entities.data(slot).values.iter();
        EntitySnapshot {
            id: entity.id,
            kind: entity.kind,
            position: entity.position,
            thinker: entity.thinker,
            connection: entity.connection,
            data: values.map(|(name, value)| (name.to_string(), value.clone())).collect(),
        }
    }

    /// A world with the content of `snapshot`. Its NPCs near a player are reported as woken. A save may hold more
    /// than the limits allow now, if they were lowered since; then nothing more can be added.
    pub fn restore(snapshot: WorldSnapshot, limits: WorldLimits) -> Result<Self, WorldError> {
        let mut world = World::new(limits);
        world.next_id = snapshot.next_id.max(1);
        let mut spawned = Vec::with_capacity(snapshot.entities.len());
        for entity in snapshot.entities {
            let id = entity.id;
            if id.0 == 0 || id.0 >= snapshot.next_id {
                return Err(bad(format!("it gives an entity the id {id}, beyond its own count")));
            }
            if world.entities.slot(id).is_some() {
                return Err(bad(format!("it holds the entity {id} twice")));
            }
            spawned.push(Undo::Spawned { slot: world.put_restored(entity) });
        }
        for (name, pairs) in snapshot.spaces {
            let space = world.spaces.add(&name);
            for (key, value) in pairs {
                world.spaces.space_mut(space).replace(&key, Some(value));
            }
        }
        world.settle(&spawned);
        Ok(world)
    }

    fn put_restored(&mut self, entity: EntitySnapshot) -> u32 {
        let EntitySnapshot { id, kind, position, thinker, connection, data } = entity;
        let bytes = data.iter().map(|(name, value)| name.len() + value.len()).sum();
        let values = data.into_iter().map(|(name, value)| (name.into_boxed_str(), value)).collect();
        self.put(new_record(id, Spawn { kind, position, thinker, connection }), EntityData { values, bytes })
    }
}

fn bad(reason: String) -> WorldError {
    WorldError::BadSnapshot { reason }
}
