//! Random batches against plain maps: what is loaded, listed and claimed is what the maps hold, however often the store
//! is closed or killed in between.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::SqliteStore;
use super::scratch::open;
use crate::store::{
    Batch, Claim, Event, EventChange, EventCount, EventId, EventQuery, GuestChange, LATEST_MS, ListedEvent, Loaded,
    MissedRuns, Page, Place, Repetition, Store, StoreReader, StoreWriter, StoredGuest,
};
use crate::world::{EntityId, EntitySnapshot, Position, ThinkerId, WorldChange};

const GUESTS: [&str; 3] = ["rules", "weather", "trade"];
const THINKERS: [&str; 2] = ["sheep", "wolf"];

#[derive(Debug, Clone)]
enum Step {
    /// Commits these, in one transaction.
    Commit(Vec<Batch>),
    Close,
    Kill,
    /// Reads all events of a guest, or of all, in pages.
    List {
        guest: Option<usize>,
        parked_only: bool,
        longest_payload: usize,
        size: PageSize,
    },
    /// Claims all events of a guest until a time, in pages.
    Claim {
        guest: usize,
        until_ms: u64,
        size: PageSize,
    },
}

/// How large a page may be.
#[derive(Debug, Clone, Copy)]
struct PageSize {
    limit: usize,
    max_bytes: usize,
}

impl PageSize {
    const fn of(limit: usize) -> Self {
        Self { limit, max_bytes: usize::MAX }
    }
}

#[derive(Default)]
struct Model {
    entities: BTreeMap<u64, EntitySnapshot>,
    spaces: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    next_entity_id: Option<u64>,
    next_sequence: Option<u64>,
    events: BTreeMap<u64, Event>,
    guests: BTreeMap<String, StoredGuest>,
}

impl Model {
    /// Applies a batch, once it takes away no more events than were counted.
    fn apply_within_counts(&mut self, batch: &mut Batch) {
        for EventCount { guest, pending, parked } in &mut batch.counts {
            let counted = self.guest(guest);
            *pending = (*pending).max(-(counted.pending as i64));
            *parked = (*parked).max(-(counted.parked as i64));
        }
        self.apply(batch);
    }

    fn apply(&mut self, batch: &Batch) {
        for change in &batch.world {
            self.apply_world(change.clone());
        }
        for change in &batch.events {
            match change {
                EventChange::Put { event, .. } => self.events.insert(event.sequence, (**event).clone()),
                EventChange::Removed { sequence } => self.events.remove(sequence),
            };
        }
        for change in &batch.guests {
            match change {
                GuestChange::Initialised { guest } => self.guest(guest).initialised = true,
                GuestChange::Saved { guest, state } => self.guest(guest).state = state.clone(),
            }
        }
        for EventCount { guest, pending, parked } in &batch.counts {
            let guest = self.guest(guest);
            guest.pending = guest.pending.strict_add_signed(*pending);
            guest.parked = guest.parked.strict_add_signed(*parked);
        }
        self.next_sequence = batch.next_sequence.or(self.next_sequence);
    }

    fn guest(&mut self, name: &str) -> &mut StoredGuest {
        self.guests.entry(name.to_owned()).or_insert_with(|| StoredGuest {
            name: name.into(),
            initialised: false,
            state: None,
            pending: 0,
            parked: 0,
        })
    }

    fn apply_world(&mut self, change: WorldChange) {
        match change {
            WorldChange::Entity { id, kind, position, thinker } => {
                let data = self.entities.remove(&id.0).map(|entity| entity.data).unwrap_or_default();
                let entity = EntitySnapshot { id, kind, position, thinker, connection: None, data };
                self.entities.insert(id.0, entity);
            }
            WorldChange::Despawned(id) => drop(self.entities.remove(&id.0)),
            WorldChange::Data { entity, name, value } => {
                let Some(entity) = self.entities.get_mut(&entity.0) else { return };
                match value {
                    Some(value) => entity.data.insert(name.into(), value),
                    None => entity.data.remove(&*name),
                };
            }
            WorldChange::Kv { space, key, value } => {
                let pairs = self.spaces.entry(space.to_string()).or_default();
                match value {
                    Some(value) => pairs.insert(key.into(), value),
                    None => pairs.remove(&*key),
                };
            }
            WorldChange::NextEntityId(next) => self.next_entity_id = Some(next),
        }
    }

