//! The [`World`] itself: what it holds, its transaction and every change that can be made to it. The loop thread calls
//! it, for guests and for the host's own doings; it never does I/O and never blocks.

use std::collections::BTreeSet;

use super::activity::Activity;
use super::changes::WorldChange;
use super::entity::{ConnectionId, Entities, Entity, EntityData, EntityId, Place, Record, Settled, ThinkerId};
use super::error::WorldError;
use super::kv::Spaces;
use super::limits::WorldLimits;
use super::position::Position;
use super::sectors::{NPC, Occupant, PLAYER, SectorGrid};
use super::undo::{Despawned, Undo, UndoLog};

/// What a new entity begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spawn {
    pub kind: u32,
    pub position: Position,
    pub thinker: Option<ThinkerId>,
    pub connection: Option<ConnectionId>,
}

/// Entities, their sectors and data, and the key-value spaces.
///
/// Changes are made between [`begin`](World::begin) and [`commit`](World::commit) or [`rollback`](World::rollback);
/// outside they are refused. Reads are allowed at any time and see the changes of the open transaction. Who wakes and
/// who falls asleep is decided at commit, so a change that is rolled back wakes nobody.
#[derive(Debug)]
pub struct World {
    pub(super) limits: WorldLimits,
    pub(super) entities: Entities,
    pub(super) grid: SectorGrid,
    /// Which entities belong to a connection: found when it is lost, without a look at every entity.
    pub(super) connections: BTreeSet<(ConnectionId, EntityId)>,
    pub(super) spaces: Spaces,
    pub(super) activity: Activity,
    pub(super) next_id: u64,
    /// Entities whose rows a plain commit has changed; each record knows whether it is in here.
    pub(super) unsaved: Vec<EntityId>,
    pub(super) log: UndoLog,
}

/// The transaction.
impl World {
    /// An empty world.
    pub fn new(limits: WorldLimits) -> Self {
        Self {
            limits,
            entities: Entities::default(),
            grid: SectorGrid::default(),
            connections: BTreeSet::new(),
            spaces: Spaces::default(),
            activity: Activity::default(),
            next_id: 1,
            unsaved: Vec::new(),
            log: UndoLog::default(),
        }
    }

    /// Opens a transaction. There is one at a time: beginning inside another is a mistake of the host, and goes on
    /// with the open one.
    pub fn begin(&mut self) {
        debug_assert!(!self.log.is_open(), "a transaction is open already");
        self.log.open();
    }

    /// Whether a transaction is open.
    pub fn is_in_transaction(&self) -> bool {
        self.log.is_open()
    }

    /// Keeps what the open transaction has changed and decides who wakes and who falls asleep:
    /// [`drain_activity`](World::drain_activity) tells. What has become of entities is told by
    /// [`take_unsaved`](World::take_unsaved), some time later; changes to data and to key-value spaces are told to nobody.
    pub fn commit(&mut self) {
        debug_assert!(self.log.is_open(), "no transaction is open");
        let entries = self.log.close();
        self.note_unsaved(&entries);
        self.settle(&entries);
        self.log.recycle(entries);
    }

    /// [`commit`](World::commit), and adds everything that the transaction has changed to `changes`, to be kept.
    pub fn commit_to(&mut self, changes: &mut Vec<WorldChange>) {
        debug_assert!(self.log.is_open(), "no transaction is open");
        let entries = self.log.close();
        self.tell_changes(&entries, changes);
        self.settle(&entries);
        self.log.recycle(entries);
    }

    /// Takes back everything the open transaction has changed.
    pub fn rollback(&mut self) {
        debug_assert!(self.log.is_open(), "no transaction is open");
        let mut entries = self.log.close();
        while let Some(undo) = entries.pop() {
            self.take_back(undo);
        }
        self.log.recycle(entries);
    }

