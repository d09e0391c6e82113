//! The interface `entities`: the world's entities and their data.

use crate::guest::contract::sim::entities::{Entity, EntityError, Host};
use crate::guest::contract::sim::types;
use crate::guest::stage::{Durable, Stage};
use crate::guest::state::InstanceState;
use crate::world::{self, EntityId, SectorAddress, Spawn, ThinkerId, WorldError};

/// Entities of one answer.
const MAX_FOUND: u32 = 1024;
/// Tiles that a query reaches.
const MAX_RADIUS: u32 = 128;

type Answer<T> = wasmtime::Result<Result<T, EntityError>>;

impl Host for InstanceState {
    fn spawn(&mut self, kind: u32, at: types::Position, thinker: Option<String>) -> Answer<u64> {
        self.change(|stage| {
            let thinker = find_thinker(stage, thinker)?;
            let spawned = stage.world.spawn(Spawn { kind, position: position(at), thinker, connection: None })?;
            Ok(spawned.0)
        })
    }

    fn despawn(&mut self, id: u64) -> Answer<()> {
        self.change(|stage| Ok(stage.world.despawn(EntityId(id))?))
    }

    fn get(&mut self, id: u64) -> wasmtime::Result<Option<Entity>> {
        Ok(self.stage_to_read(Durable::Entities)?.world.entity(EntityId(id)).map(shown))
    }

    fn move_to(&mut self, id: u64, to: types::Position) -> Answer<()> {
        self.change(|stage| Ok(stage.world.move_to(EntityId(id), position(to))?))
    }

    fn set_connection(&mut self, id: u64, connection: Option<u64>) -> Answer<()> {
        self.change(|stage| {
            if let Some(connection) = connection {
                let taken = stage.world.entities_of(connection).any(|owner| owner != EntityId(id));
                if taken || !stage.connections.contains(&connection) {
                    return Err(EntityError::NoSuchConnection.into());
                }
            }
            Ok(stage.world.set_connection(EntityId(id), connection)?)
        })
    }

    fn set_thinker(&mut self, id: u64, thinker: Option<String>) -> Answer<()> {
        self.change(|stage| {
            let thinker = find_thinker(stage, thinker)?;
            Ok(stage.world.set_thinker(EntityId(id), thinker)?)
        })
    }

    fn get_data(&mut self, id: u64, name: String) -> Answer<Option<Vec<u8>>> {
        let data =
            self.stage_to_read(Durable::Entities)?.world.data(EntityId(id), &name).map(|data| data.map(<[u8]>::to_vec));
        answer(data.map_err(Refusal::World))
    }

    fn set_data(&mut self, id: u64, name: String, data: Vec<u8>) -> Answer<()> {
        self.change(|stage| Ok(stage.world.set_data(EntityId(id), &name, data)?))
    }

    fn remove_data(&mut self, id: u64, name: String) -> Answer<bool> {
        self.change(|stage| Ok(stage.world.remove_data(EntityId(id), &name)?))
    }

    fn in_sector(&mut self, map: u32, sector_x: i32, sector_y: i32, limit: u32) -> wasmtime::Result<Vec<Entity>> {
        let address = SectorAddress { map, x: sector_x, y: sector_y };
        let found = self.stage_to_read(Durable::Entities)?.world.in_sector(address, limit.min(MAX_FOUND) as usize);
        Ok(found.iter().map(shown).collect())
    }

    fn within(&mut self, center: types::Position, radius: u32, limit: u32) -> wasmtime::Result<Vec<Entity>> {
        let (radius, limit) = (radius.min(MAX_RADIUS), limit.min(MAX_FOUND) as usize);
        let found = self
            .stage_to_read(Durable::Entities)?
            .world
            .within(position(center), radius, limit)
            .map_err(wasmtime::Error::new)?;
        Ok(found.iter().map(shown).collect())
    }

    fn count(&mut self) -> wasmtime::Result<u64> {
        Ok(self.stage_to_read(Durable::Entities)?.world.entity_count() as u64)
    }
}

impl InstanceState {
    /// Changes the world, if this guest may.
    fn change<T>(&mut self, change: impl FnOnce(&mut Stage) -> Result<T, Refusal>) -> Answer<T> {
        match self.stage_to_write(Durable::Entities)? {
            Some(stage) => answer(change(stage)),
            None => Ok(Err(EntityError::ReadOnly)),
        }
    }
}

/// Why nothing was changed: the contract's word for it, or the world's.
enum Refusal {
    Contract(EntityError),
    World(WorldError),
}

impl From<EntityError> for Refusal {
    fn from(error: EntityError) -> Self {
        Refusal::Contract(error)
    }
}

impl From<WorldError> for Refusal {
    fn from(error: WorldError) -> Self {
        Refusal::World(error)
    }
}

/// What the guest is told; what the contract has no word for ends the call.
fn answer<T>(result: Result<T, Refusal>) -> Answer<T> {
    let error = match result {
        Ok(value) => return Ok(Ok(value)),
        Err(Refusal::Contract(error)) => error,
        Err(Refusal::World(error)) => match error {
            WorldError::NotFound(_) => EntityError::NotFound,
            WorldError::TooManyEntities { limit } => EntityError::TooMany(limit as u64),
            WorldError::TooManyNames { limit, .. } => EntityError::TooMany(limit as u64),
            WorldError::DataTooLarge { limit_bytes, .. } => EntityError::TooLarge(limit_bytes as u32),
            WorldError::NameTooLong { limit_bytes, .. } => EntityError::TooLarge(limit_bytes as u32),
            other => return Err(wasmtime::Error::new(other)),
        },
    };
    Ok(Err(error))
}

fn find_thinker(stage: &Stage, name: Option<String>) -> Result<Option<ThinkerId>, EntityError> {
    match name {
        None => Ok(None),
        Some(name) => stage.thinkers.get(&name).copied().map(Some).ok_or(EntityError::NoSuchThinker),
    }
}

fn position(position: types::Position) -> world::Position {
    world::Position::new(position.map, position.x, position.y)
}

fn shown(entity: &world::Entity) -> Entity {
    Entity {
        id: entity.id.0,
        kind: entity.kind,
        position: types::Position { map: entity.position.map, x: entity.position.x, y: entity.position.y },
        connection: entity.connection,
    }
}
