use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::clock::{Clock, ManualClock};
use crate::world::{Position, Spawn, WorldLimits};

/// Timers as plain as can be, on a clock moved by hand.
struct ManualTimers {
    clock: Arc<ManualClock>,
    capacity: usize,
    started: u64,
    /// By number: whose it is, when it fires next, how often.
    running: BTreeMap<u64, (EntityId, Duration, Duration)>,
}

impl ThinkTimers for ManualTimers {
    type Timer = u64;
    type Error = &'static str;

    fn start(&mut self, npc: EntityId, first: Duration, interval: Duration) -> Result<u64, &'static str> {
        if self.running.len() >= self.capacity {
            return Err("too many timers");
        }
        self.started += 1;
        self.running.insert(self.started, (npc, self.clock.now() + first, interval));
        Ok(self.started)
    }

    fn stop(&mut self, timer: u64) {
        self.running.remove(&timer).expect("only a running timer is stopped");
    }
}

/// A world, its NPC ticks and its timers, as the server wires them.
struct Rig {
    clock: Arc<ManualClock>,
    world: World,
    timers: ManualTimers,
    ticks: NpcTicks<u64>,
}

impl Rig {
    fn new() -> Self {
        let clock = ManualClock::shared();
        Self {
            clock: clock.clone(),
            world: World::new(WorldLimits::default()),
            timers: ManualTimers { clock, capacity: usize::MAX, started: 0, running: BTreeMap::new() },
            ticks: NpcTicks::new(&NpcOptions::default(), 42),
        }
    }

    fn change<R>(&mut self, change: impl FnOnce(&mut World) -> R) -> R {
        self.world.begin();
        let result = change(&mut self.world);
        self.world.commit();
        self.ticks.follow(&mut self.world, &mut self.timers);
        result
    }

    fn spawn(&mut self, thinker: Option<u32>, connection: Option<u64>) -> EntityId {
        let thinker = thinker.map(ThinkerId);
        self.change(|world| {
            world.spawn(Spawn { kind: 1, position: Position::new(0, 0, 0), thinker, connection }).unwrap()
        })
    }

