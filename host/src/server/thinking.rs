//! The thinking of NPCs: those due in one timer pass, gathered, thought in one call for each thinker, and their intents
//! applied. A batch that fails is thought again NPC by NPC, one failure a turn, so that a bad NPC costs itself and the
//! loop no more than one deadline at a time; an NPC that fails alone then thinks seldom, so that it does not wear its
//! thinker out. What NPCs want the game to decide is handed to it in order, within a budget.

use std::collections::VecDeque;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use super::committing::Disk;
use super::simulation::{Cx, HostSimulation, Timer};
use crate::guest::contract::sim::thinking::{Action, Intent};
use crate::guest::{CallError, GuestId, ThinkBatch};
use crate::sim::{NameId, TimerError, TimerId, TimerWheel};
use crate::world::{
    self, EntityId, Intents, NpcCounts, NpcOptions, NpcTicks, Outcome, Sight, ThinkTimers, ThinkerId, World,
};

/// How long an NPC that failed alone rests before it is tried again; it doubles each time.
const FIRST_REST: Duration = Duration::from_secs(8);
/// The longest rest.
const LONGEST_REST: Duration = Duration::from_secs(512);

/// Time for the game's decisions about intents, looked at between two of them.
const ACTS_BUDGET: Duration = Duration::from_millis(5);

/// Acts that wait for the game. A game that does not keep up with its NPCs hears of no more until it has caught up.
const MAX_ACTS: usize = 65_536;

/// Time for NPCs that are thought alone, looked at between two of them.
const ALONE_BUDGET: Duration = Duration::from_millis(2);

/// The state of thinking, and what its batches are built in.
pub struct Thinking {
    ticks: NpcTicks<TimerId>,
    sight: Sight,
    intents: Intents,
    due: Vec<EntityId>,
    batch: ThinkBatch,
    /// What NPCs want the game to decide, oldest first.
    acts: VecDeque<Intent>,
    /// Acts for which there was no room.
    lost_acts: u64,
    /// NPCs to be thought alone, and by whom; each once, however often it comes due meanwhile.
    alone: VecDeque<(ThinkerId, EntityId)>,
    waits_alone: FxHashSet<EntityId>,
    /// NPCs that failed alone.
    resting: FxHashMap<EntityId, Rest>,
}

#[derive(Clone, Copy, Debug)]
struct Rest {
    until: Duration,
    length: Duration,
}

/// The wheel, as the NPC ticks use it.
pub(super) struct ThinkWheel<'a> {
    pub now: Duration,
    pub name: NameId,
    pub timers: &'a mut TimerWheel<Timer>,
}

impl ThinkTimers for ThinkWheel<'_> {
    type Timer = TimerId;
    type Error = TimerError;

    fn start(&mut self, npc: EntityId, first: Duration, interval: Duration) -> Result<TimerId, TimerError> {
        self.timers.register(self.now, self.name, interval, Some(first), true, Timer::Think(npc))
    }

    fn stop(&mut self, timer: TimerId) {
        self.timers.unregister(timer);
    }
}

impl Thinking {
    pub fn new(options: &NpcOptions, seed: u64) -> Self {
        Self {
            ticks: NpcTicks::new(options, seed),
            sight: Sight::new(options),
            intents: Intents::new(options),
            due: Vec::new(),
            batch: ThinkBatch::default(),
            acts: VecDeque::new(),
            lost_acts: 0,
            alone: VecDeque::new(),
            waits_alone: FxHashSet::default(),
            resting: FxHashMap::default(),
        }
    }

    /// The timer of an NPC has fired.
    pub fn due(&mut self, world: &World, npc: EntityId) {
        self.ticks.fired(world, npc);
    }

    /// Starts and stops timers after commits.
    pub(super) fn follow(&mut self, world: &mut World, wheel: &mut ThinkWheel<'_>) {
        self.ticks.follow(world, wheel);
    }

    /// The NPC part of the metrics.
    pub fn counts(&self, world: &World) -> NpcCounts {
        NpcCounts { ignored: self.intents.ignored() + self.lost_acts, ..self.ticks.counts(world) }
    }

    /// Keeps an act for the game.
    fn want(&mut self, act: Intent) {
        if self.acts.len() < MAX_ACTS {
            self.acts.push_back(act);
            return;
        }
        self.lost_acts += 1;
        if self.lost_acts.is_power_of_two() {
            tracing::warn!(
                lost = self.lost_acts,
                "acts of NPCs are lost: {MAX_ACTS} wait for the game; make its on-intent quicker, or have NPCs act less"
            );
        }
    }

    /// Takes NPCs that have failed alone out of the batch: they rest, or are thought alone again.
    fn set_resting_apart(&mut self, thinker: ThinkerId, now: Duration) {
        if self.resting.is_empty() {
            return;
        }
        self.due.retain(|npc| match self.resting.get(npc) {
            None => true,
            Some(rest) if rest.until <= now => {
                if self.waits_alone.insert(*npc) {
                    self.alone.push_back((thinker, *npc));
                }
                false
            }
            Some(_) => false,
        });
    }

    /// Those who are due are to be thought alone.
    fn due_alone(&mut self, thinker: ThinkerId) {
        let new = self.due.iter().filter(|npc| self.waits_alone.insert(**npc));
        self.alone.extend(new.map(|npc| (thinker, *npc)));
    }

