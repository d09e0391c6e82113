//! What can be asked of the world: by id, by sector, within a radius, by connection, and the key-value spaces. Every
//! answer that is a list has a limit: the caller's, cut to `max_results_per_query`. Reads see the open transaction.

use super::entity::{ConnectionId, Entity, EntityId};
use super::error::WorldError;
use super::limits::{MAX_RADIUS_TILES, WorldLimits};
use super::nearest::{Circle, Nearest};
use super::position::{Position, SectorAddress};
use super::state::World;

impl World {
    pub fn limits(&self) -> &WorldLimits {
        &self.limits
    }

    /// How many entities there are.
    pub fn entity_count(&self) -> usize {
        self.entities.len()
    }

    /// The entity with this id, if there is one.
    pub fn entity(&self, id: EntityId) -> Option<&Entity> {
        self.entities.slot(id).map(|slot| &self.entities.record(slot).entity)
    }

    /// The value of the entity's data `name`, if it has one.
    pub fn data(&self, id: EntityId, name: &str) -> Result<Option<&[u8]>, WorldError> {
        Ok(self.entities.data(self.slot(id)?).values.get(name).map(Vec::as_slice))
    }

    /// The entities in one sector, lowest ids first.
    pub fn in_sector(&self, address: SectorAddress, limit: usize) -> Vec<Entity> {
        let Some(sector) = self.grid.find(address) else {
            return Vec::new();
        };
        let mut found: Vec<Entity> = sector.slots.iter().map(|slot| self.entities.record(*slot).entity).collect();
        found.sort_unstable_by_key(|entity| entity.id);
        found.truncate(self.cut(limit));
        found
    }

    /// The entities at most `radius` tiles from `centre`, as the crow flies; nearest first, ties by id.
    pub fn within(&self, centre: Position, radius: u32, limit: usize) -> Result<Vec<Entity>, WorldError> {
        if radius > MAX_RADIUS_TILES {
            return Err(WorldError::RadiusTooLarge { radius });
        }
        let circle = Circle { centre, radius, limit: self.cut(limit) };
        let mut nearest = Nearest::default();
        let found = nearest.find(&self.grid, circle, None);
        Ok(found.map(|found| self.entities.record(found.slot).entity).collect())
    }

    /// The entities that belong to a connection, lowest ids first.
    pub fn entities_of(&self, connection: ConnectionId) -> impl Iterator<Item = EntityId> {
        let of_connection = (connection, EntityId(0))..=(connection, EntityId(u64::MAX));
        self.connections.range(of_connection).map(|(_, id)| *id)
    }

    /// The value of `key` in the space of the guest `space`, if it has one.
    pub fn kv_get(&self, space: &str, key: &str) -> Option<&[u8]> {
        self.spaces.find(space)?.pairs.get(key).map(Vec::as_slice)
    }

    /// The pairs of the space of the guest `space` whose key begins with `prefix`, in the order of the keys. The next
    /// page begins `after` the last key of this one.
    pub fn kv_scan<'a>(
        &'a self,
        space: &str,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.spaces.find(space).into_iter().flat_map(move |space| space.scan(prefix, after)).take(self.cut(limit))
    }

    fn cut(&self, limit: usize) -> usize {
        limit.min(self.limits.max_results_per_query)
    }
}
