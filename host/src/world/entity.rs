//! Entities and the table that holds them: a slot for each, found by id through one hash look-up. The world keeps the
//! table and the sectors in step; nothing here knows of transactions or of who is awake.

use std::collections::BTreeMap;
use std::fmt;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::position::Position;

/// The number of an entity: counted up from 1, never used again, so that an id kept too long finds nothing rather
/// than something else. 0 is no entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EntityId(pub u64);

impl fmt::Display for EntityId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// The number of the guest that thinks for an NPC, as the server counts its thinkers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThinkerId(pub u32);

impl fmt::Display for ThinkerId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// The number of a client's link, as the gate counts them.
pub type ConnectionId = u64;

/// A thing in the world, without its named data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entity {
    pub id: EntityId,
    /// What it is: a number the game chooses.
    pub kind: u32,
    pub position: Position,
    /// Who thinks for it. An entity with a thinker is an NPC.
    pub thinker: Option<ThinkerId>,
    /// The client it belongs to. An entity with a connection is a player.
    pub connection: Option<ConnectionId>,
}

/// The named data of one entity, in the order of the names.
#[derive(Debug, Default)]
pub(super) struct EntityData {
    pub values: BTreeMap<Box<str>, Vec<u8>>,
    /// All names and values together, kept so that a limit check does not add them up.
    pub bytes: usize,
}

/// Which sector an entity stands in, and at which index of that sector's occupants.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub sector: u32,
    pub index: u32,
}

/// What the last commit concluded about an entity, so that the next one finds what has changed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settled {
    pub npc: bool,
    pub awake: bool,
    /// Its surroundings are covered: it is a player.
    pub covering: bool,
}

/// What the table keeps of an entity in one place: one cache line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub entity: Entity,
    pub place: Place,
    pub settled: Settled,
    /// Its row differs from what was last handed out to be kept; see [`World::take_unsaved`](super::World::take_unsaved).
    pub unsaved: bool,
}

/// A free slot's record: no entity has the id 0.
const VACANT: Record = Record {
    entity: Entity { id: EntityId(0), kind: 0, position: Position::new(0, 0, 0), thinker: None, connection: None },
    place: Place { sector: 0, index: 0 },
    settled: Settled { npc: false, awake: false, covering: false },
    unsaved: false,
};

/// All entities. Slots are reused, last freed first, so that undoing a change takes back the very slot it freed.
#[derive(Debug, Default)]
pub(super) struct Entities {
    slots: FxHashMap<EntityId, u32>,
    records: Vec<Record>,
    /// Parallel to `records`: named data is looked at far less often than positions.
    data: Vec<EntityData>,
    free: Vec<u32>,
}

impl Entities {
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn slot(&self, id: EntityId) -> Option<u32> {
        self.slots.get(&id).copied()
    }

    pub fn record(&self, slot: u32) -> &Record {
        &self.records[slot as usize]
    }

    pub fn record_mut(&mut self, slot: u32) -> &mut Record {
        &mut self.records[slot as usize]
    }

    pub fn data(&self, slot: u32) -> &EntityData {
        &self.data[slot as usize]
    }

    pub fn data_mut(&mut self, slot: u32) -> &mut EntityData {
        &mut self.data[slot as usize]
    }

    pub fn is_vacant(&self, slot: u32) -> bool {
        self.record(slot).entity.id == VACANT.entity.id
    }

    /// Every entity's slot, in no order that means anything.
    pub fn occupied_slots(&self) -> impl Iterator<Item = u32> {
        self.slots.values().copied()
    }

    pub fn insert(&mut self, record: Record, data: EntityData) -> u32 {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.records[slot as usize] = record;
                self.data[slot as usize] = data;
                slot
            }
            None => {
                self.records.push(record);
                self.data.push(data);
                (self.records.len() - 1) as u32
            }
        };
        self.slots.insert(record.entity.id, slot);
        slot
    }

    pub fn remove(&mut self, slot: u32) -> (Record, EntityData) {
        let record = std::mem::replace(self.record_mut(slot), VACANT);
        let data = std::mem::take(self.data_mut(slot));
        self.slots.remove(&record.entity.id);
        self.free.push(slot);
        (record, data)
    }
}