    /// Runs `change` as one transaction: committed if it answers `Ok`, rolled back if it answers `Err`.
    pub fn transact<R, E>(&mut self, change: impl FnOnce(&mut World) -> Result<R, E>) -> Result<R, E> {
        self.begin();
        let result = change(self);
        match result {
            Ok(_) => self.commit(),
            Err(_) => self.rollback(),
        }
        result
    }

    fn take_back(&mut self, undo: Undo) {
        match undo {
            Undo::Spawned { slot } => {
                let (record, _) = self.take(slot);
                self.next_id = record.entity.id.0;
            }
            Undo::Despawned(despawned) => {
                self.put(despawned.record, despawned.data);
            }
            Undo::Moved { slot, from } => {
                self.relocate(slot, from);
            }
            Undo::Connection { slot, before } => {
                self.reconnect(slot, before);
            }
            Undo::Thinker { slot, before } => {
                self.assign(slot, before);
            }
            Undo::Data { slot, name, before } => {
                self.replace_data(slot, &name, before);
            }
            Undo::Kv { space, key, before } => {
                self.spaces.space_mut(space).replace(&key, before);
            }
        }
    }

    /// Refuses a change outside a transaction or beyond what one transaction may do.
    fn check_open(&self) -> Result<(), WorldError> {
        if !self.log.is_open() {
            return Err(WorldError::NoTransaction);
        }
        let limit = self.limits.max_changes_per_transaction;
        if self.log.len() >= limit {
            return Err(WorldError::TooManyChanges { limit });
        }
        Ok(())
    }

    fn check_overwriting(&self, bytes: usize) -> Result<(), WorldError> {
        let limit_bytes = self.limits.max_undo_bytes_per_transaction;
        if self.log.overwritten_bytes() + bytes > limit_bytes {
            return Err(WorldError::TooMuchOverwritten { limit_bytes });
        }
        Ok(())
    }

    fn slot_to_change(&self, id: EntityId) -> Result<u32, WorldError> {
        self.check_open()?;
        self.slot(id)
    }

    pub(super) fn slot(&self, id: EntityId) -> Result<u32, WorldError> {
        self.entities.slot(id).ok_or(WorldError::NotFound(id))
    }
}

/// Changes to entities.
impl World {
    /// Makes a new entity and answers its id.
    pub fn spawn(&mut self, spawn: Spawn) -> Result<EntityId, WorldError> {
        self.check_open()?;
        let limit = self.limits.max_entities;
        if self.entities.len() >= limit {
            return Err(WorldError::TooManyEntities { limit });
        }
        let id = EntityId(self.next_id);
        let slot = self.put(new_record(id, spawn), EntityData::default());
        self.next_id += 1;
        self.log.push(Undo::Spawned { slot });
        Ok(id)
    }

    /// Ends an entity, with its data.
    pub fn despawn(&mut self, id: EntityId) -> Result<(), WorldError> {
        let slot = self.slot_to_change(id)?;
        let bytes = self.entities.data(slot).bytes;
        self.check_overwriting(bytes)?;
        let (record, data) = self.take(slot);
        self.log.push_overwriting(Undo::Despawned(Box::new(Despawned { record, data })), bytes);
        Ok(())
    }

    /// Puts an entity on another tile, of any map.
    pub fn move_to(&mut self, id: EntityId, to: Position) -> Result<(), WorldError> {
        let slot = self.slot_to_change(id)?;
        let from = self.relocate(slot, to);
        self.log.push(Undo::Moved { slot, from });
        Ok(())
    }

    /// Makes an entity a player, or no longer one.
    pub fn set_connection(&mut self, id: EntityId, connection: Option<ConnectionId>) -> Result<(), WorldError> {
        let slot = self.slot_to_change(id)?;
        let before = self.reconnect(slot, connection);
        self.log.push(Undo::Connection { slot, before });
        Ok(())
    }

    /// Makes an entity an NPC, gives an NPC another thinker, or makes it no longer one.
    pub fn set_thinker(&mut self, id: EntityId, thinker: Option<ThinkerId>) -> Result<(), WorldError> {
        let slot = self.slot_to_change(id)?;
        let before = self.assign(slot, thinker);
        self.log.push(Undo::Thinker { slot, before });
        Ok(())
    }

