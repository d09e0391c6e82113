//! The connection that writes: batches as one transaction, the commit mark behind it, and the log brought into the
//! database between commits. It belongs to one thread and never reads for anybody.

use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::checkpoint::{BRING_ALL, BRING_ALL_AND_EMPTY, BRING_SOME, Checkpoint, LogFill, MEASURE, checkpoint};
use super::files::Files;
use super::guest_ids::GuestIds;
use super::log_watch::{LogWatch, Loss};
use super::mark::CommitMark;
use super::rows::{Rows, Thinkers};
use super::{connection, errors, look};
use crate::store::{Batch, StoreError, StoreWriter};
use crate::world::ThinkerId;

/// Frames of the log at which it is brought into the database when nothing waits, about 4 MiB, and in any case. The more
/// there are, the more of them are of one page, which is written once; but the longer a batch waits that comes just then.
const FRAMES_WHEN_QUIET: u64 = 1000;
const FRAMES_IN_ANY_CASE: u64 = 4000;

/// Writes a database.
#[derive(Debug)]
pub struct SqliteWriter {
    connection: Connection,
    files: Files,
    watch: LogWatch,
    mark: CommitMark,
    mark_fails: bool,
    guests: GuestIds,
    thinkers: Thinkers,
    /// Commits that the database holds.
    commits: u64,
    log: LogFill,
    /// What was found wrong behind a commit that is safe, and is still to be told.
    found: Option<StoreError>,
}

impl SqliteWriter {
    /// Opens a database that is in use.
    pub fn open(files: &Files, thinkers: Vec<(ThinkerId, Arc<str>)>) -> Result<Self, StoreError> {
        let told = |error: rusqlite::Error| errors::opening(&files.database, &error);
        let connection = connection::writing(&files.database).map_err(told)?;
        // Reads the file, which opens the log as well.
        let commits = look::counter(&connection, "commits").map_err(told)?.unwrap_or(0) as u64;
        let page_bytes: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(told)?;
        let watch = LogWatch::new(files, page_bytes as u64).map_err(|error| errors::opening_io(&files.log, &error))?;
        let mark = CommitMark::open(&files.mark, commits).map_err(|error| errors::opening_io(&files.mark, &error))?;
        let mut writer = Self {
            connection,
            files: files.clone(),
            watch,
            mark,
            mark_fails: false,
            guests: GuestIds::default(),
            thinkers: thinkers.into_iter().collect(),
            commits,
            log: LogFill::default(),
            found: None,
        };
        writer.measure_log().map_err(told)?;
        Ok(writer)
    }

    pub(super) fn transact(&mut self, batches: &[Batch]) -> rusqlite::Result<()> {
        let transaction = Transaction::new(&mut self.connection, TransactionBehavior::Immediate)?;
        let mut rows = Rows::new(&transaction, &mut self.guests, &self.thinkers)?;
        for batch in batches {
            rows.put(batch)?;
        }
        rows.finish(self.commits + 1)?;
        transaction.commit()
    }

    /// Counts a commit that was made. From here on nothing may have it called not made, for it would be made again: only
    /// a loss of files that may have taken it along is told at once, and everything else at the next call.
    pub(super) fn committed(&mut self) -> Result<(), StoreError> {
        self.commits += 1;
        self.write_mark();
        if let Err(error) = self.measure_log() {
            // Without a measure a log of any length must do.
            self.watch.expect_frames(0);
            let error = errors::writing(&self.files.database, &error);
            if error.is_temporary() {
                tracing::warn!("the length of the write-ahead log is not known: {error}");
            } else {
                self.found = Some(error);
            }
        }
        match self.check_files() {
            // With this one all that was committed is in the database.
            Err(error @ StoreError::LogTaken { .. }) => self.found = Some(error),
            checked => checked?,
        }
        Ok(())
    }

    /// Looks whether writing may go on.
    fn check(&mut self) -> Result<(), StoreError> {
        self.found.take().map_or_else(|| self.check_files(), Err)
    }

