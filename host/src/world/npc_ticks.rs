//! The clockwork of NPC thinking: a repeating timer for each NPC that is awake, and those that are due in one timer
//! pass grouped by thinker, so that each thinker is called once. The server hands it the timers (its wheel, through
//! [`ThinkTimers`]), tells it what fired and takes the batches; what a think is, it never learns.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::activity::ActivityChange;
use super::entity::{EntityId, ThinkerId};
use super::npc_options::NpcOptions;
use super::state::World;

/// The first think of an NPC that wakes comes after 1 ms to this many, at random: a crowd that wakes at once does not
/// think at once.
const FIRST_THINK_MAX_MS: u64 = 256;

/// Where the timers come from.
pub trait ThinkTimers {
    /// What stops a timer again.
    type Timer: Copy;
    /// Why a timer could not be started.
    type Error: Display;

    /// Starts a repeating timer `npc_think` for `npc`: first after `first`, then every `interval`. Each time it fires,
    /// [`NpcTicks::fired`] is to be called.
    fn start(&mut self, npc: EntityId, first: Duration, interval: Duration) -> Result<Self::Timer, Self::Error>;

    /// Stops it; it fires no more.
    fn stop(&mut self, timer: Self::Timer);
}

/// The NPC part of the host's metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NpcCounts {
    pub total: u64,
    /// Near a player, and thinking.
    pub active: u64,
    pub sleeping: u64,
    /// NPCs handed out to be thought, since the start.
    pub thinks: u64,
    /// Batches handed out, since the start.
    pub batches: u64,
    /// Thinks that failed, and NPCs that found no room for a timer, since the start.
    pub faults: u64,
    /// Intents that came to nothing, since the start: for an NPC that is gone, not of the batch or has had its intent,
    /// and acts that the game does not get to.
    pub ignored: u64,
}

/// NPCs due in this pass that share a thinker.
#[derive(Debug)]
struct Due {
    thinker: ThinkerId,
    npcs: Vec<EntityId>,
}

/// The timers of all NPCs that are awake, and the NPCs that are due.
#[derive(Debug)]
pub struct NpcTicks<Timer> {
    interval: Duration,
    rng: ChaCha8Rng,
    timers: FxHashMap<EntityId, Timer>,
    /// Awake, but there was no room for a timer yet.
    untimed: BTreeSet<EntityId>,
    /// The first `due_thinkers` are in use; the others wait with their allocation.
    due: Vec<Due>,
    due_thinkers: usize,
    thinks: u64,
    batches: u64,
    faults: u64,
}

impl<Timer: Copy> NpcTicks<Timer> {
    /// No NPC is awake yet. The same `seed` gives the same first delays.
    pub fn new(options: &NpcOptions, seed: u64) -> Self {
        Self {
            interval: Duration::from_millis(options.think_interval_ms),
            rng: ChaCha8Rng::seed_from_u64(seed),
            timers: FxHashMap::default(),
            untimed: BTreeSet::new(),
            due: Vec::new(),
            due_thinkers: 0,
            thinks: 0,
            batches: 0,
            faults: 0,
        }
    }

    /// Starts timers for the NPCs that woke in the last commits and stops those of the NPCs that fell asleep. To be
    /// called after commits, at least once in each pass of the loop; with nothing to do it costs nothing.
    pub fn follow(&mut self, world: &mut World, timers: &mut impl ThinkTimers<Timer = Timer>) {
        for change in world.drain_activity() {
            match change {
                ActivityChange::Woke(npc) => self.wake(npc, timers),
                ActivityChange::Slept(npc) => {
                    self.untimed.remove(&npc);
                    if let Some(timer) = self.timers.remove(&npc) {
                        timers.stop(timer);
                    }
                }
            }
        }
        while let Some(npc) = self.untimed.first().copied() {
            match self.start(npc, timers) {
                Ok(()) => self.untimed.remove(&npc),
                Err(_) => break,
            };
        }
    }

    fn wake(&mut self, npc: EntityId, timers: &mut impl ThinkTimers<Timer = Timer>) {
        if let Err(error) = self.start(npc, timers) {
            self.faults += 1;
            if self.untimed.is_empty() {
                tracing::warn!(npc = npc.0, %error, "an NPC has to wait for a timer; raise timers.max_pending");
            }
            self.untimed.insert(npc);
        }
    }

    fn start<T: ThinkTimers<Timer = Timer>>(&mut self, npc: EntityId, timers: &mut T) -> Result<(), T::Error> {
        let first = Duration::from_millis(self.rng.random_range(1..=FIRST_THINK_MAX_MS));
        let timer = timers.start(npc, first, self.interval)?;
        self.timers.insert(npc, timer);
        Ok(())
    }

    /// The timer of `npc` has fired: it is due, in the batch of its thinker.
    pub fn fired(&mut self, world: &World, npc: EntityId) {
        let Some(thinker) = world.entity(npc).and_then(|entity| entity.thinker) else {
            // It was despawned in this very pass; the next `follow` stops its timer.
            return;
        };
        let in_use = &mut self.due[..self.due_thinkers];
        if let Some(due) = in_use.iter_mut().find(|due| due.thinker == thinker) {
            due.npcs.push(npc);
            return;
        }
        match self.due.get_mut(self.due_thinkers) {
            Some(spare) => {
                spare.thinker = thinker;
                spare.npcs.push(npc);
            }
            None => self.due.push(Due { thinker, npcs: vec![npc] }),
        }
        self.due_thinkers += 1;
    }

    /// Moves the NPCs due for one thinker into `npcs`, in the order their timers fired, and answers whose they are;
    /// `None` when nobody is due any more. To be called at the end of each timer pass until then. It trades vectors
    /// with `npcs`, so that a pass allocates nothing.
    pub fn take_batch(&mut self, npcs: &mut Vec<EntityId>) -> Option<ThinkerId> {
        npcs.clear();
        self.due_thinkers = self.due_thinkers.checked_sub(1)?;
        let due = &mut self.due[self.due_thinkers];
        std::mem::swap(&mut due.npcs, npcs);
        self.batches += 1;
        self.thinks += npcs.len() as u64;
        Some(due.thinker)
    }

    /// Counts and logs a think that failed. The NPC stays active and thinks again at its next turn.
    pub fn think_failed(&mut self, npc: EntityId, error: &dyn Display) {
        self.faults += 1;
        tracing::warn!(npc = npc.0, %error, "an NPC's think failed");
    }

    /// The counters now; what became of intents is counted by whoever applies them.
    pub fn counts(&self, world: &World) -> NpcCounts {
        let total = world.npc_count() as u64;
        let active = world.active_npc_count() as u64;
        let Self { thinks, batches, faults, .. } = *self;
        NpcCounts { total, active, sleeping: total - active, thinks, batches, faults, ignored: 0 }
    }
}

#[cfg(test)]
#[path = "npc_ticks_tests.rs"]
mod tests;
