//! Batches as rows: the statements that write them, held for one transaction. What is only a number
//! is written once, at the end: of numbers the last, of differences the sum.

use std::sync::Arc;

use rusqlite::{CachedStatement, Connection, Result, params};
use rustc_hash::FxHashMap;

use super::guest_ids::GuestIds;
use crate::store::{Batch, Event, EventChange, EventCount, GuestChange, LATEST_MS, MissedRuns};
use crate::world::{ThinkerId, WorldChange};

/// Names of thinkers by the numbers that batches use.
pub type Thinkers = FxHashMap<ThinkerId, Arc<str>>;

/// What writes rows within one transaction.
pub struct Rows<'a> {
    connection: &'a Connection,
    guests: &'a mut GuestIds,
    thinkers: &'a Thinkers,
    put_entity: CachedStatement<'a>,
    delete_entity: CachedStatement<'a>,
    delete_all_data: CachedStatement<'a>,
    put_datum: CachedStatement<'a>,
    delete_datum: CachedStatement<'a>,
    put_pair: CachedStatement<'a>,
    delete_pair: CachedStatement<'a>,
    put_event: CachedStatement<'a>,
    delete_event: CachedStatement<'a>,
    next_entity_id: Option<u64>,
    next_sequence: Option<u64>,
    /// Differences in pending and parked events.
    counts: FxHashMap<Arc<str>, (i64, i64)>,
}

