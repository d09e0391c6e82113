//! The look at a data directory before anything in it is touched: whether there is a world, whether this program can
//! run it, and whether it is all there. Whatever is refused here is left as it was, byte for byte, so that the operator
//! can put it right. Called when a store is opened; never writes.

use std::fs::{self, File};
use std::io::{self, Read};

use rusqlite::{Connection, OptionalExtension};

use super::connection;
use super::errors;
use super::files::{self, Files};
use super::mark::{self, Found};
use super::schema;
use crate::store::StoreError;

/// A database that is whole.
pub struct Whole {
    /// Reads it without touching it; keeps others away if there is a log.
    pub view: Connection,
    /// Whether its layout is an older one.
    pub is_old: bool,
}

/// Looks. Nothing is an answer too: a new world can begin.
pub fn look(files: &Files) -> Result<Option<Whole>, StoreError> {
    match fs::symlink_metadata(&files.database) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return nothing_left(files).map(|()| None),
        Err(error) => return Err(errors::opening_io(&files.database, &error)),
    }
    check_header(files)?;
    let view = view(files)?;
    let version = pragma(&view, "user_version").map_err(|error| errors::opening(&files.database, &error))?;
    if version > schema::VERSION {
        return Err(StoreError::Newer { file: files.database.clone(), found: version, known: schema::VERSION });
    }
    if version < 1 {
        return Err(damaged(files, "it has no layout"));
    }
    check_mark(files, &view)?;
    Ok(Some(Whole { view, is_old: version < schema::VERSION }))
}

/// A connection that reads everything committed and leaves no trace.
pub fn view(files: &Files) -> Result<Connection, StoreError> {
    let sqlite = |error: rusqlite::Error| errors::opening(&files.database, &error);
    if !has_log(files)? {
        return connection::view_without_log(&files.database).map_err(sqlite);
    }
    // Before the other view is there: closing this one lets go of the locks that the process has on the file.
    let base = base_of_log(files);
    let view = connection::view_with_log(&files.database).map_err(sqlite)?;
    if let Some(base) = base {
        check_log(files, base, &view)?;
    }
    Ok(view)
}

/// Whether anything but the database file itself may hold some of its content.
fn has_log(files: &Files) -> Result<bool, StoreError> {
    let length = |file| files::length(file).map_err(|error| errors::opening_io(file, &error));
    Ok(length(&files.log)? > 0 || length(&files.journal)? > 0)
}

/// Without its database, a log or a mark means that something was lost, and a new database must not get them.
fn nothing_left(files: &Files) -> Result<(), StoreError> {
    for left in [&files.log, &files.journal, &files.mark] {
        if files::length(left).map_err(|error| errors::opening_io(left, &error))? > 0 {
            return Err(StoreError::Gone { file: files.database.clone(), left: left.clone() });
        }
    }
    if files.old_save.exists() {
        return Err(StoreError::OldSave { file: files.old_save.clone() });
    }
    Ok(())
}

/// Looks at the first bytes before SQLite does, which takes an empty file for an empty database, and a piece of a page
/// for a page.
fn check_header(files: &Files) -> Result<(), StoreError> {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    const BYTES: usize = 100;
    let unreadable = |error| errors::opening_io(&files.database, &error);
    let mut header = Vec::new();
    let file = File::open(&files.database).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    file.take(BYTES as u64).read_to_end(&mut header).map_err(unreadable)?;
    if header.is_empty() {
        return Err(damaged(files, "it is empty"));
    }
    if !header.starts_with(MAGIC) {
        return Err(damaged(files, "it does not begin as a database does"));
    }
    if header.len() < BYTES {
        return Err(damaged(files, "it is cut off"));
    }
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if number(68) != schema::APPLICATION_ID as u32 {
        return Err(StoreError::Foreign { file: files.database.clone() });
    }
    // While the log is brought into the file, it may be shorter than it is going to be.
    let pages = u64::from(number(28));
    if !has_log(files)? && length < pages * page_bytes(&header) {
        return Err(damaged(files, "it is cut off"));
    }
    Ok(())
}

/// The size of a page by the header of a database, in which 1 stands for what two bytes cannot hold.
fn page_bytes(header: &[u8]) -> u64 {
    match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        bytes => u64::from(bytes),
    }
}

/// Whether the database holds as many commits as were made.
fn check_mark(files: &Files, view: &Connection) -> Result<(), StoreError> {
    let (file, mark) = (&files.database, &files.mark);
    let expected = match mark::read(mark).map_err(|error| errors::opening_io(mark, &error))? {
        Found::Nothing => return Ok(()),
        Found::Commits(expected) => expected,
        Found::Garbage => return Err(StoreError::MarkDamaged { file: file.clone(), mark: mark.clone() }),
    };
    let found = counter(view, "commits").map_err(|error| errors::opening(file, &error))?.unwrap_or(0) as u64;
    if found < expected {
        return Err(StoreError::LogLost { file: file.clone(), mark: mark.clone(), found, expected });
    }
    Ok(())
}

/// What the database file says by itself, without the log.
#[derive(Clone, Copy)]
struct Base {
    run: i64,
    commits: i64,
}

/// Nothing if the file cannot be read by itself, which a kill while the log was brought into it may cause.
fn base_of_log(files: &Files) -> Option<Base> {
    let file = connection::view_without_log(&files.database).ok()?;
    Some(Base { run: counter(&file, "run").ok()??, commits: counter(&file, "commits").ok()?? })
}

/// Whether the log continues this database, and not the one that was here before a backup or an older copy took its
/// place: SQLite would lay the pages of one over the other.
fn check_log(files: &Files, base: Base, view: &Connection) -> Result<(), StoreError> {
    let counter = |name| counter(view, name).map_err(|error| errors::opening(&files.database, &error));
    let commits = counter("commits")?;
    let continues = counter("run")? == Some(base.run) && commits >= Some(base.commits);
    // Killed just after this run had begun.
    let begins = counter("previous_run")? == Some(base.run) && commits == Some(base.commits);
    if continues || begins {
        return Ok(());
    }
    Err(StoreError::LogForeign { file: files.database.clone(), log: files.log.clone() })
}

/// The value of a counter.
pub fn counter(connection: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    connection.query_row("SELECT value FROM counters WHERE name = ?1", [name], |row| row.get(0)).optional()
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

fn damaged(files: &Files, reason: &str) -> StoreError {
    StoreError::Damaged { file: files.database.clone(), reason: reason.to_owned() }
}
