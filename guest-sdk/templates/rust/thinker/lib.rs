//! NPCs that pace to and fro, and run from players.

use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

/// What one NPC remembers. It is carried to new code when that is swapped in.
#[derive(Default, Serialize, Deserialize)]
struct Pacer {
    thoughts: u32,
}

impl Thinker for Pacer {
    type Config = ();

    fn think(&mut self, npc: &Npc, seen: &[Sighting], _context: &mut Context<()>) -> Intent {
        self.thoughts += 1;
        match seen.iter().find(|sighting| sighting.is_player()) {
            Some(player) => npc.move_to(npc.x + (npc.x - player.x).signum(), npc.y + (npc.y - player.y).signum()),
            None => npc.move_to(npc.x + if self.thoughts % 2 == 0 { 1 } else { -1 }, npc.y),
        }
    }
}

wheelhouse_guest::thinker!(Pacer);

#[cfg(test)]
mod tests {
    use wheelhouse_guest::random::Random;

    use super::*;

    fn decided(thoughts: u32, seen: &[Sighting]) -> (i32, i32) {
        let npc = Npc { id: 1, kind: 2, map: 0, x: 5, y: 5, seen_first: 0, seen_count: seen.len() as u32 };
        let (config, now, random, occasion) = ((), std::time::Duration::ZERO, Random::seeded(1), Occasion::First);
        let mut context = Context { config, now, random, occasion };
        let intent = Pacer { thoughts }.think(&npc, seen, &mut context);
        (intent.x, intent.y)
    }

    #[test]
    fn an_npc_that_sees_nobody_paces_to_and_fro() {
        assert_eq!([decided(1, &[]), decided(2, &[])], [(6, 5), (4, 5)]);
    }

    #[test]
    fn an_npc_runs_from_players() {
        let player = Sighting { id: 7, kind: 1, x: 5, y: 7, traits: Traits::PLAYER };
        assert_eq!(decided(1, &[player]), (5, 4));
    }
}
