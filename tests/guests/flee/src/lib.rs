//! A thinker that runs from whom it sees and keeps to its own, as plainly as can be: it is what the benchmark of thinking
//! calls, beside the same decision in native Rust and in Lua.

mod flee;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

/// It remembers nothing.
#[derive(Serialize, Deserialize)]
struct Flee;

impl BatchThinker for Flee {
    type Config = ();

    fn init(_config: (), _occasion: Occasion) -> Result<Self, Refusal> {
        Ok(Self)
    }

    fn think(&mut self, _now: Duration, batch: Batch<'_>, intents: &mut Vec<Intent>) {
        for (npc, seen) in batch.iter() {
            let seen = seen.iter().map(|seen| (seen.kind, seen.x, seen.y));
            let (x, y) = flee::decide(npc.x, npc.y, seen);
            intents.push(npc.move_to(x, y));
        }
    }
}

wheelhouse_guest::batch_thinker!(Flee);
