//! The watch over the files that a running host writes to: whether the database and its write-ahead log are still the
//! ones that were opened, and whole. What is committed to a file that has lost its name is lost with the process, so the
//! writer asks before and after each commit. It costs two looks into a directory.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::files::{self, Files};

/// Bytes of a log before its first frame, and of a frame before its page.
const LOG_HEADER_BYTES: u64 = 32;
const FRAME_HEADER_BYTES: u64 = 24;

/// The files as they should be.
#[derive(Debug)]
pub struct LogWatch {
    database: (u64, u64),
    /// The database is at least this long.
    database_bytes: u64,
    log: (u64, u64),
    page_bytes: u64,
    /// The log is at least this long.
    log_bytes: u64,
}

/// What is wrong with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The database is another file or none.
    DatabaseTaken,
    /// The database is shorter than it was.
    DatabaseCut { found: u64, expected: u64 },
    /// The log is another file or none; the one that was opened is still whole.
    LogTaken,
    /// The log is shorter than it was.
    LogCut,
}

impl LogWatch {
    /// Watches the files as they are now, both of which are open.
    pub fn new(files: &Files, page_bytes: u64) -> io::Result<Self> {
        let identity = |file: &Path| fs::metadata(file).map(|metadata| (metadata.dev(), metadata.ino()));
        Ok(Self {
            database: identity(&files.database)?,
            database_bytes: files::length(&files.database)?,
            log: identity(&files.log)?,
            page_bytes,
            log_bytes: 0,
        })
    }

    /// Notes how long the database is, after the log was brought into it: nothing else changes that.
    pub fn expect_database(&mut self, files: &Files) {
        if let Ok(bytes) = files::length(&files.database) {
            self.database_bytes = bytes;
        }
    }

    /// Notes how many frames of the log hold something.
    pub fn expect_frames(&mut self, frames: u64) {
        self.log_bytes = match frames {
            0 => 0,
            frames => LOG_HEADER_BYTES + frames * (FRAME_HEADER_BYTES + self.page_bytes),
        };
    }

    /// Looks whether everything is there.
    pub fn check(&self, files: &Files) -> Result<(), Loss> {
        let found = |file: &Path| fs::metadata(file).ok();
        let is = |metadata: &fs::Metadata, known| (metadata.dev(), metadata.ino()) == known;
        match found(&files.database) {
            Some(metadata) if is(&metadata, self.database) => {
                let (found, expected) = (metadata.len(), self.database_bytes);
                if found < expected {
                    return Err(Loss::DatabaseCut { found, expected });
                }
            }
            _ => return Err(Loss::DatabaseTaken),
        }
        match found(&files.log) {
            Some(metadata) if is(&metadata, self.log) => {
                if metadata.len() < self.log_bytes {
                    return Err(Loss::LogCut);
                }
                Ok(())
            }
            _ => Err(Loss::LogTaken),
        }
    }
}
