//! Who is awake: an NPC is, while its sector is among the 5×5 around some player's. Each sector counts the players it
//! is near; a commit moves those counts for the players that came, went or crossed a border, and only a count that
//! starts or ends at zero touches the NPCs of its sector. Nothing here keeps timers: it tells who woke and who fell
//! asleep, and [`NpcTicks`](super::NpcTicks) does the rest.

use rustc_hash::FxHashMap;

use super::entity::{EntityId, Settled};
use super::position::SectorAddress;
use super::sectors::NPC;
use super::state::World;
use super::undo::Undo;

/// What a commit has decided about an NPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivityChange {
    /// It has become active: a player is near.
    Woke(EntityId),
    /// It is active no longer: no player is near, or it is no NPC any more, or gone.
    Slept(EntityId),
}

/// The settled state of the last commit, beyond what each record holds.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// For each player, the sector whose surroundings it covers.
    pub covers: FxHashMap<EntityId, SectorAddress>,
    pub npcs: usize,
    pub awake: usize,
    /// Sectors whose cover this commit has touched.
    touched: Vec<u32>,
    changes: Vec<ActivityChange>,
}

impl World {
    /// Who woke and who fell asleep since the last call, in the order it was decided.
    pub fn drain_activity(&mut self) -> std::vec::Drain<'_, ActivityChange> {
        self.activity.changes.drain(..)
    }

    /// NPCs in the world, as of the last commit.
    pub fn npc_count(&self) -> usize {
        self.activity.npcs
    }

    /// NPCs that are near a player, as of the last commit.
    pub fn active_npc_count(&self) -> usize {
        self.activity.awake
    }

    /// Whether this NPC was near a player at the last commit.
    pub fn is_active(&self, npc: EntityId) -> bool {
        self.entities.slot(npc).is_some_and(|slot| self.entities.record(slot).settled.awake)
    }

    /// Settles what a transaction has changed: first the covers of all its players, then the sectors whose cover
    /// began or ended, then the NPCs it touched. Covers come first, so that an NPC is judged once, by the final state,
    /// whatever the order of the changes. Every step compares the present with what was settled, so that an entity
    /// may appear in the log many times.
    pub(super) fn settle(&mut self, entries: &[Undo]) {
        for undo in entries {
            match undo {
                Undo::Spawned { slot } | Undo::Moved { slot, .. } | Undo::Connection { slot, .. } => {
                    self.settle_cover(*slot);
                }
                Undo::Despawned(despawned) if despawned.record.settled.covering => {
                    self.uncover(despawned.record.entity.id);
                }
                Undo::Despawned(_) | Undo::Thinker { .. } | Undo::Data { .. } | Undo::Kv { .. } => {}
            }
        }
        if !self.activity.touched.is_empty() {
            self.settle_touched_sectors();
        }
        for undo in entries {
            match undo {
                Undo::Spawned { slot } | Undo::Moved { slot, .. } | Undo::Thinker { slot, .. } => {
                    self.settle_npc(*slot);
                }
                Undo::Despawned(despawned) => {
                    self.forget_npc(despawned.record.entity.id, despawned.record.settled);
                }
                Undo::Connection { .. } | Undo::Data { .. } | Undo::Kv { .. } => {}
            }
        }
    }

    fn settle_cover(&mut self, slot: u32) {
        let record = self.entities.record(slot);
        let entity = record.entity;
        let is_player = entity.connection.is_some();
        let was_covering = record.settled.covering;
        if !is_player && !was_covering {
            return;
        }
        self.entities.record_mut(slot).settled.covering = is_player;
        if !is_player {
            self.uncover(entity.id);
            return;
        }
        let now = entity.position.sector();
        match self.activity.covers.insert(entity.id, now) {
            Some(before) if before == now => {}
            Some(before) => {
                now.surroundings()
                    .filter(|sector| !before.is_near(*sector))
                    .for_each(|sector| self.cover(sector, true));
                before
                    .surroundings()
                    .filter(|sector| !now.is_near(*sector))
                    .for_each(|sector| self.cover(sector, false));
            }
            None => now.surroundings().for_each(|sector| self.cover(sector, true)),
        }
    }

    fn uncover(&mut self, player: EntityId) {
        if let Some(before) = self.activity.covers.remove(&player) {
            before.surroundings().for_each(|sector| self.cover(sector, false));
        }
    }

    /// One player more, or one fewer, near `address`.
    fn cover(&mut self, address: SectorAddress, more: bool) {
        let index = self.grid.find_or_add(address);
        let sector = self.grid.sector_mut(index);
        if sector.covered_before.is_none() {
            sector.covered_before = Some(sector.is_covered());
            self.activity.touched.push(index);
        }
        if more {
            sector.cover += 1;
        } else {
            sector.cover -= 1;
        }
    }

    fn settle_touched_sectors(&mut self) {
        let mut touched = std::mem::take(&mut self.activity.touched);
        for index in touched.drain(..) {
            let sector = self.grid.sector_mut(index);
            let is_covered = sector.is_covered();
            if sector.covered_before.take() != Some(is_covered) {
                for at in 0..sector.occupants.len() {
                    let sector = self.grid.sector(index);
                    if sector.occupants[at].flags & NPC != 0 {
                        let slot = sector.slots[at];
                        self.settle_npc(slot);
                    }
                }
            }
            self.grid.release_if_unused(index);
        }
        self.activity.touched = touched;
    }

    fn settle_npc(&mut self, slot: u32) {
        if self.entities.is_vacant(slot) {
            // Despawned later in the same transaction.
            return;
        }
        let record = self.entities.record_mut(slot);
        let id = record.entity.id;
        let npc = record.entity.thinker.is_some();
        let before = record.settled;
        let awake = npc && self.grid.sector(record.place.sector).is_covered();
        if before.npc == npc && before.awake == awake {
            return;
        }
        record.settled.npc = npc;
        record.settled.awake = awake;
        self.count_npc(id, before, record_settled(npc, awake));
    }

    fn forget_npc(&mut self, id: EntityId, before: Settled) {
        self.count_npc(id, before, record_settled(false, false));
    }

    fn count_npc(&mut self, id: EntityId, before: Settled, now: Settled) {
        let activity = &mut self.activity;
        activity.npcs = activity.npcs + usize::from(now.npc) - usize::from(before.npc);
        activity.awake = activity.awake + usize::from(now.awake) - usize::from(before.awake);
        match (before.awake, now.awake) {
            (false, true) => activity.changes.push(ActivityChange::Woke(id)),
            (true, false) => activity.changes.push(ActivityChange::Slept(id)),
            _ => {}
        }
    }
}

fn record_settled(npc: bool, awake: bool) -> Settled {
    Settled { npc, awake, covering: false }
}

#[cfg(test)]
#[path = "activity_tests.rs"]
mod tests;
