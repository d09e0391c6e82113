//! The peer: SQLite as one would use it without a host, given the same rows in the same table with the same indices, as
//! safe from a power cut as ours.

use std::path::Path;

use rusqlite::{Connection, Result, params};
use wheelhouse::store::agenda::NewEvent;

/// The store's own layout.
const LAYOUT: &str = concat!(
    include_str!("../../src/store/sqlite/0001_world.sql"),
    include_str!("../../src/store/sqlite/0002_events.sql"),
);

/// As much as the store's writer has.
const CACHE_KIB: i64 = 8 * 1024;

/// A database with a table for events.
pub struct Raw {
    connection: Connection,
}

impl Raw {
    pub fn create(folder: &Path) -> Result<Self> {
        let connection = Connection::open(folder.join("raw.db"))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        connection.execute_batch(LAYOUT)?;
        connection.execute("INSERT INTO guests (id, name) VALUES (1, 'clockwork')", [])?;
        Ok(Self { connection })
    }

    /// Inserts the events, so many to a transaction, and closes the database, which brings the rest of the log into it.
    pub fn insert(mut self, events: &[NewEvent], rows_per_commit: usize) -> Result<()> {
        let mut sequence: i64 = 0;
        for batch in events.chunks(rows_per_commit) {
            let transaction = self.connection.transaction()?;
            let mut insert = transaction.prepare_cached(
                "INSERT INTO events (sequence, guest, kind, payload, due_ms, next_ms, interval_ms, missed, attempts,
                                     parked, error)
                 VALUES (?1, 1, ?2, ?3, ?4, ?4, NULL, NULL, 0, 0, NULL)",
            )?;
            for event in batch {
                sequence += 1;
                insert.execute(params![sequence, &*event.kind, &*event.payload, event.due_ms as i64])?;
            }
            drop(insert);
            transaction.commit()?;
        }
        self.connection.close().map_err(|(_, error)| error)
    }
}