    /// Gives the entity's data `name` the value `value`.
    pub fn set_data(&mut self, id: EntityId, name: &str, value: Vec<u8>) -> Result<(), WorldError> {
        let slot = self.slot_to_change(id)?;
        let limit_bytes = self.limits.max_name_bytes;
        if name.len() > limit_bytes {
            return Err(WorldError::NameTooLong { length_bytes: name.len(), limit_bytes });
        }
        let data = self.entities.data(slot);
        let held = data.values.get(name).map(Vec::len);
        let limit = self.limits.max_names_per_entity;
        if held.is_none() && data.values.len() >= limit {
            return Err(WorldError::TooManyNames { entity: id, limit });
        }
        let freed = held.map_or(0, |bytes| bytes + name.len());
        let limit_bytes = self.limits.max_data_bytes_per_entity;
        if data.bytes - freed + name.len() + value.len() > limit_bytes {
            return Err(WorldError::DataTooLarge { entity: id, limit_bytes });
        }
        self.check_overwriting(freed)?;
        let before = self.replace_data(slot, name, Some(value));
        self.log.push_overwriting(Undo::Data { slot, name: name.into(), before }, freed);
        Ok(())
    }

    /// Removes the entity's data `name`; answers whether it was there.
    pub fn remove_data(&mut self, id: EntityId, name: &str) -> Result<bool, WorldError> {
        let slot = self.slot_to_change(id)?;
        let Some(held) = self.entities.data(slot).values.get(name) else {
            return Ok(false);
        };
        let freed = held.len() + name.len();
        self.check_overwriting(freed)?;
        let before = self.replace_data(slot, name, None);
        self.log.push_overwriting(Undo::Data { slot, name: name.into(), before }, freed);
        Ok(true)
    }
}

/// Changes to the key-value spaces.
impl World {
    /// Gives `key` in the space of the guest `space` the value `value`.
    pub fn kv_set(&mut self, space: &str, key: &str, value: Vec<u8>) -> Result<(), WorldError> {
        self.check_open()?;
        let limit_bytes = self.limits.max_kv_key_bytes;
        if key.len() > limit_bytes {
            return Err(WorldError::KeyTooLong { length_bytes: key.len(), limit_bytes });
        }
        let found = self.spaces.find(space);
        let held = found.and_then(|space| space.pairs.get(key)).map(Vec::len);
        let freed = held.map_or(0, |bytes| bytes + key.len());
        let bytes = found.map_or(0, |space| space.bytes);
        let limit_bytes = self.limits.max_kv_bytes_per_space;
        if bytes - freed + key.len() + value.len() > limit_bytes {
            return Err(WorldError::KvFull { space: space.to_owned(), limit_bytes });
        }
        self.check_overwriting(freed)?;
        let space = self.space_or_new(space)?;
        let before = self.spaces.space_mut(space).replace(key, Some(value));
        self.log.push_overwriting(Undo::Kv { space, key: key.into(), before }, freed);
        Ok(())
    }

    /// Deletes `key` from the space of the guest `space`; answers whether it was there.
    pub fn kv_delete(&mut self, space: &str, key: &str) -> Result<bool, WorldError> {
        self.check_open()?;
        let Some(space) = self.spaces.index(space) else {
            return Ok(false);
        };
        let Some(held) = self.spaces.space(space).pairs.get(key) else {
            return Ok(false);
        };
        let freed = held.len() + key.len();
        self.check_overwriting(freed)?;
        let before = self.spaces.space_mut(space).replace(key, None);
        self.log.push_overwriting(Undo::Kv { space, key: key.into(), before }, freed);
        Ok(true)
    }