    fn check_loaded(&self, loaded: Loaded) {
        assert!(loaded.is_exclusive);
        assert_eq!(loaded.next_sequence, self.next_sequence.unwrap_or(1));
        assert_eq!(loaded.world.next_id, self.next_entity_id.unwrap_or(1));
        let names: BTreeMap<ThinkerId, Arc<str>> = loaded.thinkers.into_iter().collect();
        let mut entities = loaded.world.entities;
        for entity in &mut entities {
            entity.thinker = entity.thinker.map(|thinker| {
                let place = THINKERS.iter().position(|name| **name == *names[&thinker]);
                ThinkerId(place.unwrap() as u32)
            });
        }
        assert_eq!(entities, self.entities.values().cloned().collect::<Vec<_>>());
        let spaces = self.spaces.iter().filter(|(_, pairs)| !pairs.is_empty());
        assert_eq!(loaded.world.spaces, spaces.map(|(name, pairs)| (name.clone(), pairs.clone())).collect());
        let guests: BTreeMap<_, _> = loaded.guests.iter().map(|guest| (guest.name.to_string(), guest)).collect();
        for (name, guest) in &self.guests {
            assert_eq!(guests[name], guest);
        }
        // Others have a row because something else names them.
        for (name, guest) in guests {
            assert!(self.guests.contains_key(&name) || (!guest.initialised && guest.pending == 0), "{name}");
        }
    }
}

/// Reads page by page up to the last. Each is as long as it may be and no longer.
fn in_pages<E>(size: PageSize, event: fn(&E) -> &Event, mut page: impl FnMut(Option<&Event>) -> Page<E>) -> Vec<E> {
    let bytes_of = |listed: &E| event(listed).payload.len();
    let mut events: Vec<E> = Vec::new();
    // The payloads of the page before, where it ended for their sake.
    let mut before: Option<usize> = None;
    loop {
        let Page { events: next, is_last } = page(events.last().map(event));
        let bytes: usize = next.iter().map(bytes_of).sum();
        assert!(next.len() <= size.limit && (bytes <= size.max_bytes || next.len() == 1));
        assert!(is_last || !next.is_empty());
        if let Some(first) = next.first() {
            let fits = before.is_some_and(|before| before + bytes_of(first) <= size.max_bytes);
            assert!(!fits, "the page before had room for it");
        }
        before = (next.len() < size.limit).then_some(bytes);
        events.extend(next);
        if is_last {
            return events;
        }
    }
}

/// A store that is open, with its two ends.
type Open = (SqliteStore, Box<dyn StoreWriter>, Box<dyn StoreReader>);

struct Bench {
    /// Nothing while the store is closed.
    open: Option<Open>,
    model: Model,
}

impl Bench {
    fn start(&mut self, directory: &Path) {
        let store = open(directory);
        self.model.check_loaded(store.load().unwrap());
        let thinkers = THINKERS.iter().enumerate().map(|(id, name)| (ThinkerId(id as u32), (*name).into()));
        let writer = store.writer(thinkers.collect()).unwrap();
        let reader = store.reader().unwrap();
        self.open = Some((store, writer, reader));
    }

    fn take(&mut self, step: Step, directory: &Path) {
        let (_, writer, reader) = self.open.as_mut().unwrap();
        match step {
            Step::Commit(mut batches) => {
                batches.iter_mut().for_each(|batch| self.model.apply_within_counts(batch));
                writer.commit(&batches).unwrap();
            }
            Step::Close => {
                let (store, writer, reader) = self.open.take().unwrap();
                drop(reader);
                writer.close().unwrap();
                drop(store);
                self.start(directory);
            }
            Step::Kill => {
                self.open = None;
                self.start(directory);
            }
            Step::List { guest, parked_only, longest_payload, size } => {
                let guest = guest.map(|guest| Arc::from(GUESTS[guest]));
                let PageSize { limit, max_bytes } = size;
                let listed = in_pages(
                    size,
                    |listed: &ListedEvent| &listed.event,
                    |last| {
                        let (guest, after) = (guest.clone(), last.map(Event::id));
                        let query = EventQuery { guest, parked_only, after, limit, max_bytes, longest_payload };
                        reader.events(&query).unwrap()
                    },
                );
                let is_asked = |event: &&Event| {
                    guest.as_ref().is_none_or(|guest| event.guest == *guest) && event.parked >= parked_only
                };
                let expected = self.model.events.values().filter(is_asked).map(|event| {
                    let is_short = event.payload.len() <= longest_payload;
                    let payload = if is_short { Arc::clone(&event.payload) } else { Arc::from([]) };
                    ListedEvent { event: Event { payload, ..event.clone() }, payload_bytes: event.payload.len() }
                });
                let mut expected: Vec<_> = expected.collect();
                expected.sort_by_key(|listed| listed.event.id());
                assert_eq!(listed, expected);
            }
            Step::Claim { guest, until_ms, size } => {
                let until = Place { next_ms: until_ms, sequence: 7 };
                let PageSize { limit, max_bytes } = size;
                let claimed = in_pages(
                    size,
                    |event| event,
                    |last| {
                        let after = last.map(Event::place);
                        reader.claim(&Claim { guest: GUESTS[guest].into(), after, until, limit, max_bytes }).unwrap()
                    },
                );
                let is_asked =
                    |event: &&Event| *event.guest == *GUESTS[guest] && !event.parked && event.place() <= until;
                let mut expected: Vec<_> = self.model.events.values().filter(is_asked).cloned().collect();
                expected.sort_by_key(Event::place);
                assert_eq!(claimed, expected);
                for event in &claimed {
                    assert_eq!(reader.event(event.sequence).unwrap().as_ref(), Some(event));
                }
            }
        }
    }
}

