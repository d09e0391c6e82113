//! Reading the world when a host starts: tables from end to end in the order of their keys, with no look-up for a row,
//! and nothing that takes longer the more events are pending.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::sync::Arc;

use rusqlite::{Connection, Result};
use rustc_hash::FxHashMap;

use super::look::counter;
use crate::store::{Loaded, StoredGuest};
use crate::world::{EntityId, EntitySnapshot, Position, ThinkerId, WorldSnapshot};

/// Everything but the events. Thinkers are numbered by `guests.id`.
pub fn load(connection: &Connection) -> Result<Loaded> {
    // One moment for all tables.
    let moment = connection.unchecked_transaction()?;
    let (names, guests) = guests(&moment)?;
    let entities = entities(&moment)?;
    let used: BTreeSet<ThinkerId> = entities.iter().filter_map(|entity| entity.thinker).collect();
    let named = |id: ThinkerId| names.get(&i64::from(id.0)).map(|name| (id, Arc::clone(name)));
    let next = |name| counter(&moment, name).map(|value| value.unwrap_or(1) as u64);
    Ok(Loaded {
        is_exclusive: true,
        thinkers: used.into_iter().filter_map(named).collect(),
        guests,
        next_sequence: next("next_sequence")?,
        world: WorldSnapshot { next_id: next("next_entity_id")?, entities, spaces: spaces(&moment, &names)? },
    })
}

/// Names by id.
type Names = FxHashMap<i64, Arc<str>>;

fn guests(connection: &Connection) -> Result<(Names, Vec<StoredGuest>)> {
    let mut statement =
        connection.prepare("SELECT id, name, initialised, state, pending, parked FROM guests ORDER BY id")?;
    let rows = statement.query_map([], |row| {
        let name: Arc<str> = row.get(1)?;
        let guest = StoredGuest {
            name: Arc::clone(&name),
            initialised: row.get(2)?,
            state: row.get(3)?,
            pending: row.get::<_, i64>(4)?.max(0) as u64,
            parked: row.get::<_, i64>(5)?.max(0) as u64,
        };
        Ok(((row.get(0)?, name), guest))
    })?;
    rows.collect()
}

/// A value of an entity's data, with the entity's id.
type Datum = (i64, String, Vec<u8>);

fn entities(connection: &Connection) -> Result<Vec<EntitySnapshot>> {
    let mut data = connection.prepare("SELECT entity, name, value FROM entity_data ORDER BY entity, name")?;
    let data = data.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut data = data.peekable();
    let mut statement = connection.prepare("SELECT id, kind, map, x, y, thinker FROM entities ORDER BY id")?;
    let mut rows = statement.query([])?;
    let mut entities = Vec::new();
    while let Some(row) = rows.next()? {
        let id = row.get(0)?;
        entities.push(EntitySnapshot {
            id: EntityId(id as u64),
            kind: row.get(1)?,
            position: Position::new(row.get(2)?, row.get(3)?, row.get(4)?),
            thinker: row.get::<_, Option<u32>>(5)?.map(ThinkerId),
            connection: None,
            data: data_of(id, &mut data)?,
        });
    }
    Ok(entities)
}

/// The values of the entity, to which those before it have left the way clear. Both tables are read in the order of
/// the entities' ids.
fn data_of(id: i64, data: &mut Peekable<impl Iterator<Item = Result<Datum>>>) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut values = BTreeMap::new();
    while let Some(next) = data.next_if(|next| next.as_ref().map_or(true, |(entity, ..)| *entity <= id)) {
        let (entity, name, value) = next?;
        if entity == id {
            values.insert(name, value);
        }
    }
    Ok(values)
}

/// The name of a guest, and its keys with their values.
type Space = (String, BTreeMap<String, Vec<u8>>);

fn spaces(connection: &Connection, names: &Names) -> Result<BTreeMap<String, BTreeMap<String, Vec<u8>>>> {
    let mut spaces: BTreeMap<String, BTreeMap<String, Vec<u8>>> = BTreeMap::new();
    let mut statement = connection.prepare("SELECT guest, key, value FROM kv ORDER BY guest, key")?;
    let mut rows = statement.query([])?;
    // The space whose rows are read; its name is looked up once.
    let mut current: Option<(i64, Space)> = None;
    while let Some(row) = rows.next()? {
        let guest = row.get(0)?;
        if current.as_ref().is_none_or(|(id, _)| *id != guest) {
            spaces.extend(current.take().map(|(_, space)| space));
            let Some(name) = names.get(&guest) else { continue };
            current = Some((guest, (name.to_string(), BTreeMap::new())));
        }
        if let Some((_, (_, pairs))) = &mut current {
            pairs.insert(row.get(1)?, row.get(2)?);
        }
    }
    spaces.extend(current.map(|(_, space)| space));
    Ok(spaces)
}
