use std::time::Duration;

use meadow::Field;
use wheelhouse_guest::random::Random;

use super::*;

fn context() -> Context<ThinkerConfig> {
    Context {
        config: ThinkerConfig { field: Field::new(2) },
        now: Duration::ZERO,
        random: Random::seeded(1),
        occasion: Occasion::First,
    }
}

fn wolf_at(x: i32, y: i32) -> Npc {
    Npc { id: 1, kind: kind::WOLF, map: 0, x, y, seen_first: 0, seen_count: 0 }
}

fn sighting(id: u64, kind: u32, x: i32, y: i32) -> Sighting {
    Sighting { id, kind, x, y, traits: Traits::empty() }
}

#[test]
fn a_wolf_hunts_the_nearest_sheep() {
    let seen = [sighting(2, kind::WOLF, 10, 11), sighting(3, kind::SHEEP, 13, 10), sighting(4, kind::SHEEP, 10, 14)];
    let intent = Wolf::default().think(&wolf_at(10, 10), &seen, &mut context());
    assert_eq!(intent, wolf_at(10, 10).move_to(13, 10));
}

#[test]
fn a_wolf_bites_a_sheep_beside_it_and_then_rests() {
    let (mut wolf, mut context) = (Wolf::default(), context());
    let seen = [sighting(3, kind::SHEEP, 11, 9)];
    let mut bites = Vec::new();
    for thought in 0..40 {
        let intent = wolf.think(&wolf_at(10, 10), &seen, &mut context);
        if intent.action == Action::Act {
            assert_eq!((intent.target, intent.argument), (3, BITE));
            bites.push(thought);
        }
    }
    assert_eq!(bites, [0, 8, 16, 24, 32]);
}

#[test]
fn a_roaming_wolf_covers_ground_and_never_leaves_the_field() {
    let (mut wolf, mut context) = (Wolf::default(), context());
    let mut place = (0, 0);
    let mut seen_tiles = std::collections::HashSet::new();
    for _ in 0..1000 {
        let intent = wolf.think(&wolf_at(place.0, place.1), &[], &mut context);
        if intent.action == Action::Move {
            assert_eq!(context.config.field.clamp(intent.x, intent.y), (intent.x, intent.y));
            place.0 += (intent.x - place.0).clamp(-2, 2);
            place.1 += (intent.y - place.1).clamp(-2, 2);
            seen_tiles.insert(place);
        }
    }
    assert!(seen_tiles.len() > 200, "{}", seen_tiles.len());
}

#[test]
fn wolves_of_the_first_version_keep_their_rest() {
    // Two memories, as version 1 saved them: a rest each.
    let mut saved: &[u8] = &[5, 0];
    let wolves = [Wolf::migrate(1, &mut saved).unwrap(), Wolf::migrate(1, &mut saved).unwrap()];
    assert_eq!(wolves.map(|wolf| (wolf.rest, wolf.heading)), [(5, (0, 0)), (0, (0, 0))]);
    assert!(saved.is_empty());
    assert!(Wolf::migrate(3, &mut saved).is_err());
}
