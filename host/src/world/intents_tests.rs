use super::*;
use crate::world::{Spawn, ThinkerId, WorldLimits};

/// A world of NPCs on these tiles, with the ids 1, 2, …, and the batch of all of them.
fn batch_at(tiles: &[(i32, i32)]) -> (World, Intents) {
    let mut world = World::new(WorldLimits::default());
    world.begin();
    for (x, y) in tiles {
        let position = Position::new(0, *x, *y);
        world.spawn(Spawn { kind: 1, position, thinker: Some(ThinkerId(1)), connection: None }).unwrap();
    }
    world.commit();
    let views: Vec<_> = (1..=tiles.len() as u64).map(|id| NpcView { id, ..NpcView::default() }).collect();
    let mut intents = Intents::new(&NpcOptions::default());
    intents.expect(&views);
    (world, intents)
}

fn intent(npc: u64, action: Action, x: i32, y: i32) -> Intent {
    Intent { npc, action, x, y, target: 0, argument: 0 }
}

/// Where an NPC at `from` is after one move towards `goal`.
fn after_one_step(from: (i32, i32), goal: (i32, i32)) -> (i32, i32) {
    let (mut world, mut intents) = batch_at(&[from]);
    intents.apply(&mut world, &intent(1, Action::Move, goal.0, goal.1));
    let position = world.entity(EntityId(1)).unwrap().position;
    (position.x, position.y)
}

#[test]
fn a_goal_within_a_step_is_reached() {
    assert_eq!(after_one_step((0, 0), (2, -1)), (2, -1));
    assert_eq!(after_one_step((0, 0), (-2, 2)), (-2, 2));
}

#[test]
fn a_goal_farther_than_a_step_is_approached_in_a_straight_line() {
    assert_eq!(after_one_step((0, 0), (10, 0)), (2, 0));
    assert_eq!(after_one_step((5, 5), (-95, -95)), (3, 3));
    assert_eq!(after_one_step((0, 0), (10, 5)), (2, 1));
    assert_eq!(after_one_step((0, 0), (100, -1)), (2, 0));
    assert_eq!(after_one_step((i32::MIN, i32::MAX), (i32::MAX, i32::MIN)), (i32::MIN + 2, i32::MAX - 2));
}

#[test]
fn the_outcome_says_what_was_done() {
    let (mut world, mut intents) = batch_at(&[(0, 0), (0, 0), (0, 0), (0, 0)]);
    let moved = intents.apply(&mut world, &intent(1, Action::Move, 1, 0));
    assert_eq!(moved, Outcome::Moved(Position::new(0, 1, 0)));
    assert_eq!(intents.apply(&mut world, &intent(2, Action::Move, 0, 0)), Outcome::Stayed);
    assert_eq!(intents.apply(&mut world, &intent(3, Action::Stay, 9, 9)), Outcome::Stayed);
    assert_eq!(intents.apply(&mut world, &intent(4, Action::Act, 9, 9)), Outcome::Act);
    assert_eq!(world.entity(EntityId(4)).unwrap().position, Position::new(0, 0, 0));
    assert_eq!(intents.ignored(), 0);
    assert!(!world.is_in_transaction());
}

#[test]
fn intents_may_come_in_any_order_and_leave_npcs_out() {
    let (mut world, mut intents) = batch_at(&[(0, 0); 5]);
    for npc in [4, 5, 1, 3] {
        assert_ne!(intents.apply(&mut world, &intent(npc, Action::Move, 1, 1)), Outcome::Ignored, "intent of {npc}");
    }
    assert_eq!(intents.ignored(), 0);
}

#[test]
fn an_npc_that_is_gone_or_of_another_batch_is_ignored_and_counted() {
    let (mut world, mut intents) = batch_at(&[(0, 0), (0, 0), (0, 0)]);
    world.transact(|world| world.despawn(EntityId(2))).unwrap();
    let views = [1, 2].map(|id| NpcView { id, ..NpcView::default() });
    intents.expect(&views);
    let before = world.snapshot();
    for npc in [2, 3, 0, u64::MAX] {
        assert_eq!(intents.apply(&mut world, &intent(npc, Action::Move, 1, 1)), Outcome::Ignored);
    }
    assert_eq!(world.snapshot(), before);
    assert_eq!(intents.ignored(), 4);
}

#[test]
fn a_second_intent_for_an_npc_is_ignored_so_that_none_runs_faster_than_a_step() {
    let (mut world, mut intents) = batch_at(&[(0, 0), (0, 0)]);
    let run = intent(1, Action::Move, 10, 0);
    assert_eq!(intents.apply(&mut world, &run), Outcome::Moved(Position::new(0, 2, 0)));
    assert_eq!(intents.apply(&mut world, &run), Outcome::Ignored);
    intents.expect(&[NpcView { id: 1, ..NpcView::default() }]);
    assert_eq!(intents.apply(&mut world, &run), Outcome::Moved(Position::new(0, 4, 0)));
}
