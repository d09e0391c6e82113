//! What commits tell, against the world itself: a copy that is kept by the rows alone is always the world.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::world::{EntitySnapshot, Spawn, WorldLimits, WorldSnapshot};

/// A copy of a world that knows only what it was told.
#[derive(Default)]
struct Copy {
    world: WorldSnapshot,
}

impl Copy {
    fn apply(&mut self, changes: Vec<WorldChange>) {
        let entities = &mut self.world.entities;
        for change in changes {
            match change {
                WorldChange::Entity { id, kind, position, thinker } => {
                    let found = entities.iter_mut().find(|entity| entity.id == id);
                    match found {
                        Some(entity) => (entity.kind, entity.position, entity.thinker) = (kind, position, thinker),
                        None => entities.push(EntitySnapshot {
                            id,
                            kind,
                            position,
                            thinker,
                            connection: None,
                            data: BTreeMap::new(),
                        }),
                    }
                }
                WorldChange::Despawned(id) => entities.retain(|entity| entity.id != id),
                WorldChange::Data { entity, name, value } => {
                    let entity =
                        entities.iter_mut().find(|of| of.id == entity).expect("data of an entity that is told");
                    match value {
                        Some(value) => entity.data.insert(name.into(), value),
                        None => entity.data.remove(&*name),
                    };
                }
                WorldChange::Kv { space, key, value } => {
                    let pairs = self.world.spaces.entry(space.to_string()).or_default();
                    match value {
                        Some(value) => pairs.insert(key.into(), value),
                        None => pairs.remove(&*key),
                    };
                }
                WorldChange::NextEntityId(next_id) => self.world.next_id = next_id,
            }
        }
        entities.sort_unstable_by_key(|entity| entity.id);
        self.world.spaces.retain(|_, pairs| !pairs.is_empty());
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Spawn,
    Despawn(u8),
    Move(u8, i32),
    Think(u8, Option<u32>),
    Data(u8, u8, Option<u8>),
    Kv(u8, Option<u8>),
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// With everything told.
    Told,
    /// As those of NPCs' moves end.
    Plain,
    RolledBack,
}

fn operation() -> impl Strategy<Value = Operation> {
    let id = 1..9u8;
    prop_oneof![
        2 => Just(Operation::Spawn),
        1 => id.clone().prop_map(Operation::Despawn),
        2 => (id.clone(), -40..40i32).prop_map(|(id, x)| Operation::Move(id, x)),
        1 => (id.clone(), prop::option::of(0..3u32)).prop_map(|(id, thinker)| Operation::Think(id, thinker)),
        2 => (id, 0..3u8, prop::option::of(any::<u8>())).prop_map(|(id, name, value)| Operation::Data(id, name, value)),
        2 => (0..3u8, prop::option::of(any::<u8>())).prop_map(|(key, value)| Operation::Kv(key, value)),
    ]
}

fn transaction() -> impl Strategy<Value = (Vec<Operation>, End)> {
    let end = prop_oneof![3 => Just(End::Told), 1 => Just(End::Plain), 1 => Just(End::RolledBack)];
    (prop::collection::vec(operation(), 0..8), end)
}

/// Does it, or finds that it cannot be done, which is as good here.
fn act(world: &mut World, operation: &Operation, moves_only: bool) {
    let at = |x| Position::new(0, x, 3);
    let spawn = Spawn { kind: 1, position: at(0), thinker: None, connection: None };
    let _ = match operation {
        Operation::Move(id, x) => world.move_to(EntityId((*id).into()), at(*x)),
        _ if moves_only => Ok(()),
        Operation::Spawn => world.spawn(spawn).map(drop),
        Operation::Despawn(id) => world.despawn(EntityId((*id).into())),
        Operation::Think(id, thinker) => world.set_thinker(EntityId((*id).into()), thinker.map(ThinkerId)),
        Operation::Data(id, name, Some(value)) => {
            world.set_data(EntityId((*id).into()), &name.to_string(), vec![*value])
        }
        Operation::Data(id, name, None) => world.remove_data(EntityId((*id).into()), &name.to_string()).map(drop),
        Operation::Kv(key, Some(value)) => world.kv_set("rules", &key.to_string(), vec![*value]),
        Operation::Kv(key, None) => world.kv_delete("rules", &key.to_string()).map(drop),
    };
}

proptest! {
    #[test]
    fn a_copy_that_is_kept_by_what_commits_tell_is_the_world(transactions in prop::collection::vec(transaction(), 1..20)) {
        let mut world = World::new(WorldLimits::default());
        let mut copy = Copy { world: world.snapshot() };
        for (operations, end) in transactions {
            world.begin();
            operations.iter().for_each(|operation| act(&mut world, operation, matches!(end, End::Plain)));
            let mut changes = Vec::new();
            match end {
                End::Told => world.commit_to(&mut changes),
                End::Plain => world.commit(),
                End::RolledBack => world.rollback(),
            }
            copy.apply(changes);
        }
        let mut changes = Vec::new();
        for id in world.take_unsaved() {
            world.tell_entity(id, &mut changes);
        }
        copy.apply(changes);
        prop_assert_eq!(copy.world, world.snapshot());
    }
}

fn world_with_one_npc() -> (World, EntityId) {
    let mut world = World::new(WorldLimits::default());
    let spawn = Spawn { kind: 1, position: Position::new(0, 0, 0), thinker: None, connection: None };
    let npc = world.transact(|world| world.spawn(spawn)).unwrap();
    world.take_unsaved();
    world.begin();
    world.move_to(npc, Position::new(0, 1, 0)).unwrap();
    world.commit_to(&mut Vec::new());
    (world, npc)
}

#[test]
fn a_row_that_was_changed_often_is_told_once() {
    let (mut world, npc) = world_with_one_npc();
    let mut changes = Vec::new();
    world.begin();
    for value in 0..5 {
        world.move_to(npc, Position::new(0, i32::from(value), 0)).unwrap();
        world.set_data(npc, "hunger", vec![value]).unwrap();
        world.kv_set("rules", "day", vec![value]).unwrap();
    }
    world.commit_to(&mut changes);
    let expected = [
        WorldChange::Entity { id: npc, kind: 1, position: Position::new(0, 4, 0), thinker: None },
        WorldChange::Data { entity: npc, name: "hunger".into(), value: Some(vec![4]) },
        WorldChange::Kv { space: "rules".into(), key: "day".into(), value: Some(vec![4]) },
    ];
    assert_eq!(changes, expected);
}

#[test]
fn a_move_that_is_told_later_is_told_as_it_is_then_and_once() {
    let (mut world, npc) = world_with_one_npc();
    for x in 2..4 {
        world.transact(|world| world.move_to(npc, Position::new(0, x, 0))).unwrap();
    }
    let unsaved = world.take_unsaved();
    assert_eq!(unsaved, [npc]);
    world.transact(|world| world.move_to(npc, Position::new(0, 9, 0))).unwrap();
    let mut changes = Vec::new();
    world.tell_entity(npc, &mut changes);
    world.tell_entity(npc, &mut changes);
    assert_eq!(changes, [WorldChange::Entity { id: npc, kind: 1, position: Position::new(0, 9, 0), thinker: None }]);
    world.transact(|world| world.move_to(npc, Position::new(0, 10, 0))).unwrap();
    assert_eq!(world.take_unsaved(), [npc], "a move after that is told again");
}
