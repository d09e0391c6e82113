//! Who plays: which entity a connection moves, where it lives, and the name, if it was told. All of it is in `kv`, so
//! that a new instance of the rules knows every player.

use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

use crate::config::Config;
use crate::persons::{self, Person};
use crate::{answer, player_entity};
use meadow::kind;

const PREFIX: &str = "player/";
const SLOTS: &str = "slots";

/// What a player is told who wants what only somebody with a name can do.
pub const NAMELESS: &str = "tell your name first: name NAME";

/// How many players one look into `kv` returns at most.
const PAGE: u32 = 1024;

/// A player who is connected.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Player {
    /// The entity in the world.
    pub entity: EntityId,
    /// Which home is theirs.
    slot: u32,
    /// Which person they are, once they have told.
    name: Option<String>,
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
    kv::set(&key(connection), &Player { entity, slot, name: None })?;
    kv::set(SLOTS, &slots)?;
    Ok(())
}

/// Makes a player the person of that name, who goes on where they left.
pub fn introduce(connection: ConnectionId, name: &str) -> Result<(), Refusal> {
    let Some(player) = find(connection)? else { refuse!("connection {connection} has no player") };
    if let Some(name) = player.name {
        return answer(connection, format!("you are {name} already"));
    }
    let (person, welcome) = match persons::find(name)? {
        Some(Person { connection: Some(_), .. }) => return answer(connection, format!("{name} is here already")),
        Some(person) => {
            entities::move_to(player.entity, person.place)?;
            (person, "welcome back")
        }
        None => {
            let place = player_entity(connection)?.position;
            (Person { connection: None, place, harvest: 0, battle: None }, "welcome")
        }
    };
    persons::keep(name, &Person { connection: Some(connection), ..person.clone() })?;
    kv::set(&key(connection), &Player { name: Some(name.into()), ..player })?;
    let Position { x, y, .. } = person.place;
    answer(connection, format!("{welcome} {name}, at {x} {y}, harvest {}", person.harvest))
}

/// Takes a player out of the world.
pub fn leave(connection: ConnectionId) -> Result<(), Refusal> {
    let Some(player) = find(connection)? else { return Ok(()) };
    depart(&player)?;
    kv::delete(&key(connection))?;
    let mut slots = taken_slots()?;
    if let Some(taken) = slots.get_mut(player.slot as usize) {
        *taken = false;
    }
    kv::set(SLOTS, &slots)?;
    Ok(())
}

/// Takes a player's entity away; a person comes back to where it stood.
fn depart(player: &Player) -> Result<(), Refusal> {
    // Nobody else removes a player's entity; should it be gone all the same, the player leaves without it.
    let entity = entities::find(player.entity);
    let _ = entities::despawn(player.entity);
    let Some(name) = &player.name else { return Ok(()) };
    let Some(person) = persons::find(name)? else { return Ok(()) };
    let place = entity.map_or(person.place, |entity| entity.position);
    persons::keep(name, &Person { connection: None, place, ..person })
}

/// The player of a connection.
pub fn find(connection: ConnectionId) -> Result<Option<Player>, Refusal> {
    Ok(kv::get(&key(connection))?)
}

/// The entity and the name of a player who has told it.
pub fn named(connection: ConnectionId) -> Result<Option<(entities::Entity, String)>, Refusal> {
    let entity = player_entity(connection)?;
    Ok(find(connection)?.and_then(|player| player.name).map(|name| (entity, name)))
}

/// Takes out everybody who was there when the host stopped or crashed: no connection outlives that, and nobody is left
/// standing who has nobody to move them.
pub fn clear() -> Result<(), Refusal> {
    loop {
        let page = kv::scan(PREFIX, None, PAGE);
        if page.is_empty() {
            break;
        }
        for entry in &page {
            if let Ok(player) = wheelhouse_guest::postcard::from_bytes::<Player>(&entry.value) {
                depart(&player)?;
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
