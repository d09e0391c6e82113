//! One call of a thinker: what a batch of NPCs sees, gathered from the world and handed over as it lies. This runs more
//! often than anything else in the host, so its lists are kept for the next batch.

use std::time::Duration;

use super::bulk::copied;
use super::contract::sim::thinking::Intent;
use super::failure::CallError;
use super::instance::StageSlot;
use super::resident::Resident;
use super::{InstanceState, ThinkerPre};
use crate::world::{EntityId, NpcView, Sight, Sighting, World};

/// The lists of a batch.
#[derive(Default)]
pub struct ThinkBatch {
    views: Vec<NpcView>,
    seen: Vec<Sighting>,
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
    pub fn seen(&self) -> &[Sighting] {
        &self.seen
    }

    /// Has a thinker decide for all of them.
    pub fn think(
        &self,
        thinker: &mut Resident<ThinkerPre<InstanceState>>,
        slot: &mut StageSlot,
        now: Duration,
    ) -> Result<Vec<Intent>, CallError> {
        let now_ns = now.as_nanos() as u64;
        thinker.call(slot, "think", |instance, mut store| {
            let think = instance.think.typed::<(u64, _, _), (Vec<Intent>,)>(&store)?;
            let (intents,) = think.call(&mut store, (now_ns, copied(&self.views), copied(&self.seen)))?;
            Ok(Ok(intents))
        })
    }
}