    /// A space, once made, stays: an empty one is as good as none, in reads and in a save.
    pub(super) fn space_or_new(&mut self, name: &str) -> Result<u32, WorldError> {
        if let Some(index) = self.spaces.index(name) {
            return Ok(index);
        }
        let limit = self.limits.max_kv_spaces;
        if self.spaces.len() >= limit {
            return Err(WorldError::TooManySpaces { limit });
        }
        Ok(self.spaces.add(name))
    }
}

/// The record of an entity that no commit has seen yet.
pub(super) fn new_record(id: EntityId, spawn: Spawn) -> Record {
    let Spawn { kind, position, thinker, connection } = spawn;
    Record {
        entity: Entity { id, kind, position, thinker, connection },
        place: Place::default(),
        settled: Settled::default(),
        unsaved: false,
    }
}

/// The steps that both a change and its undoing take. They keep the table, the grid and the index of connections in
/// step, check nothing and log nothing.
impl World {
    pub(super) fn put(&mut self, record: Record, data: EntityData) -> u32 {
        let entity = record.entity;
        let slot = self.entities.insert(record, data);
        self.enter_sector(slot);
        if let Some(connection) = entity.connection {
            self.connections.insert((connection, entity.id));
        }
        slot
    }

    fn take(&mut self, slot: u32) -> (Record, EntityData) {
        let Record { entity, place, .. } = *self.entities.record(slot);
        self.leave_sector(place);
        if let Some(connection) = entity.connection {
            self.connections.remove(&(connection, entity.id));
        }
        self.entities.remove(slot)
    }

    fn relocate(&mut self, slot: u32, to: Position) -> Position {
        let record = self.entities.record_mut(slot);
        let place = record.place;
        let from = std::mem::replace(&mut record.entity.position, to);
        if from.sector() == to.sector() {
            self.grid.set_tile(place, to.sector_tile());
        } else {
            self.leave_sector(place);
            self.enter_sector(slot);
        }
        from
    }

    fn reconnect(&mut self, slot: u32, connection: Option<ConnectionId>) -> Option<ConnectionId> {
        let record = self.entities.record_mut(slot);
        let before = std::mem::replace(&mut record.entity.connection, connection);
        let Record { entity, place, .. } = *record;
        if let Some(before) = before {
            self.connections.remove(&(before, entity.id));
        }
        if let Some(connection) = connection {
            self.connections.insert((connection, entity.id));
        }
        self.grid.set_flags(place, occupant_flags(&entity));
        before
    }

    fn assign(&mut self, slot: u32, thinker: Option<ThinkerId>) -> Option<ThinkerId> {
        let record = self.entities.record_mut(slot);
        let before = std::mem::replace(&mut record.entity.thinker, thinker);
        let Record { entity, place, .. } = *record;
        self.grid.set_flags(place, occupant_flags(&entity));
        before
    }

    fn replace_data(&mut self, slot: u32, name: &str, value: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let data = self.entities.data_mut(slot);
        let added = value.as_ref().map_or(0, |value| name.len() + value.len());
        let before = match value {
            Some(value) => match data.values.get_mut(name) {
                Some(held) => Some(std::mem::replace(held, value)),
                None => data.values.insert(name.into(), value),
            },
            None => data.values.remove(name),
        };
        let freed = before.as_ref().map_or(0, |before| name.len() + before.len());
        data.bytes = data.bytes + added - freed;
        before
    }

    fn enter_sector(&mut self, slot: u32) {
        let entity = self.entities.record(slot).entity;
        let occupant = Occupant { id: entity.id, kind: entity.kind, flags: occupant_flags(&entity) };
        self.entities.record_mut(slot).place = self.grid.insert(entity.position, occupant, slot);
    }

    fn leave_sector(&mut self, place: Place) {
        if let Some(moved_slot) = self.grid.remove(place) {
            self.entities.record_mut(moved_slot).place = place;
        }
    }
}

fn occupant_flags(entity: &Entity) -> u32 {
    let player = if entity.connection.is_some() { PLAYER } else { 0 };
    let npc = if entity.thinker.is_some() { NPC } else { 0 };
    player | npc
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
