//! A copy of everything as it is at one moment, while the host goes on. The copy is written beside the wanted file under
//! a name of its own, and gets its name only when it is whole and on disk. Put into an empty data directory as
//! `world.db` it is a world.

use std::fs::File;
use std::io;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use tempfile::TempPath;

use super::{errors, files};
use crate::store::StoreError;

/// Writes the copy. There must be no such file.
pub fn write(connection: &Connection, file: &Path) -> Result<(), StoreError> {
    copy(connection, file).map_err(|reason| StoreError::Backup { file: file.to_owned(), reason })
}

fn copy(connection: &Connection, file: &Path) -> Result<(), String> {
    const EXISTS: &str = "there is a file of that name already";
    let io = |error: io::Error| error.to_string();
    let file = std::path::absolute(file).map_err(io)?;
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
        return Err("it names no file".to_owned());
    };
    if file.symlink_metadata().is_ok() {
        return Err(EXISTS.to_owned());
    }
    let partial = tempfile::Builder::new()
        .prefix(&format!(".{}.", name.to_string_lossy()))
        .suffix(".partial")
        .tempfile_in(folder)
        .map_err(|error| error.to_string())?
        .into_temp_path();
    fill(connection, &partial).map_err(|error| errors::reason(&error))?;
    File::open(&partial).and_then(|copy| copy.sync_all()).map_err(io)?;
    partial.persist_noclobber(&file).map_err(|refused| match refused.error.kind() {
        io::ErrorKind::AlreadyExists => EXISTS.to_owned(),
        _ => refused.error.to_string(),
    })?;
    files::sync_directory(folder).map_err(io)
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
    let mut journal = partial.as_os_str().to_owned();
    journal.push("-journal");
    let _journal = Journal(journal);
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
