//! The store in one file of the data directory, by SQLite with a write-ahead log. A host opens it once and has it for
//! itself: the lock on the data directory sees to that. What is here never guesses: a database that is not whole, not
//! ours or not known is refused and left as it is.
//!
//! [`look`] is what an opening reads before anything is touched. Reading the world ([`load`]) leaves no trace either;
//! only with the first writer or reader the database is taken into use.

mod backup;
mod checkpoint;
mod connection;
mod create;
mod errors;
mod files;
mod guest_ids;
mod load;
mod log_watch;
mod look;
mod mark;
mod read;
mod rows;
mod schema;
mod write;

#[cfg(test)]
mod backup_tests;
#[cfg(test)]
mod full_disk_tests;
#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod open_tests;
#[cfg(test)]
mod scratch;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use self::checkpoint::{BRING_ALL_AND_EMPTY, Checkpoint, checkpoint};
use self::files::Files;
use self::look::Whole;
use self::mark::CommitMark;
use self::read::SqliteReader;
use self::write::SqliteWriter;
use crate::store::{Loaded, Store, StoreError, StoreReader, StoreWriter};
use crate::world::ThinkerId;

/// A database in a data directory.
#[derive(Debug)]
pub struct SqliteStore {
    files: Files,
    stage: Mutex<Stage>,
}

/// How far the store has come.
#[derive(Debug)]
struct Stage {
    /// Reads it without touching it, until it is in use.
    view: Option<Connection>,
    is_used: bool,
}

impl SqliteStore {
    /// Opens the database in `data_dir`, or makes one where there is nothing. An error leaves everything as it was.
    pub fn open(data_dir: &Path) -> Result<Self, StoreError> {
        let files = Files::of(data_dir);
        let whole = look::look(&files)?;
        create::remove_unfinished(&files)?;
        let view = match whole {
            None => {
                create::create(&files)?;
                look::view(&files)?
            }
            Some(Whole { view, is_old: true }) => bring_forward(&files, view)?,
            Some(Whole { view, is_old: false }) => view,
        };
        Ok(Self { files, stage: Mutex::new(Stage { view: Some(view), is_used: false }) })
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the database into use, if it is not yet: all that the log holds is brought into it, it gets the number of
    /// this run, and the commit mark is made.
    fn use_it(&self) -> Result<(), StoreError> {
        let mut stage = self.stage();
        if !stage.is_used {
            // It keeps others away, and the writer is another.
            stage.view = None;
            take_into_use(&self.files)?;
            stage.is_used = true;
        }
        Ok(())
    }
}

impl Store for SqliteStore {
    fn load(&self) -> Result<Loaded, StoreError> {
        let told = |error| errors::reading(&self.files.database, &error);
        let mut stage = self.stage();
        if stage.is_used {
            drop(stage);
            return load::load(&connection::reading(&self.files.database).map_err(told)?).map_err(told);
        }
        let view = match stage.view.take() {
            Some(view) => view,
            // It gave way to a use that came to nothing.
            None => look::view(&self.files)?,
        };
        load::load(stage.view.insert(view)).map_err(told)
    }

    fn writer(&self, thinkers: Vec<(ThinkerId, Arc<str>)>) -> Result<Box<dyn StoreWriter>, StoreError> {
        self.use_it()?;
        Ok(Box::new(SqliteWriter::open(&self.files, thinkers)?))
    }

    fn reader(&self) -> Result<Box<dyn StoreReader>, StoreError> {
        self.use_it()?;
        Ok(Box::new(SqliteReader::open(&self.files)?))
    }
}

/// Brings an older layout forward, once everything in the file has been found whole. Answers with a new view.
fn bring_forward(files: &Files, view: Connection) -> Result<Connection, StoreError> {
    let told = |error: rusqlite::Error| errors::opening(&files.database, &error);
    let verdict: String = view.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(told)?;
    if verdict != "ok" {
        return Err(StoreError::Damaged { file: files.database.clone(), reason: errors::in_one_line(&verdict) });
    }
    drop(view);
    let mut connection = connection::writing(&files.database).map_err(told)?;
    schema::bring_forward(&mut connection).map_err(|error| errors::laying_out(&files.database, &error))?;
    drop(connection);
    look::view(files)
}

/// Begins a run. First everything in the log is brought into the database, so that with the new run there is nothing else
/// in the log: a kill before that is brought in too leaves a log of another run than the database, but with as many
/// commits.
fn take_into_use(files: &Files) -> Result<(), StoreError> {
    const NEW_RUN: &str = "
        BEGIN IMMEDIATE;
        INSERT OR REPLACE INTO counters (name, value) SELECT 'previous_run', value FROM counters WHERE name = 'run';
        INSERT OR REPLACE INTO counters (name, value) VALUES ('run', random());
        COMMIT;";
    let told = |error: rusqlite::Error| errors::writing(&files.database, &error);
    let connection = connection::writing(&files.database).map_err(|error| errors::opening(&files.database, &error))?;
    create::turn_to_log(&connection, files)?;
    let bring_all_in = || match checkpoint(&connection, BRING_ALL_AND_EMPTY).map_err(told)? {
        Checkpoint { is_busy: true, .. } => {
            Err(StoreError::Open { file: files.database.clone(), reason: errors::LOCKED.to_owned() })
        }
        Checkpoint { is_busy: false, .. } => Ok(()),
    };
    bring_all_in()?;
    connection.execute_batch(NEW_RUN).map_err(told)?;
    bring_all_in()?;
    let commits = look::counter(&connection, "commits").map_err(told)?.unwrap_or(0) as u64;
    CommitMark::open(&files.mark, commits).map(|_| ()).map_err(|error| errors::opening_io(&files.mark, &error))
}
