//! The ways in which a database is opened: to look at it without a trace, to write, to read beside the writer. Each
//! sets what its use needs; none brings the log into the database when it is closed unless told so, so that a connection
//! that is dropped leaves what a killed process leaves.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Result};

/// How long a statement waits for a lock that somebody else holds, a person with a shell of SQLite for example.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// Pages that a connection keeps in memory.
const WRITER_CACHE_KIB: i64 = 8 * 1024;
const READER_CACHE_KIB: i64 = 2 * 1024;

/// What is left of a log that had grown, once its content is in the database.
const LOG_KEPT_BYTES: i64 = 16 * 1024 * 1024;

/// Enough for every statement that a connection has.
const CACHED_STATEMENTS: usize = 32;

const READ_WRITE: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);
const READ_ONLY: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// Looks at the database file alone, as if there were no log. Takes no lock, makes no file, changes nothing.
pub fn view_without_log(database: &Path) -> Result<Connection> {
    let mut uri = b"file:".to_vec();
    for byte in absolute(database).as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(*byte),
            byte if byte.is_ascii_alphanumeric() => uri.push(*byte),
            byte => uri.extend(format!("%{byte:02X}").bytes()),
        }
    }
    uri.extend(b"?immutable=1");
    set_up(
        Connection::open_with_flags(OsString::from_vec(uri), READ_ONLY | OpenFlags::SQLITE_OPEN_URI)?,
        READER_CACHE_KIB,
    )
}

/// Looks at the database together with its log, and keeps everybody else away. In this mode the index of the log is
/// kept in memory, so that nothing is written even where the log is cut or damaged. The log must be there: otherwise an
/// empty one would be made.
pub fn view_with_log(database: &Path) -> Result<Connection> {
    let connection = Connection::open_with_flags(absolute(database), READ_WRITE)?;
    // Before anything is read, as other settings do, or the index would be made as a file.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "query_only", true)?;
    set_up(connection, READER_CACHE_KIB)
}

/// Writes. What is committed is on disk when the commit returns. The log is brought into the database by whoever holds
/// the connection, when it suits them, and not by a commit for which somebody waits.
pub fn writing(database: &Path) -> Result<Connection> {
    let connection = set_up(Connection::open_with_flags(absolute(database), READ_WRITE)?, WRITER_CACHE_KIB)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", LOG_KEPT_BYTES)?;
    Ok(connection)
}

/// Reads what is committed while somebody else writes.
pub fn reading(database: &Path) -> Result<Connection> {
    set_up(Connection::open_with_flags(absolute(database), READ_ONLY)?, READER_CACHE_KIB)
}

fn set_up(connection: Connection, cache_kib: i64) -> Result<Connection> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // Negative means KiB.
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // A damaged page is to be noticed when it is read.
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

/// SQLite takes a name that begins with `file:` for something else.
fn absolute(path: &Path) -> std::path::PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
