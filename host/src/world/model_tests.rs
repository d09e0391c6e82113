//! Property tests: random transactions, some rolled back, against a model that recomputes everything from scratch.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// What one random step does. Entities are named by their place in the list of all ids so far, so that some are gone.
#[derive(Clone, Debug)]
enum Change {
    Spawn(Spawn),
    Despawn(usize),
    Move(usize, Position),
    Connect(usize, Option<ConnectionId>),
    Assign(usize, Option<ThinkerId>),
    SetData(usize, String, Vec<u8>),
    RemoveData(usize, String),
    KvSet(String, String, Vec<u8>),
    KvDelete(String, String),
}

#[derive(Clone, Debug)]
struct Transaction {
    changes: Vec<Change>,
    is_kept: bool,
}

fn positions() -> impl Strategy<Value = Position> {
    let tiles = prop_oneof![30 => -70..70, 1 => Just(i32::MIN), 1 => Just(i32::MAX)];
    (0..2u32, tiles.clone(), tiles).prop_map(|(map, x, y)| Position::new(map, x, y))
}

fn connections() -> impl Strategy<Value = Option<ConnectionId>> {
    prop_oneof![2 => Just(None), 1 => (1..4u64).prop_map(Some)]
}

fn thinkers() -> impl Strategy<Value = Option<ThinkerId>> {
    prop_oneof![1 => Just(None), 2 => (0..3u32).prop_map(|id| Some(ThinkerId(id)))]
}

fn changes() -> impl Strategy<Value = Change> {
    let spawns = (0..3u32, positions(), thinkers(), connections())
        .prop_map(|(kind, position, thinker, connection)| Spawn { kind, position, thinker, connection });
    let values = || prop::collection::vec(any::<u8>(), 0..6);
    let which = 0..24usize;
    prop_oneof![
        4 => spawns.prop_map(Change::Spawn),
        2 => which.clone().prop_map(Change::Despawn),
        8 => (which.clone(), positions()).prop_map(|(which, to)| Change::Move(which, to)),
        2 => (which.clone(), connections()).prop_map(|(which, connection)| Change::Connect(which, connection)),
        2 => (which.clone(), thinkers()).prop_map(|(which, thinker)| Change::Assign(which, thinker)),
        2 => (which.clone(), "[a-c]{1,2}", values()).prop_map(|(which, name, value)| Change::SetData(which, name, value)),
        1 => (which, "[a-c]{1,2}").prop_map(|(which, name)| Change::RemoveData(which, name)),
        2 => ("[xyz]", "[a-c]{1,2}", values()).prop_map(|(space, key, value)| Change::KvSet(space, key, value)),
        1 => ("[xyz]", "[a-c]{1,2}").prop_map(|(space, key)| Change::KvDelete(space, key)),
    ]
}

fn transactions() -> impl Strategy<Value = Vec<Transaction>> {
    let transaction = (prop::collection::vec(changes(), 0..8), prop::bool::weighted(0.7))
        .prop_map(|(changes, is_kept)| Transaction { changes, is_kept });
    prop::collection::vec(transaction, 1..30)
}

/// Limits so low that the random changes run into every one of them.
fn low_limits() -> WorldLimits {
    WorldLimits {
        max_entities: 14,
        max_names_per_entity: 3,
        max_data_bytes_per_entity: 14,
        max_kv_spaces: 2,
        max_kv_bytes_per_space: 20,
        max_changes_per_transaction: 6,
        ..WorldLimits::default()
    }
}

/// The naive world: the content, and nothing that follows from it.
#[derive(Clone, Debug, Default)]
struct Model {
    next_id: u64,
    entities: BTreeMap<EntityId, EntitySnapshot>,
    spaces: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
}

impl Model {
    fn snapshot(&self) -> WorldSnapshot {
        let mut spaces = self.spaces.clone();
        spaces.retain(|_, pairs| !pairs.is_empty());
        WorldSnapshot { next_id: self.next_id, entities: self.entities.values().cloned().collect(), spaces }
    }

    fn entity(&mut self, id: EntityId) -> &mut EntitySnapshot {
        self.entities.get_mut(&id).expect("the world accepted a change to it")
    }