    /// Brings everything into the database and leaves a log without content, so that nothing is lost with it. Whoever
    /// still reads keeps it from that, which does no harm.
    fn tidy(self) -> Result<(), StoreError> {
        let told = |error: rusqlite::Error| errors::writing(&self.files.database, &error);
        checkpoint(&self.connection, BRING_ALL_AND_EMPTY).map_err(told)?;
        self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(told)?;
        self.connection.close().map_err(|(_, error)| errors::writing(&self.files.database, &error))
    }

    /// Without its mark a commit is as safe as with it; only a loss of the log would go unnoticed.
    fn write_mark(&mut self) {
        let written = self.mark.write(self.commits);
        if let (Err(error), false) = (&written, self.mark_fails) {
            tracing::warn!("the commit mark {} cannot be written: {error}", self.files.mark.display());
        }
        self.mark_fails = written.is_err();
    }

    fn measure_log(&mut self) -> rusqlite::Result<()> {
        self.log = checkpoint(&self.connection, MEASURE)?.fill;
        self.watch.expect_frames(self.log.frames);
        Ok(())
    }

    /// Looks whether the files are still there, and saves what can be saved if they are not.
    fn check_files(&self) -> Result<(), StoreError> {
        let (file, log) = (self.files.database.clone(), self.files.log.clone());
        match self.watch.check(&self.files) {
            Ok(()) => Ok(()),
            Err(Loss::DatabaseTaken) => Err(StoreError::DatabaseTaken { file }),
            // What the log holds is pages of a whole that is not there any more.
            Err(Loss::DatabaseCut { found, expected }) => Err(StoreError::DatabaseCut { file, log, found, expected }),
            // Pages that were cut off read as nothing: they must not be brought into the database.
            Err(Loss::LogCut) => Err(StoreError::LogCut { file, log }),
            Err(Loss::LogTaken) => Err(match self.bring_all_in() {
                Ok(()) => StoreError::LogTaken { file, log },
                Err(reason) => StoreError::LogTakenUnsaved { file, log, reason },
            }),
        }
    }

    fn bring_all_in(&self) -> Result<(), String> {
        match checkpoint(&self.connection, BRING_ALL) {
            Ok(Checkpoint { is_busy: false, fill }) if fill.brought == fill.frames => Ok(()),
            Ok(_) => Err("somebody reads it".to_owned()),
            Err(error) => Err(errors::reason(&error)),
        }
    }

    /// Has the database refuse to grow, as on a full disk.
    #[cfg(test)]
    pub fn limit_pages(&self, pages: i64) {
        self.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
    }

    /// Has the log count as one that is to be brought into the database.
    #[cfg(test)]
    pub fn fill_log(&mut self) {
        self.log = LogFill { frames: FRAMES_IN_ANY_CASE, brought: 0 };
    }

    /// Has the log be in use, so that it cannot be brought into the database.
    #[cfg(test)]
    pub fn use_log(&self) {
        self.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    }
}

impl StoreWriter for SqliteWriter {
    fn commit(&mut self, batches: &[Batch]) -> Result<(), StoreError> {
        self.check()?;
        if let Err(error) = self.transact(batches) {
            self.guests.forget();
            return Err(errors::writing(&self.files.database, &error));
        }
        self.committed()
    }

    fn upkeep(&mut self, others_wait: bool) -> Result<(), StoreError> {
        self.found.take().map_or(Ok(()), Err)?;
        let limit = if others_wait { FRAMES_IN_ANY_CASE } else { FRAMES_WHEN_QUIET };
        if self.log.frames - self.log.brought < limit {
            return Ok(());
        }
        self.check_files()?;
        let brought = checkpoint(&self.connection, BRING_SOME);
        self.log = brought.map_err(|error| errors::writing(&self.files.database, &error))?.fill;
        self.watch.expect_database(&self.files);
        Ok(())
    }

    fn close(mut self: Box<Self>) -> Result<(), StoreError> {
        self.check()?;
        match self.tidy() {
            // The next start does it.
            Err(error) if error.is_temporary() => {
                tracing::warn!("everything is committed, but the write-ahead log stays: {error}");
                Ok(())
            }
            tidied => tidied,
        }
    }
}
