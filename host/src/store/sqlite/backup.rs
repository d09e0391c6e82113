//! A copy of everything as it is at one moment, while the host goes on. The copy is written beside the wanted file under
//! a name of its own, and gets its name only when it is whole and on disk; an interrupted one is removed. Put into an empty data directory as
//! `world.db` it is a world.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use tempfile::TempPath;

use super::errors;
use super::files::{self, Files};
use crate::store::StoreError;

/// Writes the copy. There must be no such file, and it may not have a name that the store has use for.
pub fn write(connection: &Connection, files: &Files, file: &Path) -> Result<(), StoreError> {
    const EXISTS: &str = "there is a file of that name already; name a new one";
    let refused = |reason: &dyn ToString| StoreError::Backup { file: file.to_owned(), reason: reason.to_string() };
    let io = |error: io::Error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => refused(&errors::FULL),
        _ => refused(&format_args!("{error}; name a new file in another folder")),
    };
    let path = std::path::absolute(file).map_err(io)?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(refused(&"it names no file; name a new one"));
    };
    if name.as_bytes().starts_with(b"world.") && is_same(folder, &files.data_dir) {
        return Err(StoreError::BackupName { file: file.to_owned(), data_dir: files.data_dir.clone() });
    }
    if path.symlink_metadata().is_ok() {
        return Err(refused(&EXISTS));
    }
    let prefix = format!(".{}.", name.to_string_lossy());
    remove_leftovers(folder, &prefix);
    let partial = tempfile::Builder::new().prefix(&prefix).suffix(SUFFIX).tempfile_in(folder).map_err(io)?;
    let (opened, partial) = partial.into_parts();
    // By this it is known from a leftover. A file system that has no locks has backups all the same.
    let _ = opened.try_lock();
    fill(connection, &partial).map_err(|error| match errors::reading(&files.database, &error) {
        // Read page by page, a database shows its damage if it has any; the copy has none.
        damaged if damaged.is_damage() => damaged,
        _ if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            StoreError::BackupInterrupted { file: file.to_owned() }
        }
        _ => refused(&errors::reason(&error)),
    })?;
    opened.sync_all().map_err(io)?;
    partial.persist_noclobber(&path).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => refused(&EXISTS),
        _ => io(error.error),
    })?;
    files::sync_directory(folder).map_err(io)
}

/// Whether two folders are one, by whatever way they are named.
fn is_same(folder: &Path, other: &Path) -> bool {
    match (fs::canonicalize(folder), fs::canonicalize(other)) {
        (Ok(folder), Ok(other)) => folder == other,
        _ => false,
    }
}

/// How the names of copies end that are not whole.
const SUFFIX: &str = ".partial";

/// Removes copies for the same name whose writing was cut short by the end of the process. What cannot be removed is in
/// nobody's way.
fn remove_leftovers(folder: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let is_random = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    for entry in entries.flatten() {
        let name = entry.file_name();
        let random = name.to_str().and_then(|name| name.strip_prefix(prefix)?.strip_suffix(SUFFIX));
        // One that is being written is locked.
        if random.is_some_and(is_random) && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            drop(journal_of(&entry.path()));
            let _ = files::remove(&entry.path());
        }
    }
}

fn journal_of(partial: &Path) -> Journal {
    let mut journal = partial.as_os_str().to_owned();
    journal.push("-journal");
    Journal(journal)
}

/// Removes the journal of a copy that has failed; the copy itself removes itself.
struct Journal(std::ffi::OsString);

impl Drop for Journal {
    fn drop(&mut self) {
        // There is none after a success.
        let _ = files::remove(self.0.as_ref());
    }
}

fn fill(connection: &Connection, partial: &TempPath) -> rusqlite::Result<()> {
    let _journal = journal_of(partial);
    let name = partial.to_str().ok_or_else(|| rusqlite::Error::InvalidPath(partial.to_path_buf()))?;
    connection.execute("VACUUM INTO ?1", [name])?;
    // A run of its own: the log of the original is nothing to the copy.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let copy = Connection::open_with_flags(partial, flags)?;
    copy.execute_batch(
        "PRAGMA journal_mode = MEMORY;
         UPDATE counters SET value = random() WHERE name = 'run';
         DELETE FROM counters WHERE name = 'previous_run';",
    )?;
    copy.close().map_err(|(_, error)| error)
}
