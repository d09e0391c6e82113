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

fn sheep_at(x: i32, y: i32) -> Npc {
    Npc { id: 1, kind: kind::SHEEP, map: 0, x, y, seen_first: 0, seen_count: 0 }
}

fn sighting(kind: u32, x: i32, y: i32) -> Sighting {
    Sighting { id: 2, kind, x, y, traits: Traits::empty() }
}

/// What a sheep does on seeing something, once it does not stumble.
fn flight(npc: Npc, seen: &[Sighting]) -> Intent {
    let (mut sheep, mut context) = (Sheep { grazing: 5 }, context());
    (0..100).map(|_| sheep.think(&npc, seen, &mut context)).find(|intent| intent.action == Action::Move).unwrap()
}

#[test]
fn a_sheep_that_sees_a_wolf_runs_the_other_way() {
    let seen = [sighting(kind::SHEEP, 11, 10), sighting(kind::WOLF, 13, 10)];
    assert_eq!(flight(sheep_at(10, 10), &seen), sheep_at(10, 10).move_to(8, 10));
}

#[test]
fn a_sheep_in_a_corner_runs_along_the_border() {
    assert_eq!(flight(sheep_at(0, 0), &[sighting(kind::WOLF, 2, 0)]), sheep_at(0, 0).move_to(0, 2));
}

#[test]
fn a_sheep_under_a_wolf_moves() {
    let under = flight(sheep_at(9, 9), &[sighting(kind::WOLF, 9, 9)]);
    assert_ne!((under.x, under.y), (9, 9));
}

#[test]
fn a_sheep_that_flees_stumbles_now_and_then() {
    let (mut sheep, mut context) = (Sheep::default(), context());
    let seen = [sighting(kind::WOLF, 13, 10)];
    let thoughts = (0..400).map(|_| sheep.think(&sheep_at(10, 10), &seen, &mut context));
    let stumbles = thoughts.filter(|intent| intent.action == Action::Stay).count();
    assert!((60..140).contains(&stumbles), "{stumbles}");
}

#[test]
fn a_lonely_sheep_goes_to_the_others() {
    let intent = Sheep::default().think(&sheep_at(10, 10), &[sighting(kind::SHEEP, 16, 10)], &mut context());
    assert_eq!(intent, sheep_at(10, 10).move_to(16, 10));
}

#[test]
fn a_sheep_grazes_most_of_the_time_and_never_leaves_the_field() {
    let (mut sheep, mut context) = (Sheep::default(), context());
    let mut place = (0, 0);
    let mut moves = 0;
    for _ in 0..1000 {
        let intent = sheep.think(&sheep_at(place.0, place.1), &[], &mut context);
        if intent.action == Action::Move {
            moves += 1;
            place = (intent.x, intent.y);
            assert_eq!(context.config.field.clamp(place.0, place.1), place);
        }
    }
    assert!((50..400).contains(&moves), "{moves}");
}