/// Few ids and few times, so that things meet.
fn world_change() -> impl Strategy<Value = WorldChange> {
    let value = || option::of(vec(any::<u8>(), 0..6));
    let position = (any::<u32>(), any::<i32>(), any::<i32>()).prop_map(|(map, x, y)| Position::new(map, x, y));
    let id = || (1..9u64).prop_map(EntityId);
    prop_oneof![
        4 => (id(), any::<u32>(), position, option::of((0..2u32).prop_map(ThinkerId)))
            .prop_map(|(id, kind, position, thinker)| WorldChange::Entity { id, kind, position, thinker }),
        2 => id().prop_map(WorldChange::Despawned),
        3 => (0..3usize, "[a-c]", value())
            .prop_map(|(space, key, value)| WorldChange::Kv { space: GUESTS[space].into(), key: key.into(), value }),
        1 => (1..u64::MAX / 2).prop_map(WorldChange::NextEntityId),
    ]
}

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![9 => 0..6u64, 1 => Just(LATEST_MS)]
}

fn event_change() -> impl Strategy<Value = EventChange> {
    let put = (1..14u64, time(), option::of(time()), 0..3u32, prop::bool::weighted(0.3));
    let put = put.prop_map(|(sequence, due_ms, next_ms, attempts, parked)| {
        // Guest, kind, payload and repetition of an event never change.
        let repeat = (sequence % 3 == 0).then_some(Repetition {
            interval_ms: sequence,
            missed: if sequence % 2 == 0 { MissedRuns::Coalesce } else { MissedRuns::CatchUp },
        });
        let error = repeat.map(|_| "no".into());
        let event = Event {
            guest: GUESTS[sequence as usize % 3].into(),
            kind: ["ripen", "settle"][sequence as usize % 2].into(),
            payload: vec![7; sequence as usize].into(),
            next_ms: next_ms.unwrap_or(due_ms),
            repeat,
            attempts,
            parked,
            error,
            ..Event::sample(sequence, due_ms)
        };
        EventChange::Put { event: Arc::new(event), claimed: sequence % 2 == 0 }
    });
    prop_oneof![4 => put, 1 => (1..14u64).prop_map(|sequence| EventChange::Removed { sequence })]
}

fn guest_change() -> impl Strategy<Value = GuestChange> {
    let guest = || (0..3usize).prop_map(|guest| GUESTS[guest].into());
    prop_oneof![
        guest().prop_map(|guest| GuestChange::Initialised { guest }),
        (guest(), option::of(vec(any::<u8>(), 0..4))).prop_map(|(guest, state)| GuestChange::Saved { guest, state }),
    ]
}

fn batch() -> impl Strategy<Value = Batch> {
    let count = (0..3usize, -5..9i64, -5..9i64).prop_map(|(guest, pending, parked)| EventCount {
        guest: GUESTS[guest].into(),
        pending,
        parked,
    });
    let parts =
        (vec(world_change(), 0..5), data(), vec(event_change(), 0..8), option::of(count), vec(guest_change(), 0..2));
    (parts, option::of(1..99u64)).prop_map(|((mut world, data, events, counts, guests), next_sequence)| {
        world.extend(data);
        let counts = counts.into_iter().collect();
        Batch { number: 1, world, events, counts, guests, next_sequence, bytes: 0 }
    })
}

