//! What the tests of this room share: events and batches, a directory's files as they are, and a world to be found again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::SqliteStore;
use crate::store::{Batch, Event, EventChange, EventQuery, Loaded, Store, StoreReader};
use crate::world::{EntityId, Position, ThinkerId, WorldChange};

pub fn open(directory: &Path) -> SqliteStore {
    SqliteStore::open(directory).unwrap()
}

/// Why the directory is refused.
pub fn refusal(directory: &Path) -> crate::store::StoreError {
    SqliteStore::open(directory).unwrap_err()
}

pub fn put(events: impl IntoIterator<Item = Event>) -> Vec<EventChange> {
    events.into_iter().map(|event| EventChange::Put { event: Arc::new(event), claimed: false }).collect()
}

/// A batch that leaves its number in the key-value space, and an event.
pub fn numbered(number: u64) -> Batch {
    Batch {
        number,
        world: vec![WorldChange::Kv {
            space: "rules".into(),
            key: "number".into(),
            value: Some(number.to_string().into_bytes()),
        }],
        events: put([Event::sample(number, 1000 + number)]),
        next_sequence: Some(number + 1),
        ..Batch::default()
    }
}

/// The number of the last such batch that the store holds.
pub fn last_number(loaded: &Loaded) -> u64 {
    let value = loaded.world.spaces.get("rules").and_then(|space| space.get("number"));
    value.map_or(0, |value| String::from_utf8_lossy(value).parse().unwrap())
}

/// Commits such batches, one by one, and leaves without closing, as a kill does.
pub fn commit_and_be_killed(directory: &Path, numbers: std::ops::RangeInclusive<u64>) {
    let store = open(directory);
    let mut writer = store.writer(vec![]).unwrap();
    for number in numbers {
        writer.commit(&[numbered(number)]).unwrap();
    }
}

pub fn entity(id: u64, thinker: Option<u32>) -> WorldChange {
    let position = Position::new(3, -5, id as i32);
    WorldChange::Entity { id: EntityId(id), kind: 9, position, thinker: thinker.map(ThinkerId) }
}

pub fn all_events(reader: &mut dyn StoreReader) -> Vec<Event> {
    let query = EventQuery { limit: usize::MAX, max_bytes: usize::MAX, ..EventQuery::default() };
    let page = reader.events(&query).unwrap();
    assert!(page.is_last);
    page.into_events().events
}

pub fn sequences(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.sequence).collect()
}

/// All files of a directory with their content.
pub fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    files.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

/// Makes the directory hold these files and no others.
pub fn put_back(directory: &Path, wanted: &BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    for (name, content) in wanted {
        fs::write(directory.join(name), content).unwrap();
    }
}
