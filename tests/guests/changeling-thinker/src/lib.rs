//! A thinker whose NPCs count their thoughts, and say every sixteenth time how many there were: whoever hears it knows
//! whether one has lost its memory.

use changeling::{Mark, Marked};
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

/// Between two things that an NPC says it thinks so often.
const THINKS_PER_ACT: u32 = 16;

/// What an NPC remembers besides, so that ten thousand have some hundred KiB.
type Ballast = [u8; 32];

#[derive(Default, Serialize, Deserialize)]
struct Mind {
    thoughts: u32,
    ballast: Ballast,
    marked: Marked,
}

impl Thinker for Mind {
    type Config = ();

    fn think(&mut self, npc: &Npc, _seen: &[Sighting], _context: &mut Context<()>) -> Intent {
        Mark::read().count();
        self.thoughts += 1;
        if self.thoughts.is_multiple_of(THINKS_PER_ACT) { npc.act(0, self.thoughts) } else { npc.stay() }
    }
}

wheelhouse_guest::thinker!(Mind);
