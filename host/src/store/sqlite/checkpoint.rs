//! Bringing the write-ahead log into the database, in the ways that SQLite has for it. Called by whoever holds a
//! connection that writes, at a time of its choice.

use rusqlite::{Connection, Result};

/// Only tells how full the log is.
pub const MEASURE: &str = "PRAGMA wal_checkpoint(NOOP)";
/// Brings into the database what nobody needs in the log, without waiting for anybody.
pub const BRING_SOME: &str = "PRAGMA wal_checkpoint(PASSIVE)";
/// Brings everything in, and waits a little for others if it must.
pub const BRING_ALL: &str = "PRAGMA wal_checkpoint(FULL)";
/// The same, and leaves a log without content.
pub const BRING_ALL_AND_EMPTY: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Checkpoint {
    /// Whether somebody kept it from being finished.
    pub is_busy: bool,
    pub fill: LogFill,
}

/// How full the log is.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogFill {
    pub frames: u64,
    /// Of these, how many are in the database as well.
    pub brought: u64,
}

/// Does it in one of these ways.
pub fn checkpoint(connection: &Connection, how: &str) -> Result<Checkpoint> {
    connection.prepare_cached(how)?.query_row([], |row| {
        // -1 where there is no log yet.
        let frames = |at| row.get::<_, i64>(at).map(|frames| frames.max(0) as u64);
        Ok(Checkpoint { is_busy: row.get(0)?, fill: LogFill { frames: frames(1)?, brought: frames(2)? } })
    })
}