    fn players_near(&self, sector: SectorAddress) -> u32 {
        let players = self.entities.values().filter(|entity| entity.connection.is_some());
        players.filter(|player| player.position.sector().is_near(sector)).count() as u32
    }

    fn awake(&self) -> BTreeSet<EntityId> {
        let npcs = self.entities.values().filter(|entity| entity.thinker.is_some());
        npcs.filter(|npc| self.players_near(npc.position.sector()) > 0).map(|npc| npc.id).collect()
    }
}

/// Makes the change in the world and, if the world takes it, in the model. A refused change must change nothing.
fn apply(world: &mut World, model: &mut Model, ids: &mut Vec<EntityId>, change: Change) {
    let id_at = |which: usize| ids.get(which).copied().unwrap_or(EntityId(1_000));
    match change {
        Change::Spawn(spawn) => {
            if let Ok(id) = world.spawn(spawn) {
                assert_eq!(id.0, model.next_id);
                model.next_id += 1;
                let Spawn { kind, position, thinker, connection } = spawn;
                let data = BTreeMap::new();
                model.entities.insert(id, EntitySnapshot { id, kind, position, thinker, connection, data });
                if !ids.contains(&id) {
                    ids.push(id);
                }
            }
        }
        Change::Despawn(which) => {
            if world.despawn(id_at(which)).is_ok() {
                model.entities.remove(&id_at(which)).expect("it was there");
            }
        }
        Change::Move(which, to) => {
            if world.move_to(id_at(which), to).is_ok() {
                model.entity(id_at(which)).position = to;
            }
        }
        Change::Connect(which, connection) => {
            if world.set_connection(id_at(which), connection).is_ok() {
                model.entity(id_at(which)).connection = connection;
            }
        }
        Change::Assign(which, thinker) => {
            if world.set_thinker(id_at(which), thinker).is_ok() {
                model.entity(id_at(which)).thinker = thinker;
            }
        }
        Change::SetData(which, name, value) => {
            if world.set_data(id_at(which), &name, value.clone()).is_ok() {
                model.entity(id_at(which)).data.insert(name, value);
            }
        }
        Change::RemoveData(which, name) => {
            if let Ok(was_there) = world.remove_data(id_at(which), &name) {
                assert_eq!(model.entity(id_at(which)).data.remove(&name).is_some(), was_there);
            }
        }
        Change::KvSet(space, key, value) => {
            if world.kv_set(&space, &key, value.clone()).is_ok() {
                model.spaces.entry(space).or_default().insert(key, value);
            }
        }
        Change::KvDelete(space, key) => {
            if let Ok(was_there) = world.kv_delete(&space, &key) {
                assert_eq!(model.spaces.entry(space).or_default().remove(&key).is_some(), was_there);
            }
        }
    }
}

/// Everything the world keeps to be quick, against what follows from the content.
fn assert_indices_follow(world: &World, model: &Model) {
    let mut by_sector: BTreeMap<SectorAddress, Vec<EntityId>> = BTreeMap::new();
    for entity in model.entities.values() {
        by_sector.entry(entity.position.sector()).or_default().push(entity.id);
        let slot = world.entities.slot(entity.id).expect("every entity has a slot");
        let place = world.entities.record(slot).place;
        let sector = world.grid.sector(place.sector);
        assert_eq!(sector.slots[place.index as usize], slot);
        let occupant = sector.occupants[place.index as usize];
        assert_eq!((occupant.id, occupant.kind), (entity.id, entity.kind));
        assert_eq!(sector.address.position_of(sector.tiles[place.index as usize]), entity.position);
        assert_eq!(occupant.flags & sectors::PLAYER != 0, entity.connection.is_some());
        assert_eq!(occupant.flags & sectors::NPC != 0, entity.thinker.is_some());
        let bytes: usize = entity.data.iter().map(|(name, value)| name.len() + value.len()).sum();
        assert_eq!(world.entities.data(slot).bytes, bytes);
    }
    for sector in world.grid.existing() {
        let mut ids: Vec<_> = sector.occupants.iter().map(|occupant| occupant.id).collect();
        ids.sort();
        assert_eq!(ids, by_sector.remove(&sector.address).unwrap_or_default());
        assert_eq!(sector.cover, model.players_near(sector.address), "cover of {:?}", sector.address);
        assert!(!ids.is_empty() || sector.cover > 0, "{:?} outlived its use", sector.address);
    }
    assert!(by_sector.is_empty(), "every occupied sector exists");
    for space in world.spaces.iter() {
        assert_eq!(space.bytes, space.pairs.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>());
    }
    let connections: BTreeSet<_> =
        model.entities.values().filter_map(|entity| Some((entity.connection?, entity.id))).collect();
    assert_eq!(world.connections, connections);
}

