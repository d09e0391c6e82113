//! Hurting and dying. Health is data of the entity; who was never hurt has none and is in full health.

use meadow::{BITE, kind};
use wheelhouse_guest::prelude::*;

use crate::config::Config;
use crate::{answer, players, population};

const HEALTH: &str = "health";

/// What a player's blow and a wolf's bite cost.
const BLOW_DAMAGE: u32 = 2;
const BITE_DAMAGE: u32 = 1;

/// How healthy a kind can be.
fn full_health(kind: u32) -> u32 {
    match kind {
        kind::PLAYER => 20,
        kind::WOLF => 8,
        _ => 5,
    }
}

/// A player strikes at somebody.
pub fn attack(config: &Config, connection: ConnectionId, target: EntityId) -> Result<(), Refusal> {
    let Some(player) = players::find(connection)? else { refuse!("connection {connection} has no player") };
    if target == player.entity {
        return answer(connection, "one does not attack oneself");
    }
    let Some(target) = reach(player.entity, target) else {
        return answer(connection, "there is nobody of that id beside you");
    };
    match hurt(config, &target, BLOW_DAMAGE, player.entity)? {
        0 => answer(connection, format!("killed {}", target.id)),
        health => answer(connection, format!("hit {}, health {health}", target.id)),
    }
}

/// A wolf bites, if its victim is still beside it.
pub fn act(config: &Config, intent: &Intent) -> Result<(), Refusal> {
    if intent.argument != BITE {
        return Ok(());
    }
    match reach(intent.npc, intent.target) {
        Some(target) => hurt(config, &target, BITE_DAMAGE, intent.npc).map(drop),
        None => Ok(()),
    }
}

/// The target, if it exists and is on a neighbouring tile or the same.
fn reach(from: EntityId, target: EntityId) -> Option<entities::Entity> {
    let (from, target) = (entities::find(from)?, entities::find(target)?);
    (from.position.distance(&target.position)? <= 1).then_some(target)
}

/// Takes health, and returns what is left. Who has none left dies.
fn hurt(config: &Config, target: &entities::Entity, damage: u32, by: EntityId) -> Result<u32, Refusal> {
    let health = entities::get(target.id, HEALTH)?.unwrap_or_else(|| full_health(target.kind));
    let left = health.saturating_sub(damage);
    match (left, target.connection) {
        (0, Some(connection)) => go_home(config, target, connection)?,
        (0, None) => {
            entities::despawn(target.id)?;
            population::died(target.kind)?;
        }
        (_, connection) => {
            entities::set(target.id, HEALTH, &left)?;
            if let Some(connection) = connection {
                answer(connection, format!("{by} hits you, health {left}"))?;
            }
        }
    }
    Ok(left)
}

/// A player who dies begins again at home.
fn go_home(config: &Config, target: &entities::Entity, connection: ConnectionId) -> Result<(), Refusal> {
    let Some(player) = players::find(connection)? else { refuse!("connection {connection} has no player") };
    let home = player.home(config);
    entities::move_to(target.id, home)?;
    entities::remove_data(target.id, HEALTH)?;
    answer(connection, format!("you died, at {} {}", home.x, home.y))
}
