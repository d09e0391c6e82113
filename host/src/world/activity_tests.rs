use super::ActivityChange::{Slept, Woke};
use super::*;
use crate::world::{Position, Spawn, ThinkerId, WorldError, WorldLimits};

/// The middle of the sector (`x`, `y`) of map 0.
fn sector(x: i32, y: i32) -> Position {
    Position::new(0, x * 16 + 8, y * 16 + 8)
}

fn npc_at(position: Position) -> Spawn {
    Spawn { kind: 1, position, thinker: Some(ThinkerId(1)), connection: None }
}

fn player_at(position: Position) -> Spawn {
    Spawn { kind: 2, position, thinker: None, connection: Some(7) }
}

fn world() -> World {
    World::new(WorldLimits::default())
}

/// Spawns in a transaction of its own, and drops what it changed.
fn settled(world: &mut World, spawn: Spawn) -> EntityId {
    let id = world.transact(|world| world.spawn(spawn)).unwrap();
    world.drain_activity();
    id
}

/// What one transaction changed.
fn changed(world: &mut World, change: impl FnOnce(&mut World) -> Result<(), WorldError>) -> Vec<ActivityChange> {
    world.transact(change).unwrap();
    world.drain_activity().collect()
}

#[test]
fn an_npc_is_active_in_the_five_by_five_sectors_around_a_player_and_nowhere_else() {
    let mut world = world();
    settled(&mut world, player_at(sector(0, 0)));
    for (x, y) in (-3..=3).flat_map(|x| (-3..=3).map(move |y| (x, y))) {
        let npc = settled(&mut world, npc_at(sector(x, y)));
        assert_eq!(world.is_active(npc), x.abs() <= 2 && y.abs() <= 2, "in sector ({x}, {y})");
    }
    let elsewhere = settled(&mut world, npc_at(Position { map: 1, ..sector(0, 0) }));
    assert!(!world.is_active(elsewhere));
}

#[test]
fn the_first_player_near_wakes_and_the_last_to_leave_puts_to_sleep() {
    let mut world = world();
    let npc = settled(&mut world, npc_at(sector(0, 0)));
    let first = world.transact(|world| world.spawn(player_at(sector(2, 0)))).unwrap();
    assert_eq!(world.drain_activity().collect::<Vec<_>>(), [Woke(npc)]);
    let second = world.transact(|world| world.spawn(player_at(sector(0, -2)))).unwrap();
    assert_eq!(world.drain_activity().count(), 0);
    assert_eq!(changed(&mut world, |world| world.move_to(first, sector(3, 0))), []);
    assert_eq!(changed(&mut world, |world| world.despawn(second)), [Slept(npc)]);
}

#[test]
fn a_player_who_crosses_a_border_changes_nothing_for_npcs_near_before_and_after() {
    let mut world = world();
    let player = settled(&mut world, player_at(sector(0, 0)));
    settled(&mut world, npc_at(sector(0, 0)));
    settled(&mut world, npc_at(sector(2, 1)));
    let left_behind = settled(&mut world, npc_at(sector(-2, 0)));
    let reached = settled(&mut world, npc_at(sector(3, 0)));
    let changes = changed(&mut world, |world| world.move_to(player, sector(1, 0)));
    assert_eq!(changes.len(), 2);
    assert!(changes.contains(&Woke(reached)) && changes.contains(&Slept(left_behind)));
}

#[test]
fn an_npc_that_crosses_a_border_inside_the_active_area_stays_awake() {
    let mut world = world();
    settled(&mut world, player_at(sector(0, 0)));
    let npc = settled(&mut world, npc_at(sector(1, 0)));
    assert_eq!(changed(&mut world, |world| world.move_to(npc, sector(2, 0))), []);
    assert!(world.is_active(npc));
}

#[test]
fn an_npc_wakes_as_it_walks_in_and_sleeps_as_it_walks_out() {
    let mut world = world();
    settled(&mut world, player_at(sector(0, 0)));
    let npc = settled(&mut world, npc_at(sector(3, 0)));
    assert_eq!(changed(&mut world, |world| world.move_to(npc, sector(2, 0))), [Woke(npc)]);
    assert_eq!(changed(&mut world, |world| world.move_to(npc, sector(3, 0))), [Slept(npc)]);
}

#[test]
fn a_player_with_a_lost_connection_keeps_nobody_awake() {
    let mut world = world();
    let player = settled(&mut world, player_at(sector(0, 0)));
    let npc = settled(&mut world, npc_at(sector(0, 0)));
    assert_eq!(changed(&mut world, |world| world.set_connection(player, None)), [Slept(npc)]);
    assert_eq!(changed(&mut world, |world| world.set_connection(player, Some(8))), [Woke(npc)]);
    assert_eq!(changed(&mut world, |world| world.set_connection(player, Some(9))), []);
}

#[test]
fn an_npc_wakes_with_its_first_thinker_and_sleeps_without_one() {
    let mut world = world();
    settled(&mut world, player_at(sector(0, 0)));
    let thing = settled(&mut world, Spawn { thinker: None, ..npc_at(sector(0, 0)) });
    assert_eq!(changed(&mut world, |world| world.set_thinker(thing, Some(ThinkerId(1)))), [Woke(thing)]);
    assert_eq!(changed(&mut world, |world| world.set_thinker(thing, Some(ThinkerId(2)))), []);
    assert_eq!(changed(&mut world, |world| world.set_thinker(thing, None)), [Slept(thing)]);
    assert_eq!(world.npc_count(), 0);
}

#[test]
fn an_npc_that_is_despawned_sleeps() {
    let mut world = world();
    settled(&mut world, player_at(sector(0, 0)));
    let npc = settled(&mut world, npc_at(sector(0, 0)));
    assert_eq!(changed(&mut world, |world| world.despawn(npc)), [Slept(npc)]);
    assert_eq!((world.npc_count(), world.active_npc_count()), (0, 0));
}

#[test]
fn a_move_that_is_rolled_back_wakes_nobody() {
    let mut world = world();
    let player = settled(&mut world, player_at(sector(9, 0)));
    let npc = settled(&mut world, npc_at(sector(0, 0)));
    world.begin();
    world.move_to(player, sector(0, 0)).unwrap();
    world.rollback();
    assert_eq!(world.drain_activity().count(), 0);
    assert!(!world.is_active(npc));
}

#[test]
fn only_the_state_at_commit_counts() {
    let mut world = world();
    let player = settled(&mut world, player_at(sector(0, 0)));
    let npc = settled(&mut world, npc_at(sector(0, 0)));
    let there_and_back = |world: &mut World| {
        world.move_to(player, sector(50, 0))?;
        world.move_to(player, sector(0, 0))?;
        let passing = world.spawn(npc_at(sector(0, 0)))?;
        world.despawn(passing)
    };
    assert_eq!(changed(&mut world, there_and_back), []);
    assert!(world.is_active(npc));
    let both_leave = |world: &mut World| {
        world.move_to(npc, sector(50, 50))?;
        world.move_to(player, sector(50, 50))
    };
    assert_eq!(changed(&mut world, both_leave), []);
}