fn assert_activity_follows(world: &World, model: &Model) {
    let awake = model.awake();
    for entity in model.entities.values() {
        assert_eq!(world.is_active(entity.id), awake.contains(&entity.id), "{entity:?}");
    }
    assert_eq!(world.active_npc_count(), awake.len());
    assert_eq!(world.npc_count(), model.entities.values().filter(|entity| entity.thinker.is_some()).count());
}

/// Exactly those NPCs changed that were awake on one side of the commit only, each once: nobody's timer is restarted.
fn assert_only_these_changed(world: &mut World, before: &BTreeSet<EntityId>, after: &BTreeSet<EntityId>) {
    let mut changes: Vec<_> = world.drain_activity().collect();
    let key = |change: &ActivityChange| match change {
        ActivityChange::Woke(id) => (id.0, true),
        ActivityChange::Slept(id) => (id.0, false),
    };
    changes.sort_by_key(key);
    let mut expected: Vec<_> = after.difference(before).map(|id| ActivityChange::Woke(*id)).collect();
    expected.extend(before.difference(after).map(|id| ActivityChange::Slept(*id)));
    expected.sort_by_key(key);
    assert_eq!(changes, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_happens_the_world_is_what_a_recomputation_from_scratch_says(transactions in transactions()) {
        let mut world = World::new(low_limits());
        let mut model = Model { next_id: 1, ..Model::default() };
        let mut ids = Vec::new();
        for transaction in transactions {
            let before = model.clone();
            let bytes_before = postcard::to_stdvec(&world.snapshot()).unwrap();
            world.begin();
            for change in transaction.changes {
                apply(&mut world, &mut model, &mut ids, change);
                prop_assert_eq!(world.snapshot(), model.snapshot(), "reads see the transaction's own writes");
            }
            if transaction.is_kept {
                world.commit();
            } else {
                world.rollback();
                model = before.clone();
                prop_assert_eq!(postcard::to_stdvec(&world.snapshot()).unwrap(), bytes_before);
            }
            assert_only_these_changed(&mut world, &before.awake(), &model.awake());
            assert_activity_follows(&world, &model);
            assert_indices_follow(&world, &model);
        }
    }

    #[test]
    fn a_restored_world_is_the_saved_one(transactions in transactions()) {
        let mut world = World::new(WorldLimits::default());
        let mut model = Model { next_id: 1, ..Model::default() };
        let mut ids = Vec::new();
        for transaction in transactions {
            world.begin();
            for change in transaction.changes {
                apply(&mut world, &mut model, &mut ids, change);
            }
            world.commit();
        }
        let bytes = postcard::to_stdvec(&world.snapshot()).unwrap();
        let saved = postcard::from_bytes(&bytes).unwrap();
        let mut restored = World::restore(saved, WorldLimits::default()).unwrap();
        prop_assert_eq!(postcard::to_stdvec(&restored.snapshot()).unwrap(), bytes);
        assert_only_these_changed(&mut restored, &BTreeSet::new(), &model.awake());
        assert_activity_follows(&restored, &model);
        assert_indices_follow(&restored, &model);
    }

    #[test]
    fn bytes_that_are_no_save_are_refused_and_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(snapshot) = postcard::from_bytes::<WorldSnapshot>(&bytes) {
            let _ = World::restore(snapshot, WorldLimits::default());
        }
    }
}
