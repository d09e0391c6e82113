//! Who plays: which entity a connection moves, and where it lives. All of it is in `kv`, so that a new instance of the
//! rules knows every player.

use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

use crate::config::Config;
use meadow::kind;

const PREFIX: &str = "player/";
const SLOTS: &str = "slots";

/// How many players one look into `kv` returns at most.
const PAGE: u32 = 1024;

/// A player who is connected.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Player {
    /// The entity in the world.
    pub entity: EntityId,
    /// Which home is theirs.
    slot: u32,
}

impl Player {
    /// Where the player lives.
    pub fn home(&self, config: &Config) -> Position {
        config.home(self.slot)
    }
}

/// Puts a new player into the world, at the first home that is free.
pub fn enter(connection: ConnectionId, config: &Config) -> Result<(), Refusal> {
    let mut slots = taken_slots()?;
    let slot = first_free(&mut slots);
    let entity = entities::spawn(kind::PLAYER, config.home(slot), None)?;
    entities::set_connection(entity, Some(connection))?;
    kv::set(&key(connection), &Player { entity, slot })?;
    kv::set(SLOTS, &slots)?;
    Ok(())
}

/// Takes a player out of the world.
pub fn leave(connection: ConnectionId) -> Result<(), Refusal> {
    let Some(player) = find(connection)? else { return Ok(()) };
    // Nobody else removes a player's entity; should it be gone all the same, the player leaves without it.
    let _ = entities::despawn(player.entity);
    kv::delete(&key(connection))?;
    let mut slots = taken_slots()?;
    if let Some(taken) = slots.get_mut(player.slot as usize) {
        *taken = false;
    }
    kv::set(SLOTS, &slots)?;
    Ok(())
}

/// The player of a connection.
pub fn find(connection: ConnectionId) -> Result<Option<Player>, Refusal> {
    Ok(kv::get(&key(connection))?)
}

/// Takes out everybody who was there when the host stopped: no connection outlives that.
pub fn clear() -> Result<(), Refusal> {
    loop {
        let page = kv::scan(PREFIX, None, PAGE);
        if page.is_empty() {
            break;
        }
        for entry in &page {
            if let Ok(player) = wheelhouse_guest::postcard::from_bytes::<Player>(&entry.value) {
                // Gone already is as good.
                let _ = entities::despawn(player.entity);
            }
            kv::delete(&entry.key)?;
        }
    }
    kv::delete(SLOTS)?;
    Ok(())
}

fn key(connection: ConnectionId) -> String {
    format!("{PREFIX}{connection}")
}

fn taken_slots() -> Result<Vec<bool>, Refusal> {
    Ok(kv::get(SLOTS)?.unwrap_or_default())
}

/// Takes the first slot that is free.
fn first_free(slots: &mut Vec<bool>) -> u32 {
    let free = slots.iter().position(|taken| !taken).unwrap_or(slots.len());
    if free == slots.len() {
        slots.push(true);
    } else {
        slots[free] = true;
    }
    free as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_free_slot_is_taken() {
        let mut slots = Vec::new();
        assert_eq!((first_free(&mut slots), first_free(&mut slots), first_free(&mut slots)), (0, 1, 2));
        slots[1] = false;
        assert_eq!((first_free(&mut slots), first_free(&mut slots)), (1, 3));
    }
}
