//! Why the world refused something. A refused call has changed nothing, and the transaction it was part of stays open.

use super::entity::EntityId;
use super::limits::MAX_RADIUS_TILES;

/// A call the world refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    #[error("no entity has the id {0}; it may have been despawned")]
    NotFound(EntityId),

    #[error("the world holds {limit} entities already; despawn some or raise world.max_entities")]
    TooManyEntities { limit: usize },

    #[error("the data of entity {entity} would pass {limit_bytes} bytes; store less or raise world.max_data_kb")]
    DataTooLarge { entity: EntityId, limit_bytes: usize },

    #[error("entity {entity} has {limit} named values already; remove one, or put several values under one name")]
    TooManyNames { entity: EntityId, limit: usize },

    #[error("a name of {length_bytes} bytes is longer than {limit_bytes}; shorten it")]
    NameTooLong { length_bytes: usize, limit_bytes: usize },

    #[error("a key of {length_bytes} bytes is longer than {limit_bytes}; shorten it")]
    KeyTooLong { length_bytes: usize, limit_bytes: usize },

    #[error("the key-value space of {space} would pass {limit_bytes} bytes; delete keys or raise world.max_kv_mb")]
    KvFull { space: String, limit_bytes: usize },

    #[error("there are {limit} key-value spaces already, as many as a world has; run fewer guests")]
    TooManySpaces { limit: usize },

    #[error("a radius of {radius} tiles is more than {MAX_RADIUS_TILES}; ask in several smaller circles")]
    RadiusTooLarge { radius: u32 },

    #[error("the transaction has made {limit} changes already; do less in one call")]
    TooManyChanges { limit: usize },

    #[error("the transaction would overwrite more than {limit_bytes} bytes; do less in one call")]
    TooMuchOverwritten { limit_bytes: usize },

    #[error("the world changes only inside a transaction; begin one first")]
    NoTransaction,

    #[error("the saved world cannot be used: {reason}; restore an older save")]
    BadSnapshot { reason: String },
}
