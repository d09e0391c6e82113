use proptest::prelude::*;

use super::*;
use crate::world::{Position, Spawn, ThinkerId, WorldLimits};

fn gathered(world: &World, options: &NpcOptions, npcs: &[EntityId]) -> (Vec<NpcView>, Vec<Sighting>) {
    let (mut views, mut seen) = (vec![NpcView::default()], vec![Sighting::default()]);
    Sight::new(options).gather(world, npcs, &mut views, &mut seen);
    (views, seen)
}

fn world_of(spawns: impl IntoIterator<Item = Spawn>) -> World {
    let mut world = World::new(WorldLimits::default());
    world.begin();
    for spawn in spawns {
        world.spawn(spawn).unwrap();
    }
    world.commit();
    world
}

fn npc_at(x: i32, y: i32) -> Spawn {
    Spawn { kind: 1, position: Position::new(0, x, y), thinker: Some(ThinkerId(1)), connection: None }
}

#[test]
fn an_npc_sees_others_within_eight_tiles_nearest_first_but_not_itself() {
    let far_map = Spawn { position: Position::new(1, 0, 0), ..npc_at(0, 0) };
    let world = world_of([npc_at(0, 0), npc_at(-8, 0), npc_at(6, 6), npc_at(3, 4), npc_at(4, -3), far_map]);
    let (views, seen) = gathered(&world, &NpcOptions::default(), &[EntityId(1)]);
    assert_eq!(seen.iter().map(|sighting| sighting.id).collect::<Vec<_>>(), [4, 5, 2]);
    let view = NpcView { id: 1, kind: 1, map: 0, x: 0, y: 0, seen_first: 0, seen_count: 3 };
    assert_eq!(views, [view]);
}

#[test]
fn each_view_has_its_own_range_and_an_npc_that_is_gone_has_none() {
    let mut world = world_of([npc_at(0, 0), npc_at(1, 0), npc_at(100, 0), npc_at(50, 0)]);
    world.transact(|world| world.despawn(EntityId(4))).unwrap();
    let npcs = [EntityId(3), EntityId(4), EntityId(2), EntityId(1)];
    let (views, seen) = gathered(&world, &NpcOptions::default(), &npcs);
    let ranges: Vec<_> = views.iter().map(|view| (view.id, view.seen_first, view.seen_count)).collect();
    assert_eq!(ranges, [(3, 0, 0), (2, 0, 1), (1, 1, 1)]);
    assert_eq!(seen.iter().map(|sighting| sighting.id).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_player_is_flagged_and_nothing_else_is() {
    let player = Spawn { thinker: None, connection: Some(3), ..npc_at(1, 0) };
    let playing_npc = Spawn { connection: Some(4), ..npc_at(2, 0) };
    let world = world_of([npc_at(0, 0), player, playing_npc, npc_at(3, 0)]);
    let (_, seen) = gathered(&world, &NpcOptions::default(), &[EntityId(1)]);
    assert_eq!(seen.iter().map(|sighting| sighting.flags).collect::<Vec<_>>(), [SEEN_PLAYER, SEEN_PLAYER, 0]);
}

#[test]
fn of_a_crowd_on_one_tile_the_lowest_ids_are_seen() {
    let world = world_of((0..500).map(|_| npc_at(0, 0)));
    let (_, seen) = gathered(&world, &NpcOptions::default(), &[EntityId(3), EntityId(400)]);
    let ids: Vec<_> = seen.iter().map(|sighting| sighting.id).collect();
    let expected: Vec<_> = (1..=17).filter(|id| *id != 3).chain(1..=16).collect();
    assert_eq!(ids, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn sightings_are_what_a_plain_sort_of_everybody_gives(
        tiles in prop::collection::vec((0..2u32, -20..20i32, -20..20i32), 1..120),
        sight_radius in 0..40u32,
        max_seen in 0..24u32,
    ) {
        let spawns = tiles.iter().map(|(map, x, y)| Spawn { position: Position::new(*map, *x, *y), ..npc_at(0, 0) });
        let world = world_of(spawns);
        let ids: Vec<_> = (1..=tiles.len() as u64).map(EntityId).collect();
        let options = NpcOptions { sight_radius, max_seen, ..NpcOptions::default() };
        let (views, seen) = gathered(&world, &options, &ids);
        prop_assert_eq!(views.len(), ids.len());
        for (view, myself) in views.iter().zip(&tiles) {
            let mut expected: Vec<_> = tiles
                .iter()
                .zip(1u64..)
                .filter(|(other, id)| other.0 == myself.0 && *id != view.id)
                .map(|(other, id)| ((other.1 - myself.1).pow(2) + (other.2 - myself.2).pow(2), id))
                .filter(|(distance_squared, _)| *distance_squared <= (sight_radius * sight_radius) as i32)
                .collect();
            expected.sort();
            expected.truncate(max_seen as usize);
            let range = view.seen_first as usize..(view.seen_first + view.seen_count) as usize;
            let ids: Vec<_> = seen[range].iter().map(|sighting| sighting.id).collect();
            prop_assert_eq!(ids, expected.into_iter().map(|(_, id)| id).collect::<Vec<_>>());
        }
    }
}
