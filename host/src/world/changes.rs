//! What commits have changed, as rows for whoever keeps them: an entity's own row, a value of its data, a pair of a
//! key-value space. A row is told as it is after the commit, once, however often the transaction changed it. Nothing
//! here knows where rows go.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::entity::{EntityId, ThinkerId};
use super::position::Position;
use super::state::World;
use super::undo::Undo;

/// One row as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorldChange {
    /// An entity, without its data. Connections are not kept: they end before the world does.
    Entity { id: EntityId, kind: u32, position: Position, thinker: Option<ThinkerId> },
    /// An entity is gone, with all its data.
    Despawned(EntityId),
    /// A value of an entity's data; `None` where there is none any more.
    Data { entity: EntityId, name: Box<str>, value: Option<Vec<u8>> },
    /// A value of the key-value space of a guest; `None` where there is none any more.
    Kv { space: Arc<str>, key: Box<str>, value: Option<Vec<u8>> },
    /// The id that the next entity gets.
    NextEntityId(u64),
}

/// A row, by what the undo log calls it.
#[derive(PartialEq, Eq, Hash)]
enum Row<'a> {
    Entity(u32),
    Data(u32, &'a str),
    Kv(u32, &'a str),
}

impl World {
    /// Tells what a transaction has changed. Entries of the undo log only say where to look: what is told is what is
    /// there now, so that it is right whatever became of a slot within the transaction. Entities come before their data.
    pub(super) fn tell_changes(&mut self, entries: &[Undo], changes: &mut Vec<WorldChange>) {
        let mut told = FxHashSet::default();
        // One entry needs no memory of those before it.
        let mut is_new = |row| entries.len() == 1 || told.insert(row);
        let mut has_spawned = false;
        for undo in entries {
            match undo {
                Undo::Spawned { slot } | Undo::Moved { slot, .. } | Undo::Thinker { slot, .. } => {
                    has_spawned |= matches!(undo, Undo::Spawned { .. });
                    if is_new(Row::Entity(*slot)) {
                        changes.extend(self.entity_row(*slot));
                    }
                }
                Undo::Despawned(despawned) => changes.push(WorldChange::Despawned(despawned.record.entity.id)),
                Undo::Data { .. } | Undo::Kv { .. } | Undo::Connection { .. } => {}
            }
        }
        for undo in entries {
            match undo {
                Undo::Data { slot, name, .. } if is_new(Row::Data(*slot, name)) => {
                    changes.extend(self.data_row(*slot, name));
                }
                Undo::Kv { space, key, .. } if is_new(Row::Kv(*space, key)) => {
                    changes.push(self.kv_row(*space, key));
                }
                _ => {}
            }
        }
        if has_spawned {
            changes.push(WorldChange::NextEntityId(self.next_id));
        }
    }

    /// Whether the open transaction has changed anything that commits tell of.
    pub fn has_changes_to_keep(&self) -> bool {
        self.log.entries().iter().any(|undo| !matches!(undo, Undo::Connection { .. }))
    }

    /// The row of the entity in a slot, which is told with this.
    fn entity_row(&mut self, slot: u32) -> Option<WorldChange> {
        if self.entities.is_vacant(slot) {
            return None;
        }
        let record = self.entities.record_mut(slot);
        record.unsaved = false;
        let entity = record.entity;
        Some(WorldChange::Entity {
            id: entity.id,
            kind: entity.kind,
            position: entity.position,
            thinker: entity.thinker,
        })
    }

    fn data_row(&self, slot: u32, name: &str) -> Option<WorldChange> {
        if self.entities.is_vacant(slot) {
            return None;
        }
        let entity = self.entities.record(slot).entity.id;
        let value = self.entities.data(slot).values.get(name).cloned();
        Some(WorldChange::Data { entity, name: name.into(), value })
    }

    fn kv_row(&self, space: u32, key: &str) -> WorldChange {
        let space = self.spaces.space(space);
        WorldChange::Kv { space: Arc::clone(&space.name), key: key.into(), value: space.pairs.get(key).cloned() }
    }

    /// Remembers the entities that a plain commit has changed.
    pub(super) fn note_unsaved(&mut self, entries: &[Undo]) {
        for undo in entries {
            let (Undo::Spawned { slot } | Undo::Moved { slot, .. } | Undo::Thinker { slot, .. }) = undo else {
                continue;
            };
            if self.entities.is_vacant(*slot) {
                continue;
            }
            let record = self.entities.record_mut(*slot);
            if !std::mem::replace(&mut record.unsaved, true) {
                self.unsaved.push(record.entity.id);
            }
        }
    }

    /// The entities that plain commits have changed since the last call. Each is to be given to
    /// [`tell_entity`](World::tell_entity) in time; it may be gone by then.
    pub fn take_unsaved(&mut self) -> Vec<EntityId> {
        std::mem::take(&mut self.unsaved)
    }

    /// Adds the row of an entity as it is now to `changes`, unless it was told since it last changed.
    pub fn tell_entity(&mut self, id: EntityId, changes: &mut Vec<WorldChange>) {
        let Some(slot) = self.entities.slot(id) else { return };
        if self.entities.record(slot).unsaved {
            changes.extend(self.entity_row(slot));
        }
    }
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