/// Data of an entity that the same batch makes: without its entity there would be none.
fn data() -> impl Strategy<Value = Vec<WorldChange>> {
    let datum = ("[a-c]", option::of(vec(any::<u8>(), 0..6)));
    option::of((1..9u64, vec(datum, 1..4))).prop_map(|data| {
        let Some((id, data)) = data else { return vec![] };
        let entity = EntityId(id);
        let made = WorldChange::Entity { id: entity, kind: 1, position: Position::default(), thinker: None };
        let data = data.into_iter().map(|(name, value)| WorldChange::Data { entity, name: name.into(), value });
        [made].into_iter().chain(data).collect()
    })
}

fn page_size() -> impl Strategy<Value = PageSize> {
    (1..7usize, prop_oneof![Just(usize::MAX), 0..40usize]).prop_map(|(limit, max_bytes)| PageSize { limit, max_bytes })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => vec(batch(), 1..4).prop_map(Step::Commit),
        1 => Just(Step::Close),
        1 => Just(Step::Kill),
        2 => (option::of(0..3usize), any::<bool>(), prop_oneof![Just(usize::MAX), 0..14usize], page_size()).prop_map(
            |(guest, parked_only, longest_payload, size)| Step::List { guest, parked_only, longest_payload, size }
        ),
        3 => (0..3usize, time(), page_size())
            .prop_map(|(guest, until_ms, size)| Step::Claim { guest, until_ms, size }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_store_holds_what_plain_maps_hold(steps in vec(step(), 1..24)) {
        let directory = tempfile::tempdir().unwrap();
        let mut bench = Bench { open: None, model: Model::default() };
        bench.start(directory.path());
        for step in steps {
            bench.take(step, directory.path());
        }
        let (size, longest_payload) = (PageSize { limit: 3, max_bytes: 20 }, usize::MAX);
        bench.take(Step::List { guest: None, parked_only: false, longest_payload, size }, directory.path());
        for guest in 0..GUESTS.len() {
            bench.take(Step::Claim { guest, until_ms: LATEST_MS, size }, directory.path());
        }
        bench.take(Step::Kill, directory.path());
    }
}

fn page(reader: &mut dyn StoreReader, after: Option<Place>, limit: usize) -> Vec<Event> {
    claimed(reader, after, PageSize::of(limit)).events
}

fn claimed(reader: &mut dyn StoreReader, after: Option<Place>, PageSize { limit, max_bytes }: PageSize) -> Page {
    reader.claim(&Claim { guest: "rules".into(), after, until: Place::LAST, limit, max_bytes }).unwrap()
}

fn store_with(directory: &Path, events: impl IntoIterator<Item = Event>) -> (SqliteStore, Box<dyn StoreWriter>) {
    let store = open(directory);
    let mut writer = store.writer(vec![]).unwrap();
    writer.commit(&[Batch { number: 1, events: super::scratch::put(events), ..Batch::default() }]).unwrap();
    (store, writer)
}

#[test]
fn ten_events_at_1_2_3_4_5_5_5_5_5_5_come_in_pages_of_8_without_loss_or_repetition() {
    let directory = tempfile::tempdir().unwrap();
    let times = [1, 2, 3, 4, 5, 5, 5, 5, 5, 5];
    let (store, _writer) =
        store_with(directory.path(), (1..).zip(times).map(|(sequence, due_ms)| Event::sample(sequence, due_ms)));
    let mut reader = store.reader().unwrap();
    let first = page(&mut *reader, None, 8);
    let second = page(&mut *reader, first.last().map(Event::place), 8);
    assert_eq!(super::scratch::sequences(&first), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(super::scratch::sequences(&second), [9, 10]);
}

#[test]
fn a_page_whose_events_share_one_time_and_outnumber_the_limit_continues_exactly() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _writer) = store_with(directory.path(), (1..=30).map(|sequence| Event::sample(sequence, 5)));
    let mut reader = store.reader().unwrap();
    let size = PageSize::of(8);
    let all = in_pages(size, |event| event, |last| claimed(&mut *reader, last.map(Event::place), size));
    assert_eq!(super::scratch::sequences(&all), (1..=30).collect::<Vec<_>>());
}

#[test]
fn events_that_come_and_go_at_the_border_time_while_the_pager_stands_on_it_are_neither_lost_nor_repeated() {
    let directory = tempfile::tempdir().unwrap();
    let (store, mut writer) = store_with(directory.path(), (1..=6).map(|sequence| Event::sample(sequence, 5)));
    let mut reader = store.reader().unwrap();
    let first = page(&mut *reader, None, 4);
    let mut events = super::scratch::put([Event::sample(7, 5), Event::sample(8, 4), Event::sample(9, 6)]);
    events.push(EventChange::Removed { sequence: 4 });
    events.push(EventChange::Removed { sequence: 5 });
    // One that failed comes back at the border time too.
    events.extend(super::scratch::put([Event { next_ms: 5, attempts: 1, ..Event::sample(10, 1) }]));
    writer.commit(&[Batch { number: 2, events, ..Batch::default() }]).unwrap();
    let second = page(&mut *reader, first.last().map(Event::place), 4);
    assert_eq!(super::scratch::sequences(&first), [1, 2, 3, 4]);
    assert_eq!(super::scratch::sequences(&second), [6, 7, 10, 9]);
}

