//! The rows of `guests` by name. The writer gives a name its row when it first meets it.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Result};
use rustc_hash::FxHashMap;

/// Ids that were looked up or given before.
#[derive(Debug, Default)]
pub struct GuestIds {
    by_name: FxHashMap<Arc<str>, i64>,
}

impl GuestIds {
    /// The id of a guest, which gets a row if it has none.
    pub fn give(&mut self, connection: &Connection, name: &Arc<str>) -> Result<i64> {
        if let Some(id) = self.find(connection, name)? {
            return Ok(id);
        }
        let mut statement = connection.prepare_cached("INSERT INTO guests (name) VALUES (?1)")?;
        let id = statement.insert([&**name])?;
        self.by_name.insert(Arc::clone(name), id);
        Ok(id)
    }

    /// The id of a guest that has one.
    pub fn find(&mut self, connection: &Connection, name: &str) -> Result<Option<i64>> {
        if let Some(id) = self.by_name.get(name) {
            return Ok(Some(*id));
        }
        let mut statement = connection.prepare_cached("SELECT id FROM guests WHERE name = ?1")?;
        let id = statement.query_row([name], |row| row.get(0)).optional()?;
        if let Some(id) = id {
            self.by_name.insert(name.into(), id);
        }
        Ok(id)
    }

    /// Forgets all, since a transaction that may have given ids was rolled back.
    pub fn forget(&mut self) {
        self.by_name.clear();
    }
}
