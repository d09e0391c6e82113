//! Sheep of Meadow: they graze, wander, keep together, and flee from wolves.

use meadow::{ThinkerConfig, kind};
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

/// How many thoughts a sheep grazes at most before it looks for another place.
const LONGEST_MEAL: u32 = 8;

/// A sheep that sees others, but none within so many tiles, goes to the nearest.
const COMPANY_TILES: u32 = 3;

/// A sheep that flees stumbles once in so many thoughts: it is as fast as a wolf, and no wolf would ever eat.
const THOUGHTS_PER_STUMBLE: u32 = 4;

/// What a sheep remembers.
#[derive(Default, Serialize, Deserialize)]
pub struct Sheep {
    /// Thoughts that it goes on grazing where it stands.
    grazing: u8,
}

impl Thinker for Sheep {
    type Config = ThinkerConfig;

    fn think(&mut self, npc: &Npc, seen: &[Sighting], context: &mut Context<ThinkerConfig>) -> Intent {
        // What is seen comes nearest first.
        let mut company = None;
        for sighting in seen {
            match sighting.kind {
                kind::WOLF => {
                    self.grazing = 0;
                    if context.random.once_in(THOUGHTS_PER_STUMBLE) {
                        return npc.stay();
                    }
                    return flee(npc, sighting, context);
                }
                kind::SHEEP if company.is_none() => company = Some(sighting),
                _ => {}
            }
        }
        if self.grazing > 0 {
            self.grazing -= 1;
            return npc.stay();
        }
        self.grazing = context.random.below(LONGEST_MEAL) as u8;
        match company {
            Some(other) if steps_between(npc, other) > COMPANY_TILES => npc.move_to(other.x, other.y),
            _ => stroll(npc, context),
        }
    }
}

/// Away from the wolf. At the border of the field, along it: the longer way to run is the better one.
fn flee(npc: &Npc, wolf: &Sighting, context: &mut Context<ThinkerConfig>) -> Intent {
    let away = |from: i32, to: i32| 2 * (to - from).signum();
    let (mut dx, mut dy) = (away(wolf.x, npc.x), away(wolf.y, npc.y));
    if (dx, dy) == (0, 0) {
        (dx, dy) = (2 * context.random.between(-1, 1), 2);
    }
    let field = context.config.field;
    let (x, y) = field.clamp(npc.x + dx, npc.y + dy);
    if (x, y) != (npc.x, npc.y) {
        return npc.move_to(x, y);
    }
    let middle = field.side() / 2;
    if dx == 0 {
        npc.move_to(npc.x + 2 * away_from_border(npc.x, middle), npc.y)
    } else {
        npc.move_to(npc.x, npc.y + 2 * away_from_border(npc.y, middle))
    }
}

fn away_from_border(place: i32, middle: i32) -> i32 {
    if place < middle { 1 } else { -1 }
}

/// To one of the tiles around.
fn stroll(npc: &Npc, context: &mut Context<ThinkerConfig>) -> Intent {
    let (dx, dy) = (context.random.between(-1, 1), context.random.between(-1, 1));
    let (x, y) = context.config.field.clamp(npc.x + dx, npc.y + dy);
    if (x, y) == (npc.x, npc.y) { npc.stay() } else { npc.move_to(x, y) }
}

fn steps_between(npc: &Npc, other: &Sighting) -> u32 {
    npc.x.abs_diff(other.x).max(npc.y.abs_diff(other.y))
}

wheelhouse_guest::thinker!(Sheep);

#[cfg(test)]
mod tests;
