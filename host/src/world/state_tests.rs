use super::*;
use crate::world::{SectorAddress, WorldSnapshot};

fn world() -> World {
    World::new(WorldLimits::default())
}

fn thing_at(x: i32, y: i32) -> Spawn {
    Spawn { kind: 1, position: Position::new(0, x, y), thinker: None, connection: None }
}

/// Makes one change in a transaction of its own.
fn commit<R>(world: &mut World, change: impl FnOnce(&mut World) -> Result<R, WorldError>) -> R {
    world.transact(change).unwrap()
}

#[test]
fn an_id_is_never_used_again() {
    let mut world = world();
    let first = commit(&mut world, |world| world.spawn(thing_at(0, 0)));
    commit(&mut world, |world| world.despawn(first));
    let second = commit(&mut world, |world| world.spawn(thing_at(0, 0)));
    assert!(second > first);
    assert_eq!(world.entity(first), None);
}

#[test]
fn a_change_outside_a_transaction_is_refused() {
    let mut world = world();
    let id = commit(&mut world, |world| world.spawn(thing_at(0, 0)));
    assert_eq!(world.spawn(thing_at(0, 0)), Err(WorldError::NoTransaction));
    assert_eq!(world.despawn(id), Err(WorldError::NoTransaction));
    assert_eq!(world.move_to(id, Position::new(0, 1, 1)), Err(WorldError::NoTransaction));
    assert_eq!(world.kv_set("rules", "day", vec![1]), Err(WorldError::NoTransaction));
    assert_eq!(world.kv_delete("rules", "day"), Err(WorldError::NoTransaction));
}

#[test]
fn a_read_inside_a_transaction_sees_its_writes() {
    let mut world = world();
    world.begin();
    let id = world.spawn(thing_at(3, 4)).unwrap();
    world.set_data(id, "health", vec![9]).unwrap();
    world.kv_set("rules", "day", vec![2]).unwrap();
    world.move_to(id, Position::new(0, 40, 4)).unwrap();
    assert_eq!(world.data(id, "health").unwrap(), Some(&[9][..]));
    assert_eq!(world.kv_get("rules", "day"), Some(&[2][..]));
    assert_eq!(world.in_sector(SectorAddress { map: 0, x: 2, y: 0 }, 10)[0].id, id);
    assert_eq!(world.within(Position::new(0, 40, 5), 1, 10).unwrap()[0].id, id);
    world.rollback();
    assert_eq!(world.entity(id), None);
    assert_eq!(world.kv_get("rules", "day"), None);
    assert_eq!(world.within(Position::new(0, 40, 5), 1, 10).unwrap(), []);
}

#[test]
fn a_closure_that_fails_leaves_the_world_byte_for_byte_as_it_was() {
    let mut world = world();
    let id = commit(&mut world, |world| world.spawn(thing_at(0, 0)));
    commit(&mut world, |world| world.set_data(id, "name", b"Ada".to_vec()));
    let before = postcard::to_stdvec(&world.snapshot()).unwrap();
    let result = world.transact(|world| {
        world.set_data(id, "name", b"Eve".to_vec())?;
        world.set_thinker(id, Some(ThinkerId(1)))?;
        world.set_connection(id, Some(5))?;
        world.despawn(id)?;
        world.spawn(thing_at(1, 1))?;
        world.despawn(id)
    });
    assert_eq!(result, Err(WorldError::NotFound(id)));
    assert_eq!(postcard::to_stdvec(&world.snapshot()).unwrap(), before);
}

#[test]
fn the_world_holds_no_more_entities_than_its_limit() {
    let mut world = World::new(WorldLimits { max_entities: 1, ..WorldLimits::default() });
    world.begin();
    world.spawn(thing_at(0, 0)).unwrap();
    assert_eq!(world.spawn(thing_at(0, 0)), Err(WorldError::TooManyEntities { limit: 1 }));
}