    fn failed_alone(&mut self, npc: EntityId, now: Duration, error: &CallError) {
        self.ticks.think_failed(npc, error);
        let length = self.resting.get(&npc).map_or(FIRST_REST, |rest| (rest.length * 2).min(LONGEST_REST));
        self.resting.insert(npc, Rest { until: now + length, length });
    }
}

impl HostSimulation {
    /// Thinks everybody who is due.
    pub(super) fn think(&mut self, cx: &mut Cx<'_>) {
        let now = cx.clock.now();
        while let Some(thinker) = self.thinking.ticks.take_batch(&mut self.thinking.due) {
            self.thinking.set_resting_apart(thinker, now);
            if self.thinking.alone.iter().any(|(of, _)| *of == thinker) {
                // Its last batch failed and has yet to be thought alone: another one would only fail too.
                self.thinking.due_alone(thinker);
                continue;
            }
            match self.think_due(thinker, cx) {
                Ok(()) | Err(CallError::NotRunning) => {}
                Err(_) => self.thinking.due_alone(thinker),
            }
        }
    }

    /// Thinks those who have to be thought alone, until one fails or the time is up.
    pub(super) fn think_alone(&mut self, cx: &mut Cx<'_>) {
        if self.thinking.alone.is_empty() {
            return;
        }
        let until = cx.clock.now() + ALONE_BUDGET;
        while !self.spent
            && let Some((thinker, npc)) = self.thinking.alone.pop_front()
        {
            self.thinking.waits_alone.remove(&npc);
            self.thinking.due.clear();
            self.thinking.due.push(npc);
            match self.think_due(thinker, cx) {
                Ok(()) => {
                    self.thinking.resting.remove(&npc);
                }
                Err(CallError::NotRunning) => {}
                Err(error) => {
                    self.thinking.failed_alone(npc, cx.clock.now(), &error);
                    break;
                }
            }
            if cx.clock.now() >= until {
                break;
            }
        }
        if !self.thinking.alone.is_empty() {
            self.go_on(cx);
        }
    }

    /// One call for the NPCs in `due`, and what they want done.
    fn think_due(&mut self, thinker: ThinkerId, cx: &mut Cx<'_>) -> Result<(), CallError> {
        if self.thinking.due.is_empty() {
            return Ok(());
        }
        let Some(guest) = self.guests.thinkers.get_mut(&thinker).filter(|guest| guest.is_running()) else {
            return Err(CallError::NotRunning);
        };
        let stage = self.stage.as_deref().expect("no call has the stage between two batches");
        let Thinking { batch, sight, due, .. } = &mut self.thinking;
        batch.gather(sight, &stage.world, due);
        if batch.views().is_empty() {
            return Ok(());
        }
        match batch.think(guest, &mut self.stage, cx.clock.now()) {
            Ok(intents) => {
                if let Some(returned) = guest.take_returned() {
                    self.swaps.tell_of_return(GuestId(thinker.0), returned);
                }
                self.apply(&intents, cx);
                Ok(())
            }
            Err(error) => {
                self.spent = true;
                self.look_after(GuestId(thinker.0), cx);
                Err(error)
            }
        }
    }

    fn apply(&mut self, intents: &[Intent], cx: &mut Cx<'_>) {
        self.thinking.intents.expect(self.thinking.batch.views());
        for intent in intents {
            let wanted = world::Intent {
                npc: intent.npc,
                action: match intent.action {
                    Action::Stay => world::Action::Stay,
                    Action::Move => world::Action::Move,
                    Action::Act => world::Action::Act,
                },
                x: intent.x,
                y: intent.y,
                target: intent.target,
                argument: intent.argument,
            };
            let stage = self.stage.as_deref_mut().expect("no call has the stage between two intents");
            if self.thinking.intents.apply(&mut stage.world, &wanted) == Outcome::Act {
                self.thinking.want(*intent);
            }
        }
        self.follow_activity(cx);
    }

    /// Hands acts to the game until the time is up; the rest waits for the next turn.
    pub(super) fn decide_acts(&mut self, cx: &mut Cx<'_>) {
        if self.thinking.acts.is_empty() || self.committing.disk() != Disk::Ready {
            return;
        }
        let until = cx.clock.now() + ACTS_BUDGET;
        while !self.spent
            && let Some(intent) = self.thinking.acts.pop_front()
        {
            self.intent(intent, cx);
            if cx.clock.now() >= until {
                break;
            }
        }
        if !self.thinking.acts.is_empty() {
            self.go_on(cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::WorldLimits;

    #[test]
    fn an_npc_that_comes_due_again_while_it_waits_to_be_thought_alone_waits_once() {
        let mut thinking = Thinking::new(&NpcOptions::default(), 1);
        for _ in 0..3 {
            thinking.due = vec![EntityId(1), EntityId(2)];
            thinking.due_alone(ThinkerId(0));
        }
        assert_eq!(thinking.alone, [(ThinkerId(0), EntityId(1)), (ThinkerId(0), EntityId(2))]);
    }

    #[test]
    fn acts_that_the_game_does_not_get_to_are_lost_and_counted() {
        let mut thinking = Thinking::new(&NpcOptions::default(), 1);
        let act = |npc| Intent { npc, action: Action::Act, x: 0, y: 0, target: 0, argument: 0 };
        (0..MAX_ACTS as u64 + 3).for_each(|npc| thinking.want(act(npc)));
        assert_eq!(thinking.acts.len(), MAX_ACTS);
        assert_eq!(thinking.acts.front().map(|oldest| oldest.npc), Some(0));
        assert_eq!(thinking.counts(&World::new(WorldLimits::default())).ignored, 3);
    }
}
