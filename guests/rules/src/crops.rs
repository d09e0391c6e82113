//! Crops: a player plants one, events let it ripen stage by stage, and whoever comes by harvests it. A crop is an entity,
//! its stage and who planted it are its data; so it stands there after a restart, and has grown meanwhile.

use std::time::Duration;

use meadow::kind;
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

use crate::config::Config;
use crate::{answer, persons, players};

/// The kind of the event that brings a crop to its next stage.
pub const RIPEN: &str = "ripen";

const CROP: &str = "crop";

/// The stages, and what a player is told of each. The last one can be harvested.
const STAGES: [&str; 3] = ["seed", "sprout", "ripe"];

/// Among how many entities it is looked for a crop, the nearest first.
const MAX_NEAR: u32 = 64;

/// What is kept of a crop.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Crop {
    stage: u8,
    sower: String,
}

impl Crop {
    fn stage(&self) -> &'static str {
        STAGES[usize::from(self.stage).min(STAGES.len() - 1)]
    }

    fn is_ripe(&self) -> bool {
        usize::from(self.stage) + 1 >= STAGES.len()
    }
}

/// Plants a crop where the player stands.
pub fn plant(config: &Config, connection: ConnectionId) -> Result<(), Refusal> {
    let Some((player, name)) = players::named(connection)? else {
        return answer(connection, players::NAMELESS);
    };
    if near(player.position, 0)?.next().is_some() {
        return answer(connection, "something grows here already");
    }
    let crop = entities::spawn(kind::CROP, player.position, None)?;
    entities::set(crop, CROP, &Crop { stage: 0, sower: name })?;
    events::after(RIPEN, config.ripen(), &events::payload(&crop)?)?;
    answer(connection, format!("planted {crop}"))
}

/// Brings a crop to its next stage, and has the event for the one after that come.
pub fn ripen(config: &Config, event: &DueEvent) -> Result<(), Refusal> {
    let id: EntityId = event.read()?;
    // One that was trampled down needs no event any more.
    let Some(mut crop) = find(id)? else { return Ok(()) };
    crop.stage += 1;
    entities::set(id, CROP, &crop)?;
    if crop.is_ripe() {
        return persons::tell(&crop.sower, &format!("your crop {id} is ripe"));
    }
    // Counted from when this one was due, not from now: crops grow while the host is down.
    events::at(RIPEN, Duration::from_millis(event.id.due_ms) + config.ripen(), &event.payload)?;
    Ok(())
}

/// Harvests the nearest ripe crop within reach.
pub fn harvest(connection: ConnectionId) -> Result<(), Refusal> {
    let Some((player, name)) = players::named(connection)? else {
        return answer(connection, players::NAMELESS);
    };
    let (Some(mut person), Some((ripe, _))) =
        (persons::find(&name)?, near(player.position, 1)?.find(|(_, crop)| crop.is_ripe()))
    else {
        return answer(connection, "nothing is ripe here");
    };
    entities::despawn(ripe)?;
    person.harvest += 1;
    persons::keep(&name, &person)?;
    answer(connection, format!("harvested {ripe}, harvest {}", person.harvest))
}

/// What a player who looks is told of a crop.
pub fn stage(id: EntityId) -> Result<&'static str, Refusal> {
    Ok(find(id)?.map_or("withered", |crop| crop.stage()))
}

fn find(id: EntityId) -> Result<Option<Crop>, Refusal> {
    if entities::find(id).is_none() {
        return Ok(None);
    }
    Ok(entities::get(id, CROP)?)
}

/// The crops at most so many steps away, the nearest first.
fn near(place: Position, steps: u32) -> Result<impl Iterator<Item = (EntityId, Crop)>, Refusal> {
    let mut crops = Vec::new();
    // The corner of a square is farther than its side.
    for entity in entities::within(place, 2 * steps, MAX_NEAR) {
        if entity.kind == kind::CROP && entity.position.distance(&place) <= Some(steps) {
            crops.extend(find(entity.id)?.map(|crop| (entity.id, crop)));
        }
    }
    Ok(crops.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crop_is_ripe_at_its_last_stage() {
        let stages: Vec<_> = (0..4).map(|stage| Crop { stage, sower: "Ann".into() }).collect();
        assert_eq!(stages.iter().map(Crop::stage).collect::<Vec<_>>(), ["seed", "sprout", "ripe", "ripe"]);
        assert_eq!(stages.iter().map(Crop::is_ripe).collect::<Vec<_>>(), [false, false, true, true]);
    }
}
