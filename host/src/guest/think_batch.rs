//! One call of a thinker: what a batch of NPCs sees, gathered from the world and handed over as the contract's records.
//! This runs more often than anything else in the host, so all lists are kept for the next batch.

use std::time::Duration;

use super::contract::sim::thinking::{Intent, Npc, Sighting, Traits};
use super::failure::CallError;
use super::instance::StageSlot;
use super::resident::Resident;
use super::{InstanceState, ThinkerPre};
use crate::world::{self, EntityId, NpcView, SEEN_PLAYER, Sight, World};

/// The lists of a batch.
#[derive(Default)]
pub struct ThinkBatch {
    views: Vec<NpcView>,
    seen: Vec<world::Sighting>,
    npcs_sent: Vec<Npc>,
    seen_sent: Vec<Sighting>,
}

impl ThinkBatch {
    /// Looks around for these NPCs. Those that are gone are left out.
    pub fn gather(&mut self, sight: &mut Sight, world: &World, npcs: &[EntityId]) {
        sight.gather(world, npcs, &mut self.views, &mut self.seen);
    }

    /// The NPCs of the batch.
    pub fn views(&self) -> &[NpcView] {
        &self.views
    }

    /// What they see, each its range.
    pub fn seen(&self) -> &[world::Sighting] {
        &self.seen
    }

    /// Has a thinker decide for all of them.
    pub fn think(
        &mut self,
        thinker: &mut Resident<ThinkerPre<InstanceState>>,
        slot: &mut StageSlot,
        now: Duration,
    ) -> Result<Vec<Intent>, CallError> {
        self.npcs_sent.clear();
        self.npcs_sent.extend(self.views.iter().map(npc_sent));
        self.seen_sent.clear();
        self.seen_sent.extend(self.seen.iter().map(sighting_sent));
        let (npcs, seen, now_ns) = (&self.npcs_sent, &self.seen_sent, now.as_nanos() as u64);
        thinker.call(slot, "think", |bindings, store| bindings.call_think(store, now_ns, npcs, seen).map(Ok))
    }
}

fn npc_sent(view: &NpcView) -> Npc {
    let NpcView { id, kind, map, x, y, seen_first, seen_count } = *view;
    Npc { id, kind, map, x, y, seen_first, seen_count }
}

fn sighting_sent(seen: &world::Sighting) -> Sighting {
    let world::Sighting { id, kind, x, y, flags } = *seen;
    let traits = if flags & SEEN_PLAYER == 0 { Traits::empty() } else { Traits::PLAYER };
    Sighting { id, kind, x, y, traits }
}