impl<'a> Rows<'a> {
    pub fn new(connection: &'a Connection, guests: &'a mut GuestIds, thinkers: &'a Thinkers) -> Result<Self> {
        let prepared = |sql| connection.prepare_cached(sql);
        Ok(Self {
            connection,
            guests,
            thinkers,
            put_entity: prepared(
                "INSERT INTO entities (id, kind, map, x, y, thinker) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (id) DO UPDATE SET kind = ?2, map = ?3, x = ?4, y = ?5, thinker = ?6",
            )?,
            delete_entity: prepared("DELETE FROM entities WHERE id = ?1")?,
            delete_all_data: prepared("DELETE FROM entity_data WHERE entity = ?1")?,
            put_datum: prepared(
                "INSERT INTO entity_data (entity, name, value) VALUES (?1, ?2, ?3)
                 ON CONFLICT (entity, name) DO UPDATE SET value = ?3",
            )?,
            delete_datum: prepared("DELETE FROM entity_data WHERE entity = ?1 AND name = ?2")?,
            put_pair: prepared(
                "INSERT INTO kv (guest, key, value) VALUES (?1, ?2, ?3)
                 ON CONFLICT (guest, key) DO UPDATE SET value = ?3",
            )?,
            delete_pair: prepared("DELETE FROM kv WHERE guest = ?1 AND key = ?2")?,
            put_event: prepared(
                "INSERT INTO events (sequence, guest, kind, payload, due_ms, next_ms, interval_ms, missed, attempts,
                                     parked, error)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
                 ON CONFLICT (sequence) DO UPDATE
                 SET due_ms = ?5, next_ms = ?6, attempts = ?9, parked = ?10, error = ?11",
            )?,
            delete_event: prepared("DELETE FROM events WHERE sequence = ?1")?,
            next_entity_id: None,
            next_sequence: None,
            counts: FxHashMap::default(),
        })
    }

    /// Writes a batch.
    pub fn put(&mut self, batch: &Batch) -> Result<()> {
        for change in &batch.world {
            self.put_world(change)?;
        }
        for change in &batch.events {
            match change {
                // A store that is this host's alone leases nothing.
                EventChange::Put { event, claimed: _ } => self.put_event(event)?,
                EventChange::Removed { sequence } => {
                    self.delete_event.execute([id(*sequence)])?;
                }
            }
        }
        for change in &batch.guests {
            self.put_guest(change)?;
        }
        for EventCount { guest, pending, parked } in &batch.counts {
            let sum = self.counts.entry(Arc::clone(guest)).or_default();
            *sum = (sum.0 + pending, sum.1 + parked);
        }
        self.next_sequence = batch.next_sequence.or(self.next_sequence);
        Ok(())
    }

    fn put_world(&mut self, change: &WorldChange) -> Result<()> {
        match change {
            WorldChange::Entity { id: entity, kind, position, thinker } => {
                let thinker = thinker.map(|thinker| self.thinker(thinker)).transpose()?.flatten();
                self.put_entity.execute(params![id(entity.0), kind, position.map, position.x, position.y, thinker])?;
            }
            WorldChange::Despawned(entity) => {
                self.delete_entity.execute([id(entity.0)])?;
                self.delete_all_data.execute([id(entity.0)])?;
            }
            WorldChange::Data { entity, name, value: Some(value) } => {
                self.put_datum.execute(params![id(entity.0), name, value])?;
            }
            WorldChange::Data { entity, name, value: None } => {
                self.delete_datum.execute(params![id(entity.0), name])?;
            }
            WorldChange::Kv { space, key, value } => {
                let guest = self.guests.give(self.connection, space)?;
                match value {
                    Some(value) => self.put_pair.execute(params![guest, key, value])?,
                    None => self.delete_pair.execute(params![guest, key])?,
                };
            }
            WorldChange::NextEntityId(next) => self.next_entity_id = Some(*next),
        }
        Ok(())
    }

    /// An NPC whose thinker has no name could not be given one when the world is read, and becomes a plain entity.
    fn thinker(&mut self, thinker: ThinkerId) -> Result<Option<i64>> {
        let Some(name) = self.thinkers.get(&thinker) else { return Ok(None) };
        self.guests.give(self.connection, name).map(Some)
    }

    fn put_event(&mut self, event: &Event) -> Result<()> {
        let guest = self.guests.give(self.connection, &event.guest)?;
        let repeat = event.repeat;
        self.put_event.execute(params![
            id(event.sequence),
            guest,
            &*event.kind,
            &*event.payload,
            time(event.due_ms),
            time(event.next_ms),
            repeat.map(|repeat| time(repeat.interval_ms)),
            repeat.map(|repeat| matches!(repeat.missed, MissedRuns::CatchUp)),
            event.attempts,
            event.parked,
            event.error.as_deref(),
        ])?;
        Ok(())
    }

    fn put_guest(&mut self, change: &GuestChange) -> Result<()> {
        match change {
            GuestChange::Initialised { guest } => {
                let id = self.guests.give(self.connection, guest)?;
                self.connection.prepare_cached("UPDATE guests SET initialised = 1 WHERE id = ?1")?.execute([id])?;
            }
            GuestChange::Saved { guest, state } => {
                let id = self.guests.give(self.connection, guest)?;
                let mut statement = self.connection.prepare_cached("UPDATE guests SET state = ?2 WHERE id = ?1")?;
                statement.execute(params![id, state])?;
            }
        }
        Ok(())
    }

    /// Writes what was only collected, and counts the commit.
    pub fn finish(self, commits: u64) -> Result<()> {
        let sql = "INSERT INTO counters (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2";
        let mut put_counter = self.connection.prepare_cached(sql)?;
        let next = [("next_entity_id", self.next_entity_id), ("next_sequence", self.next_sequence)];
        for (name, value) in next.into_iter().chain([("commits", Some(commits))]) {
            if let Some(value) = value {
                put_counter.execute(params![name, id(value)])?;
            }
        }
        let mut add_counts = self
            .connection
            .prepare_cached("UPDATE guests SET pending = pending + ?2, parked = parked + ?3 WHERE id = ?1")?;
        for (name, (pending, parked)) in &self.counts {
            let guest = self.guests.give(self.connection, name)?;
            add_counts.execute([guest, *pending, *parked])?;
        }
        Ok(())
    }
}

/// A number that is counted up from 1 by ones, and so never reaches what a database cannot hold.
fn id(number: u64) -> i64 {
    number as i64
}

fn time(ms: u64) -> i64 {
    ms.min(LATEST_MS) as i64
}
