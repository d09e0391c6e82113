//! The names of the store's files in the data directory, and how a directory is made to remember its entries.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Where everything lies.
#[derive(Clone, Debug)]
pub struct Files {
    pub data_dir: PathBuf,
    pub database: PathBuf,
    /// SQLite's write-ahead log: the newest commits, until they are brought into the database.
    pub log: PathBuf,
    /// SQLite's rollback journal, which a database has only while it is turned to a write-ahead log.
    pub journal: PathBuf,
    /// The commit mark.
    pub mark: PathBuf,
    /// A database that is being created.
    pub unfinished: PathBuf,
    /// What earlier development versions wrote.
    pub old_save: PathBuf,
}

impl Files {
    pub fn of(data_dir: &Path) -> Self {
        let file = |name| data_dir.join(name);
        Self {
            data_dir: data_dir.to_owned(),
            database: file("world.db"),
            log: file("world.db-wal"),
            journal: file("world.db-journal"),
            mark: file("world.commits"),
            unfinished: file("world.db.new"),
            old_save: file("world.postcard"),
        }
    }
}

/// The length of a file; 0 where there is none. A link to nothing is an error.
pub fn length(file: &Path) -> io::Result<u64> {
    match fs::metadata(file) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_dangling(file) => Ok(0),
        Err(error) => Err(error),
    }
}

/// Whether it is a link to a file that is not there.
pub fn is_dangling(file: &Path) -> bool {
    file.is_symlink() && !file.exists()
}

/// Removes a file, if it is there.
pub fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes what was created, renamed or removed in a directory survive a power cut.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
