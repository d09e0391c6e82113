//! The data directory: where a host keeps what outlives it. The server opens it before anything else; it is created,
//! proved writable, and locked, so that two hosts never share one. This file knows the directory, not what is in it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use thiserror::Error;

/// The file that is locked while a host runs. It stays when the host is gone; the lock does not.
const LOCK_FILE: &str = "lock";

/// A data directory that this process holds until the value is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    /// The lock belongs to this open file, so the system lets go of it however the process ends.
    _lock: File,
}

/// Why a data directory cannot be used.
#[derive(Debug, Error)]
pub enum DataDirError {
    /// It is not there and cannot be made.
    #[error("cannot create the data directory {path}: {error}; name a directory that this user can create", path = .path.display())]
    Create {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Something else has its name.
    #[error("the data directory {path} is not a directory; name another, or move that file away", path = .path.display())]
    NotADirectory {
        /// The path given.
        path: PathBuf,
    },
    /// It is there but nothing can be written to it.
    #[error("cannot write to the data directory {path}: {error}; let this user write there, or name another directory", path = .path.display())]
    Write {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Another host runs on it.
    #[error("the data directory {path} is in use by another running host{holder}; stop that host, or name another directory", path = .path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
        /// Which process holds it, as ` (process 4711)`, or nothing if it did not say.
        holder: String,
    },
}

impl DataDir {
    /// Creates the directory if need be, and takes it for this process.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, DataDirError> {
        let path = path.into();
        match fs::create_dir_all(&path) {
            Ok(()) => {}
            Err(_) if path.exists() => return Err(DataDirError::NotADirectory { path }),
            Err(error) => return Err(DataDirError::Create { path, error }),
        }
        let lock_path = path.join(LOCK_FILE);
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&lock_path);
        let mut lock = match opened {
            Ok(lock) => lock,
            Err(error) => return Err(DataDirError::Write { path, error }),
        };
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let process = fs::read_to_string(&lock_path).unwrap_or_default();
                let holder = match process.trim().parse::<u32>() {
                    Ok(process) => format!(" (process {process})"),
                    Err(_) => String::new(),
                };
                return Err(DataDirError::InUse { path, holder });
            }
            Err(error) => return Err(DataDirError::Write { path, error: error.into() }),
        }
        // Proves at the same time that a byte can be written: a full disk or a quota shows here and not at the first
        // save. A file that could be opened says nothing about making new ones, so that is tried too.
        let proved = lock
            .set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .and_then(|()| prove_new_files(&path));
        match proved {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(error) => Err(DataDirError::Write { path, error }),
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if a host holds the directory at `path` now. False also if that cannot be found out.
    pub fn is_in_use(path: &Path) -> bool {
        let Ok(lock) = File::open(path.join(LOCK_FILE)) else {
            return false;
        };
        // A shared lock: two that look at the same time do not see each other.
        flock(&lock, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
    }
}

fn prove_new_files(directory: &Path) -> io::Result<()> {
    let probe = directory.join(format!(".probe-{}", std::process::id()));
    let written = fs::write(&probe, b"can this be written?");
    // The first error is the one to tell.
    let removed = fs::remove_file(&probe);
    written.and(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_directory_is_created_with_its_parents() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("worlds/meadow");
        let directory = DataDir::open(&path).unwrap();
        assert!(directory.path().is_dir());
        let left: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [LOCK_FILE], "nothing but the lock is left behind");
    }

    #[test]
    fn a_second_host_on_the_same_directory_is_refused_until_the_first_is_gone() {
        let root = tempfile::tempdir().unwrap();
        let first = DataDir::open(root.path()).unwrap();
        assert!(DataDir::is_in_use(root.path()));
        let refused = DataDir::open(root.path()).unwrap_err().to_string();
        let expected = format!(
            "the data directory {} is in use by another running host (process {}); stop that host, or name another \
             directory",
            root.path().display(),
            std::process::id()
        );
        assert_eq!(refused, expected);
        drop(first);
        assert!(!DataDir::is_in_use(root.path()));
        DataDir::open(root.path()).unwrap();
    }

    #[test]
    fn a_file_in_its_place_is_refused_by_name() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        fs::write(&path, "I was here first").unwrap();
        let refused = DataDir::open(&path).unwrap_err().to_string();
        assert!(refused.contains(&format!("{} is not a directory; name another", path.display())), "{refused}");
    }

    #[test]
    fn a_directory_below_a_file_cannot_be_created() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        let path = root.path().join("file/data");
        let refused = DataDir::open(&path).unwrap_err().to_string();
        assert!(refused.starts_with(&format!("cannot create the data directory {}: ", path.display())), "{refused}");
    }

    #[test]
    fn a_directory_in_which_nothing_can_be_made_is_refused_by_name() {
        // /proc/self takes no new files, whoever asks: unlike permissions, which do not bind the superuser.
        let refused = DataDir::open("/proc/self").unwrap_err().to_string();
        assert!(refused.starts_with("cannot write to the data directory /proc/self: "), "{refused}");
        assert!(refused.ends_with("; let this user write there, or name another directory"), "{refused}");
    }
}