#[test]
fn data_beyond_a_limit_is_refused_and_what_was_there_stays() {
    let limits = WorldLimits {
        max_names_per_entity: 2,
        max_name_bytes: 4,
        max_data_bytes_per_entity: 10,
        ..WorldLimits::default()
    };
    let mut world = World::new(limits);
    world.begin();
    let id = world.spawn(thing_at(0, 0)).unwrap();
    world.set_data(id, "a", vec![1; 5]).unwrap();
    assert_eq!(world.set_data(id, "a", vec![2; 10]), Err(WorldError::DataTooLarge { entity: id, limit_bytes: 10 }));
    world.set_data(id, "a", vec![3; 7]).unwrap();
    assert_eq!(world.set_data(id, "longer", vec![]), Err(WorldError::NameTooLong { length_bytes: 6, limit_bytes: 4 }));
    world.set_data(id, "b", vec![]).unwrap();
    assert_eq!(world.set_data(id, "c", vec![]), Err(WorldError::TooManyNames { entity: id, limit: 2 }));
    assert_eq!(world.data(id, "a").unwrap(), Some(&[3; 7][..]));
    assert_eq!(world.data(id, "b").unwrap(), Some(&[][..]));
    assert_eq!(world.data(id, "c").unwrap(), None);
    assert!(world.remove_data(id, "a").unwrap());
    assert!(!world.remove_data(id, "a").unwrap());
    world.set_data(id, "c", vec![4; 8]).unwrap();
}

#[test]
fn a_full_key_value_space_is_refused_and_others_are_not() {
    let limits =
        WorldLimits { max_kv_spaces: 2, max_kv_key_bytes: 4, max_kv_bytes_per_space: 8, ..WorldLimits::default() };
    let mut world = World::new(limits);
    world.begin();
    world.kv_set("rules", "a", vec![1; 7]).unwrap();
    world.kv_set("rules", "a", vec![2; 7]).unwrap();
    let full = WorldError::KvFull { space: "rules".to_owned(), limit_bytes: 8 };
    assert_eq!(world.kv_set("rules", "b", vec![]), Err(full));
    world.kv_set("other", "b", vec![]).unwrap();
    assert_eq!(world.kv_set("third", "b", vec![]), Err(WorldError::TooManySpaces { limit: 2 }));
    assert_eq!(world.kv_set("other", "12345", vec![]), Err(WorldError::KeyTooLong { length_bytes: 5, limit_bytes: 4 }));
    assert_eq!(world.kv_get("rules", "a"), Some(&[2; 7][..]));
    assert!(world.kv_delete("rules", "a").unwrap());
    assert!(!world.kv_delete("rules", "a").unwrap());
    world.kv_set("rules", "b", vec![1; 7]).unwrap();
}

#[test]
fn one_transaction_can_neither_change_nor_overwrite_without_end() {
    let limits =
        WorldLimits { max_changes_per_transaction: 3, max_undo_bytes_per_transaction: 10, ..WorldLimits::default() };
    let mut world = World::new(limits);
    world.begin();
    world.kv_set("rules", "k", vec![0; 8]).unwrap();
    world.kv_set("rules", "k", vec![1; 8]).unwrap();
    assert_eq!(world.kv_set("rules", "k", vec![2; 8]), Err(WorldError::TooMuchOverwritten { limit_bytes: 10 }));
    world.spawn(thing_at(0, 0)).unwrap();
    assert_eq!(world.spawn(thing_at(0, 0)), Err(WorldError::TooManyChanges { limit: 3 }));
    world.commit();
    world.begin();
    world.kv_set("rules", "k", vec![3; 8]).unwrap();
    world.spawn(thing_at(0, 0)).unwrap();
}

#[test]
fn a_scan_gives_the_keys_with_the_prefix_page_by_page() {
    let mut world = world();
    world.begin();
    for key in ["b", "aa", "a", "ab", "ac"] {
        world.kv_set("rules", key, key.as_bytes().to_vec()).unwrap();
    }
    let keys = |prefix, after, limit| -> Vec<String> {
        world.kv_scan("rules", prefix, after, limit).map(|(key, _)| key.to_owned()).collect()
    };
    assert_eq!(keys("a", None, 2), ["a", "aa"]);
    assert_eq!(keys("a", Some("aa"), 2), ["ab", "ac"]);
    assert_eq!(keys("a", Some("ac"), 2), [""; 0]);
    assert_eq!(keys("", None, 9), ["a", "aa", "ab", "ac", "b"]);
    assert_eq!(keys("b", Some("a"), 9), ["b"]);
    assert_eq!(world.kv_scan("another", "", None, 9).count(), 0);
}