#[test]
fn a_page_ends_before_the_payload_that_is_too_much_and_never_before_its_first_event() {
    let directory = tempfile::tempdir().unwrap();
    let sized = |sequence, bytes, next_ms| {
        let payload = Arc::from(vec![7; bytes]);
        Event { payload, next_ms, ..Event::sample(sequence, sequence) }
    };
    // The second has failed and is in an index of its own, and the third, which is small, stands behind it.
    let events = [sized(1, 60, 1), sized(2, 60, 3), sized(3, 10, 4), sized(5, 500, 5), sized(6, 100, 6)];
    let (store, _writer) = store_with(directory.path(), events);
    let mut reader = store.reader().unwrap();
    let mut pages = Vec::new();
    loop {
        let last = pages.last().and_then(|page: &Page| page.events.last()).map(Event::place);
        pages.push(claimed(&mut *reader, last, PageSize { limit: 9, max_bytes: 100 }));
        if pages.last().unwrap().is_last {
            break;
        }
    }
    let sequences: Vec<_> = pages.iter().map(|page| super::scratch::sequences(&page.events)).collect();
    assert_eq!(sequences, [vec![1], vec![2, 3], vec![5], vec![6]]);
    let short = EventQuery { max_bytes: 100, longest_payload: 60, ..EventQuery::default() };
    let listed = reader.events(&EventQuery { limit: 3, ..short.clone() }).unwrap();
    assert_eq!((listed.is_last, listed.events.len()), (false, 1));
    let after = Some(Event::sample(2, 2).id());
    let listed = reader.events(&EventQuery { after, ..short }).unwrap();
    let told = listed.events.iter().map(|listed| (listed.event.payload.len(), listed.payload_bytes));
    assert_eq!((listed.is_last, told.collect::<Vec<_>>()), (true, vec![(10, 10), (0, 500), (0, 100)]));
}

#[test]
fn a_listing_goes_by_ids_whatever_has_failed() {
    let directory = tempfile::tempdir().unwrap();
    let failed = |sequence, due_ms, next_ms| Event { next_ms, attempts: 1, ..Event::sample(sequence, due_ms) };
    let parked = |sequence, due_ms| Event { parked: true, attempts: 5, ..Event::sample(sequence, due_ms) };
    let events =
        [failed(1, 10, 90), parked(2, 10), Event::sample(3, 10), Event::sample(4, 5), parked(5, 20), failed(6, 20, 21)];
    let (store, _writer) = store_with(directory.path(), events);
    let mut reader = store.reader().unwrap();
    let mut list = |parked_only, after, limit| {
        let query = EventQuery { parked_only, after, limit, ..EventQuery::default() };
        super::scratch::sequences(&reader.events(&query).unwrap().into_events().events)
    };
    assert_eq!(list(false, None, 3), [4, 1, 2]);
    assert_eq!(list(false, Some(EventId { due_ms: 10, sequence: 2 }), 3), [3, 5, 6]);
    assert_eq!(list(true, None, 9), [2, 5]);
    assert_eq!(super::scratch::sequences(&page(&mut *reader, None, 9)), [4, 3, 6, 1]);
}

#[test]
fn a_guest_or_an_event_that_nobody_knows_is_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _writer) = store_with(directory.path(), [Event::sample(1, 1)]);
    let mut reader = store.reader().unwrap();
    let nobody = Claim { guest: "nobody".into(), after: None, until: Place::LAST, limit: 9, max_bytes: 9 };
    assert_eq!(reader.claim(&nobody).unwrap(), Page::nothing());
    let nobody = EventQuery { guest: Some("nobody".into()), ..EventQuery::default() };
    assert_eq!(reader.events(&nobody).unwrap(), Page::nothing());
    assert_eq!((reader.event(2).unwrap(), reader.event(u64::MAX).unwrap()), (None, None));
    reader.release("nobody", Place::FIRST).unwrap();
    assert_eq!(reader.event(1).unwrap(), Some(Event::sample(1, 1)));
}
