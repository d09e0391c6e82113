//! What NPCs want done, and the doing of it: each intent of a batch is one transaction of its own, in the order the
//! thinker gave them. Moves are done here; acts go back to the caller, who hands them to the game. A thinker is not
//! trusted: it can move an NPC of its batch, once, by a step, and nothing else.

use rustc_hash::FxHashMap;

use super::entity::EntityId;
use super::npc_options::NpcOptions;
use super::position::Position;
use super::sightings::NpcView;
use super::state::World;

/// What kind of thing an NPC wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Stay,
    /// To be at (`x`, `y`) of its map, or as near as one step gets it.
    Move,
    /// Something only the game knows: `target` and `argument` say what.
    Act,
}

/// One NPC's wish for this turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intent {
    pub npc: u64,
    pub action: Action,
    pub x: i32,
    pub y: i32,
    pub target: u64,
    pub argument: u32,
}

/// What became of an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was to be done.
    Stayed,
    /// The NPC has moved there.
    Moved(Position),
    /// The game is to be told: the caller's part.
    Act,
    /// The NPC is gone, not part of the batch, or has had its intent; counted.
    Ignored,
}

/// Applies the intents of one batch after another.
#[derive(Debug)]
pub struct Intents {
    max_step: i64,
    /// The NPCs of this batch, and whether their intent is still to come.
    expected: Vec<(u64, bool)>,
    /// Where in `expected` the next intent will be, if the thinker answers in the order it was asked.
    next: usize,
    /// The index of each NPC in `expected`; filled only for a batch that is answered in another order.
    by_id: FxHashMap<u64, u32>,
    ignored: u64,
}

impl Intents {
    pub fn new(options: &NpcOptions) -> Self {
        Self {
            max_step: i64::from(options.max_step),
            expected: Vec::new(),
            next: 0,
            by_id: FxHashMap::default(),
            ignored: 0,
        }
    }

    /// Intents ignored since the start.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Begins a batch: the NPCs that were thought, each of which may have one intent.
    pub fn expect(&mut self, batch: &[NpcView]) {
        self.expected.clear();
        self.expected.extend(batch.iter().map(|npc| (npc.id, true)));
        self.next = 0;
        self.by_id.clear();
    }

    /// Applies one intent of the batch, as one transaction.
    pub fn apply(&mut self, world: &mut World, intent: &Intent) -> Outcome {
        let npc = EntityId(intent.npc);
        let position = world.entity(npc).map(|entity| entity.position);
        let (Some(position), true) = (position, self.admit(intent.npc)) else {
            self.ignored += 1;
            return Outcome::Ignored;
        };
        match intent.action {
            Action::Stay => Outcome::Stayed,
            Action::Act => Outcome::Act,
            Action::Move => self.step(world, npc, position, intent),
        }
    }

    fn step(&mut self, world: &mut World, npc: EntityId, position: Position, intent: &Intent) -> Outcome {
        let to = towards(position, (intent.x, intent.y), self.max_step);
        if to == position {
            return Outcome::Stayed;
        }
        match world.transact(|world| world.move_to(npc, to)) {
            Ok(()) => Outcome::Moved(to),
            Err(_) => {
                self.ignored += 1;
                Outcome::Ignored
            }
        }
    }

    /// Whether this NPC's intent is expected; it is not again.
    fn admit(&mut self, npc: u64) -> bool {
        let at = match self.expected.get(self.next) {
            Some((expected, _)) if *expected == npc => self.next,
            _ => match self.find(npc) {
                Some(at) => at,
                None => return false,
            },
        };
        self.next = at + 1;
        std::mem::replace(&mut self.expected[at].1, false)
    }

    fn find(&mut self, npc: u64) -> Option<usize> {
        if self.by_id.is_empty() {
            self.by_id.extend(self.expected.iter().enumerate().map(|(at, (id, _))| (*id, at as u32)));
        }
        self.by_id.get(&npc).map(|at| *at as usize)
    }
}

/// The tile at most `max_step` from `from` on the straight line to `goal`; a step may be diagonal.
fn towards(from: Position, goal: (i32, i32), max_step: i64) -> Position {
    let dx = i64::from(goal.0) - i64::from(from.x);
    let dy = i64::from(goal.1) - i64::from(from.y);
    let distance = dx.abs().max(dy.abs());
    if distance <= max_step {
        return Position { x: goal.0, y: goal.1, ..from };
    }
    // Between `from` and `goal`, so the sums fit where both did.
    let part = |difference: i64| rounded_division(difference * max_step, distance) as i32;
    Position { x: from.x + part(dx), y: from.y + part(dy), ..from }
}

/// Division to the nearest integer, halves away from zero; `divisor` is positive.
fn rounded_division(dividend: i64, divisor: i64) -> i64 {
    (dividend + dividend.signum() * (divisor / 2)) / divisor
}

#[cfg(test)]
#[path = "intents_tests.rs"]
mod tests;
