//! The world: entities on maps, and the named data each carries. Only a `game` may change it.
//!
//! [`set`] and [`get`] store values of the author's own types as data, through postcard: what one version of a guest
//! stored, the next must be able to read.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

pub use crate::bindings::entities::{
    Entity, EntityError, count, despawn, get as find, get_data, in_sector, move_to, remove_data, set_connection,
    set_data, set_thinker, spawn, within,
};
use crate::{EntityId, Position};

impl Position {
    /// The tile `x` to the east and `y` to the south of the origin of `map`.
    pub fn new(map: u32, x: i32, y: i32) -> Self {
        Self { map, x, y }
    }

    /// How far apart two places are on one map, as a step to any of the eight neighbours counts 1. None between maps.
    pub fn distance(&self, other: &Position) -> Option<u32> {
        (self.map == other.map).then(|| self.x.abs_diff(other.x).max(self.y.abs_diff(other.y)))
    }
}

/// Why a value was not stored or read.
#[derive(Debug, Error)]
pub enum DataError {
    /// The host refused.
    #[error(transparent)]
    Entity(#[from] EntityError),
    /// The value has no encoding, or the data is of another type than asked for.
    #[error("the data {name:?} of entity {id}: {source}")]
    Encoding {
        /// Whose data.
        id: EntityId,
        /// Which data.
        name: String,
        /// What is wrong with it.
        source: postcard::Error,
    },
}

/// Stores a value as data of an entity.
pub fn set<T: Serialize + ?Sized>(id: EntityId, name: &str, value: &T) -> Result<(), DataError> {
    let data = postcard::to_allocvec(value).map_err(|source| encoding(id, name, source))?;
    Ok(set_data(id, name, &data)?)
}

/// Reads a value that [`set`] stored; none when there is none under that name.
pub fn get<T: DeserializeOwned>(id: EntityId, name: &str) -> Result<Option<T>, DataError> {
    match get_data(id, name)? {
        Some(data) => postcard::from_bytes(&data).map(Some).map_err(|source| encoding(id, name, source)),
        None => Ok(None),
    }
}

fn encoding(id: EntityId, name: &str, source: postcard::Error) -> DataError {
    DataError::Encoding { id, name: name.into(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_steps_to_any_neighbour_and_knows_no_way_between_maps() {
        assert_eq!(Position::new(0, -3, 2).distance(&Position::new(0, 1, 3)), Some(4));
        assert_eq!(Position::new(0, i32::MIN, 0).distance(&Position::new(0, i32::MAX, 0)), Some(u32::MAX));
        assert_eq!(Position::new(0, 0, 0).distance(&Position::new(1, 0, 0)), None);
    }
}
