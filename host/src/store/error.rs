//! What can go wrong with a store, told for the operator: which file, what about it, and what helps. Where that depends
//! on the reason, it is part of the reason.

use std::io;
use std::path::PathBuf;

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the database {file} cannot be opened: {reason}")]
    Open { file: PathBuf, reason: String },
    #[error(
        "the database {file} is damaged ({reason}) and was left as it is; put a backup in its place, or move it away with all that is named world.* beside it to begin a new world"
    )]
    Damaged { file: PathBuf, reason: String },
    #[error("{file} is not a database of Wheelhouse; move it away, or name another data_dir")]
    Foreign { file: PathBuf },
    #[error(
        "the database {file} was written by a newer Wheelhouse (schema {found}, this one knows {known}); run that one"
    )]
    Newer { file: PathBuf, found: i64, known: i64 },
    #[error(
        "the database {file} has lost its end: commit {expected} was made and it holds {found}; its write-ahead log was deleted or cut, or an older copy was put in its place. Bring the log back, or delete {mark} to go on from what is there"
    )]
    LogLost { file: PathBuf, mark: PathBuf, found: u64, expected: u64 },
    #[error(
        "the commit mark {mark} of the database {file} is damaged; delete it to go on from what the database holds, though commits may then be missing unnoticed"
    )]
    MarkDamaged { file: PathBuf, mark: PathBuf },
    #[error(
        "the write-ahead log {log} does not belong to the database {file}; bring back the database that it belongs to, or move the log away to go on with this one"
    )]
    LogForeign { file: PathBuf, log: PathBuf },
    #[error(
        "the database {file} is gone, but its {left} is still there; bring the database back, or move all that is named world.* away to begin a new world"
    )]
    Gone { file: PathBuf, left: PathBuf },
    #[error(
        "the saved world {file} was written by an earlier development version, and this one does not read it; move it away to begin a new world"
    )]
    OldSave { file: PathBuf },
    #[error(
        "the write-ahead log {log} was deleted or replaced while the host ran; all that was committed was brought into {file}. Start the host again"
    )]
    LogTaken { file: PathBuf, log: PathBuf },
    #[error(
        "the write-ahead log {log} was deleted or replaced while the host ran, and what was committed last could not be brought into {file}: {reason}; bring the log back before the host starts again"
    )]
    LogTakenUnsaved { file: PathBuf, log: PathBuf, reason: String },
    #[error(
        "the write-ahead log {log} was cut while the host ran, and the database {file} may have lost its newest commits; bring the log back before the host starts again"
    )]
    LogCut { file: PathBuf, log: PathBuf },
    #[error(
        "the database {file} was deleted or replaced while the host ran; bring it back, with its write-ahead log, before the host starts again"
    )]
    DatabaseTaken { file: PathBuf },
    #[error(
        "the database {file} was cut or overwritten while the host ran: it has {found} bytes where it had {expected}. Nothing more was written to it, and what was committed last is in {log}; move all that is named world.* away, and put a backup in its place"
    )]
    DatabaseCut { file: PathBuf, log: PathBuf, found: u64, expected: u64 },
    #[error(
        "the thread that writes the database has failed: {reason}; what was committed before is safe. Start the host again"
    )]
    WriterFailed { reason: String },
    #[error("the database {file} cannot be written: {reason}")]
    Unwritable { file: PathBuf, reason: String },
    #[error("a value is larger than the database {file} takes; lower guest.max_payload_kb")]
    TooLarge { file: PathBuf },
    #[error("the database {file} cannot be read: {reason}")]
    Unreadable { file: PathBuf, reason: String },
    /// Final: the world in memory has what the store has refused, so the host must start again from what is stored.
    #[error(
        "another host has taken over an event that this one has changed, and nothing of that was kept; start the host again"
    )]
    LeaseLost,
    #[error("the backup {file} cannot be written: {reason}")]
    Backup { file: PathBuf, reason: String },
    #[error(
        "the backup {file} may not be called world.* in {data_dir}, where such names are the world's; name it otherwise, or name another folder"
    )]
    BackupName { file: PathBuf, data_dir: PathBuf },
    #[error("the backup {file} was given up, since the host stops; nothing of it was kept")]
    BackupInterrupted { file: PathBuf },
    #[error("a thread for the database cannot be started: {0}; the machine has no room for it")]
    Thread(io::Error),
    #[error("the store has been closed")]
    Closed,
}

impl StoreError {
    /// Whether trying again later may help, as with a disk that is full.
    pub fn is_temporary(&self) -> bool {
        matches!(self, StoreError::Unwritable { .. })
    }

    /// What an error behind which nothing more is written leaves to be said: nothing where commits may be lost with it.
    pub fn consolation(&self) -> &'static str {
        match self {
            StoreError::Damaged { .. }
            | StoreError::LogTakenUnsaved { .. }
            | StoreError::LogCut { .. }
            | StoreError::DatabaseTaken { .. }
            | StoreError::DatabaseCut { .. } => "",
            _ => "; what was acknowledged is safe",
        }
    }

    /// Whether the file holds what no Wheelhouse has written, so that nothing more may be done with it.
    pub fn is_damage(&self) -> bool {
        matches!(self, StoreError::Damaged { .. })
    }
}