#[test]
fn every_answer_is_cut_to_the_limit_of_the_world() {
    let limits = WorldLimits { max_results_per_query: 2, ..WorldLimits::default() };
    let mut world = World::new(limits);
    world.begin();
    for x in 0..5 {
        world.spawn(thing_at(x, 0)).unwrap();
        world.kv_set("rules", &x.to_string(), vec![]).unwrap();
    }
    assert_eq!(world.in_sector(Position::new(0, 0, 0).sector(), 100).len(), 2);
    assert_eq!(world.within(Position::new(0, 0, 0), 8, 100).unwrap().len(), 2);
    assert_eq!(world.kv_scan("rules", "", None, 100).count(), 2);
}

#[test]
fn a_radius_is_as_the_crow_flies_nearest_first_and_ties_by_id() {
    let mut world = world();
    world.begin();
    let corner = world.spawn(thing_at(-3, -4)).unwrap();
    let east = world.spawn(thing_at(5, 0)).unwrap();
    let beyond = world.spawn(thing_at(4, 4)).unwrap();
    let here = world.spawn(thing_at(0, 0)).unwrap();
    let other_map = Position::new(1, 0, 0);
    world.spawn(Spawn { position: other_map, ..thing_at(0, 0) }).unwrap();
    let ids = |radius, limit| -> Vec<EntityId> {
        let found = world.within(Position::new(0, 0, 0), radius, limit).unwrap();
        found.iter().map(|entity| entity.id).collect()
    };
    assert_eq!(ids(5, 9), [here, corner, east]);
    assert_eq!(ids(5, 2), [here, corner]);
    assert_eq!(ids(6, 9), [here, corner, east, beyond]);
    assert_eq!(ids(0, 9), [here]);
    assert_eq!(ids(5, 0), []);
    assert_eq!(world.within(other_map, 513, 9), Err(WorldError::RadiusTooLarge { radius: 513 }));
}

#[test]
fn a_radius_at_the_edge_of_the_coordinates_neither_wraps_nor_overflows() {
    let mut world = world();
    world.begin();
    let edge = world.spawn(thing_at(i32::MAX, i32::MIN)).unwrap();
    world.spawn(thing_at(i32::MIN, i32::MAX)).unwrap();
    let found = world.within(Position::new(0, i32::MAX - 3, i32::MIN), 512, 9).unwrap();
    assert_eq!(found.iter().map(|entity| entity.id).collect::<Vec<_>>(), [edge]);
}

#[test]
fn the_entities_of_a_connection_are_found_when_it_is_lost() {
    let mut world = world();
    world.begin();
    let player = world.spawn(Spawn { connection: Some(7), ..thing_at(0, 0) }).unwrap();
    let pet = world.spawn(thing_at(0, 0)).unwrap();
    world.spawn(Spawn { connection: Some(8), ..thing_at(0, 0) }).unwrap();
    world.set_connection(pet, Some(7)).unwrap();
    assert_eq!(world.entities_of(7).collect::<Vec<_>>(), [player, pet]);
    world.set_connection(player, None).unwrap();
    world.despawn(pet).unwrap();
    assert_eq!(world.entities_of(7).count(), 0);
}

#[test]
fn a_save_that_contradicts_itself_is_refused_by_name() {
    let mut world = world();
    let id = commit(&mut world, |world| world.spawn(thing_at(0, 0)));
    let saved = world.snapshot();
    let refusal =
        |snapshot: WorldSnapshot| World::restore(snapshot, WorldLimits::default()).map(drop).unwrap_err().to_string();
    let mut twice = saved.clone();
    twice.entities.push(twice.entities[0].clone());
    assert!(refusal(twice).contains(&format!("the entity {id} twice")));
    let beyond = WorldSnapshot { next_id: id.0, ..saved.clone() };
    assert!(refusal(beyond).contains("beyond its own count"));
}

#[test]
fn a_save_can_forget_the_connections_it_was_made_with() {
    let mut world = world();
    commit(&mut world, |world| world.spawn(Spawn { connection: Some(7), ..thing_at(0, 0) }));
    let mut saved = world.snapshot();
    saved.forget_connections();
    let restored = World::restore(saved, WorldLimits::default()).unwrap();
    assert_eq!(restored.entities_of(7).count(), 0);
    assert_eq!(restored.entity_count(), 1);
}
