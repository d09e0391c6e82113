//! How much a world may hold. Everything a game can make grow has its limit here, and reaching one is a typed
//! [`WorldError`](super::WorldError) for the game, never an end of the host.

/// The largest radius of a query or of an NPC's sight, in tiles. It bounds how many sectors one answer may look at.
pub const MAX_RADIUS_TILES: u32 = 512;

/// The limits of a world. The table `[world]` of the configuration sets three of them (entities, data of an entity, a
/// key-value space); a program that uses this room by itself may set all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldLimits {
    /// Entities alive at one time.
    pub max_entities: usize,
    /// Named values on one entity.
    pub max_names_per_entity: usize,
    /// Length of the name of a value on an entity.
    pub max_name_bytes: usize,
    /// All names and values of one entity together.
    pub max_data_bytes_per_entity: usize,
    /// Key-value spaces: one per guest.
    pub max_kv_spaces: usize,
    /// Length of a key.
    pub max_kv_key_bytes: usize,
    /// All keys and values of one space together.
    pub max_kv_bytes_per_space: usize,
    /// Results of one query, whatever the caller asks for.
    pub max_results_per_query: usize,
    /// Changes in one transaction. The undo log remembers each until the transaction ends, and a rollback, which comes
    /// after the deadline of whoever made them, takes them all back.
    pub max_changes_per_transaction: usize,
    /// Bytes of overwritten values that one transaction may keep for its rollback.
    pub max_undo_bytes_per_transaction: usize,
}

impl Default for WorldLimits {
    fn default() -> Self {
        Self {
            max_entities: 1_000_000,
            max_names_per_entity: 64,
            max_name_bytes: 64,
            max_data_bytes_per_entity: 64 * 1024,
            max_kv_spaces: 1024,
            max_kv_key_bytes: 256,
            max_kv_bytes_per_space: 64 * 1024 * 1024,
            max_results_per_query: 4096,
            max_changes_per_transaction: 50_000,
            max_undo_bytes_per_transaction: 64 * 1024 * 1024,
        }
    }
}
