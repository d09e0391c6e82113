//! A new database: made under another name, and given its own only when it is whole and on disk. A kill in between leaves
//! a file that the next start removes, never half a database.

use std::fs::{self, File};
use std::io;

use rusqlite::{Connection, OpenFlags};

use super::errors;
use super::files::{self, Files};
use super::schema;
use crate::store::StoreError;

/// Removes what a creation that was cut short has left.
pub fn remove_unfinished(files: &Files) -> Result<(), StoreError> {
    let name = files.unfinished.as_os_str();
    for ending in ["", "-journal", "-wal", "-shm"] {
        let mut file = name.to_owned();
        file.push(ending);
        files::remove(file.as_ref()).map_err(|error| errors::opening_io(file.as_ref(), &error))?;
    }
    Ok(())
}

/// Makes an empty database. There must be none, nor anything else of one.
pub fn create(files: &Files) -> Result<(), StoreError> {
    let made = write_unfinished(files);
    if made.is_err() {
        // What stays is removed at the next start.
        let _ = remove_unfinished(files);
    }
    made
}

fn write_unfinished(files: &Files) -> Result<(), StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let file_system = |error: io::Error| errors::opening_io(&files.database, &error);
    let sqlite = |error: rusqlite::Error| errors::writing(&files.database, &error);
    let path = std::path::absolute(&files.unfinished).map_err(file_system)?;
    let mut connection = Connection::open_with_flags(path, flags).map_err(sqlite)?;
    connection.pragma_update(None, "application_id", schema::APPLICATION_ID).map_err(sqlite)?;
    schema::bring_forward(&mut connection).map_err(|error| errors::laying_out(&files.database, &error))?;
    turn_to_log(&connection, files)?;
    // Brings the log into the file and removes it.
    connection.close().map_err(|(_, error)| sqlite(error))?;
    let named = || -> io::Result<()> {
        File::open(&files.unfinished)?.sync_all()?;
        fs::rename(&files.unfinished, &files.database)?;
        files::sync_directory(&files.data_dir)
    };
    named().map_err(file_system)
}

/// Has the database keep a write-ahead log, if it does not: backups do not.
pub fn turn_to_log(connection: &Connection, files: &Files) -> Result<(), StoreError> {
    let mode = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
    match mode.map_err(|error| errors::writing(&files.database, &error))?.as_str() {
        "wal" => Ok(()),
        _ => Err(StoreError::Open {
            file: files.database.clone(),
            reason: "the file system cannot share memory between programs, which its write-ahead log needs; name another data_dir".to_owned(),
        }),
    }
}
