//! Wolves of Meadow: they roam, hunt the nearest sheep, and bite it when they reach it.

use meadow::{BITE, ThinkerConfig, kind};
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;
use wheelhouse_guest::state;

/// Thoughts between two bites. A bite is the rules' work and dearer than a thought: they must stay rare.
const REST_AFTER_BITE: u8 = 8;

/// How far ahead a roaming wolf heads, in tiles.
const ROAM_TILES: i32 = 12;

/// A roaming wolf changes its direction once in so many thoughts.
const THOUGHTS_PER_TURN: u32 = 16;

/// What a wolf remembers.
#[derive(Default, Serialize, Deserialize)]
pub struct Wolf {
    /// Thoughts until it may bite again.
    rest: u8,
    /// The direction in which it roams.
    heading: (i8, i8),
}

/// What a wolf remembered in version 1, when it did not keep a direction.
#[derive(Deserialize)]
struct FirstWolf {
    rest: u8,
}

impl From<FirstWolf> for Wolf {
    fn from(first: FirstWolf) -> Self {
        // It takes a direction with its next thought.
        Wolf { rest: first.rest, heading: (0, 0) }
    }
}

impl Thinker for Wolf {
    type Config = ThinkerConfig;

    const STATE_VERSION: u32 = 2;

    fn migrate(version: u32, saved: &mut &[u8]) -> Result<Self, Refusal> {
        match version {
            1 => Ok(state::take::<FirstWolf>(saved)?.into()),
            _ => refuse!("wolves of version {version} are newer than these"),
        }
    }

    fn think(&mut self, npc: &Npc, seen: &[Sighting], context: &mut Context<ThinkerConfig>) -> Intent {
        self.rest = self.rest.saturating_sub(1);
        // What is seen comes nearest first.
        let Some(sheep) = seen.iter().find(|sighting| sighting.kind == kind::SHEEP) else {
            return self.roam(npc, context);
        };
        if npc.x.abs_diff(sheep.x).max(npc.y.abs_diff(sheep.y)) > 1 {
            let (x, y) = context.config.field.clamp(sheep.x, sheep.y);
            return npc.move_to(x, y);
        }
        if self.rest > 0 {
            return npc.stay();
        }
        self.rest = REST_AFTER_BITE;
        npc.act(sheep.id, BITE)
    }
}

impl Wolf {
    /// On in the same direction for a while; at the border of the field, and now and then, in another.
    fn roam(&mut self, npc: &Npc, context: &mut Context<ThinkerConfig>) -> Intent {
        if self.heading == (0, 0) || context.random.once_in(THOUGHTS_PER_TURN) {
            self.turn(context);
        }
        let (dx, dy) = (i32::from(self.heading.0), i32::from(self.heading.1));
        let (x, y) = context.config.field.clamp(npc.x + ROAM_TILES * dx, npc.y + ROAM_TILES * dy);
        if (x, y) == (npc.x, npc.y) {
            self.turn(context);
            return npc.stay();
        }
        npc.move_to(x, y)
    }

    fn turn(&mut self, context: &mut Context<ThinkerConfig>) {
        let mut step = || context.random.between(-1, 1) as i8;
        self.heading = (step(), step());
    }
}

wheelhouse_guest::thinker!(Wolf);

#[cfg(test)]
mod tests;