    /// One timer pass after `by`; the batches that come of it.
    fn pass_after(&mut self, by: Duration) -> Vec<(u32, Vec<u64>)> {
        self.clock.advance(by);
        for (npc, due, interval) in self.timers.running.values_mut() {
            if *due <= self.clock.now() {
                *due += *interval;
                self.ticks.fired(&self.world, *npc);
            }
        }
        let (mut npcs, mut batches) = (Vec::new(), Vec::new());
        while let Some(thinker) = self.ticks.take_batch(&mut npcs) {
            batches.push((thinker.0, npcs.iter().map(|npc| npc.0).collect()));
        }
        batches.sort();
        batches
    }
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn the_first_think_comes_after_1_to_256_ms_and_then_every_500() {
    let mut rig = Rig::new();
    rig.spawn(None, Some(1));
    for _ in 0..2000 {
        rig.spawn(Some(1), None);
    }
    let first_ms: Vec<_> = rig.timers.running.values().map(|(_, due, _)| due.as_millis()).collect();
    assert_eq!(first_ms.iter().min(), Some(&1));
    assert_eq!(first_ms.iter().max(), Some(&256));
    assert!(rig.timers.running.values().all(|(_, _, interval)| *interval == 500 * MS));
}

#[test]
fn the_same_seed_gives_the_same_first_thinks() {
    let first_thinks = |seed| {
        let mut rig = Rig::new();
        rig.ticks = NpcTicks::new(&NpcOptions::default(), seed);
        rig.spawn(None, Some(1));
        for _ in 0..20 {
            rig.spawn(Some(1), None);
        }
        rig.timers.running.values().map(|(_, due, _)| *due).collect::<Vec<_>>()
    };
    assert_eq!(first_thinks(1), first_thinks(1));
    assert_ne!(first_thinks(1), first_thinks(2));
}

#[test]
fn npcs_due_in_the_same_pass_are_batched_by_thinker() {
    let mut rig = Rig::new();
    rig.spawn(None, Some(1));
    let sheep = [rig.spawn(Some(1), None).0, rig.spawn(Some(1), None).0];
    let wolf = rig.spawn(Some(2), None).0;
    assert_eq!(rig.pass_after(256 * MS), [(1, sheep.to_vec()), (2, vec![wolf])]);
    assert_eq!(rig.pass_after(Duration::ZERO), []);
    assert_eq!(rig.pass_after(500 * MS).len(), 2);
    let counts = rig.ticks.counts(&rig.world);
    let expected = NpcCounts { total: 3, active: 3, sleeping: 0, thinks: 6, batches: 4, faults: 0, ignored: 0 };
    assert_eq!(counts, expected);
}

#[test]
fn an_npc_has_a_timer_while_a_player_is_near_and_none_else() {
    let mut rig = Rig::new();
    let npc = rig.spawn(Some(1), None);
    assert_eq!(rig.timers.running.len(), 0);
    assert_eq!(rig.ticks.counts(&rig.world).sleeping, 1);
    let player = rig.spawn(None, Some(1));
    assert_eq!(rig.timers.running.len(), 1);
    rig.change(|world| world.move_to(npc, Position::new(0, 20, 0)).unwrap());
    rig.change(|world| world.move_to(player, Position::new(0, 20, 0)).unwrap());
    rig.change(|world| world.set_thinker(npc, Some(ThinkerId(2))).unwrap());
    assert_eq!(rig.timers.started, 1, "the timer was kept, not started again");
    assert_eq!(rig.pass_after(256 * MS), [(2, vec![npc.0])], "the new thinker thinks");
    rig.change(|world| world.move_to(player, Position::new(0, 200, 0)).unwrap());
    assert_eq!(rig.timers.running.len(), 0);
    assert_eq!(rig.pass_after(1000 * MS), []);
}

#[test]
fn an_npc_that_wakes_and_sleeps_between_two_passes_leaves_no_timer() {
    let mut rig = Rig::new();
    let npc = rig.spawn(Some(1), None);
    rig.world.begin();
    let spawn = Spawn { kind: 1, position: Position::new(0, 0, 0), thinker: None, connection: Some(1) };
    let player = rig.world.spawn(spawn).unwrap();
    rig.world.commit();
    rig.change(|world| world.despawn(player).unwrap());
    assert_eq!(rig.timers.running.len(), 0);
    assert!(!rig.world.is_active(npc));
}

#[test]
fn an_npc_that_was_despawned_after_its_timer_fired_is_not_thought() {
    let mut rig = Rig::new();
    rig.spawn(None, Some(1));
    let npc = rig.spawn(Some(1), None);
    rig.world.transact(|world| world.despawn(npc)).unwrap();
    rig.ticks.fired(&rig.world, npc);
    assert_eq!(rig.ticks.take_batch(&mut Vec::new()), None);
}

#[test]
fn a_failed_think_is_counted_and_the_npc_stays_active() {
    let mut rig = Rig::new();
    rig.spawn(None, Some(1));
    let npc = rig.spawn(Some(1), None);
    rig.pass_after(256 * MS);
    rig.ticks.think_failed(npc, &"unreachable");
    assert_eq!(rig.ticks.counts(&rig.world).faults, 1);
    assert_eq!(rig.pass_after(500 * MS), [(1, vec![npc.0])]);
}

#[test]
fn an_npc_that_finds_no_room_for_a_timer_waits_for_one() {
    let mut rig = Rig::new();
    rig.timers.capacity = 1;
    let player = rig.spawn(None, Some(1));
    let first = rig.spawn(Some(1), None);
    let second = rig.spawn(Some(1), None);
    let third = rig.spawn(Some(1), None);
    assert_eq!(rig.ticks.counts(&rig.world).faults, 2);
    rig.change(|world| world.despawn(second).unwrap());
    rig.change(|world| world.despawn(first).unwrap());
    assert_eq!(rig.pass_after(256 * MS), [(1, vec![third.0])]);
    rig.change(|world| world.despawn(player).unwrap());
    assert_eq!(rig.timers.running.len(), 0);
}
