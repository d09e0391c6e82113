//! What SQLite says, as what it means for a host: whether the file is damaged, or cannot be written or read just now.

use std::io;
use std::path::Path;

use rusqlite::{Error, ErrorCode};

use crate::store::StoreError;

/// An error met while a database is opened or looked at.
pub fn opening(file: &Path, error: &Error) -> StoreError {
    told(file, error, |file, reason| StoreError::Open { file: file.to_owned(), reason })
}

/// An error met while committing.
pub fn writing(file: &Path, error: &Error) -> StoreError {
    told(file, error, |file, reason| StoreError::Unwritable { file: file.to_owned(), reason })
}

/// An error met while reading.
pub fn reading(file: &Path, error: &Error) -> StoreError {
    told(file, error, |file, reason| StoreError::Unreadable { file: file.to_owned(), reason })
}

/// An error of the file system met while a database is opened.
pub fn opening_io(file: &Path, error: &io::Error) -> StoreError {
    StoreError::Open { file: file.to_owned(), reason: error.to_string() }
}

fn told(file: &Path, error: &Error, outside: impl Fn(&Path, String) -> StoreError) -> StoreError {
    match error.sqlite_error_code() {
        // The statement is to blame: it was given what no database of this kind can hold.
        Some(ErrorCode::TooBig) => StoreError::TooLarge { file: file.to_owned() },
        _ if comes_from_outside(error) => outside(file, reason(error)),
        _ => StoreError::Damaged { file: file.to_owned(), reason: reason(error) },
    }
}

/// Whether the machine is to blame, which may change. Everything else means that the file holds what no Wheelhouse has
/// written.
fn comes_from_outside(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::AuthorizationForStatementDenied
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::OperationInterrupted
                | ErrorCode::OutOfMemory
                | ErrorCode::NoLargeFileSupport
        )
    )
}

/// Somebody has a shell of SQLite open, for example.
pub const LOCKED: &str = "another program holds it locked; close that one";

/// In the words of an operator where the case is a common one.
pub fn reason(error: &Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full".to_owned(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => LOCKED.to_owned(),
        Some(ErrorCode::DatabaseCorrupt) => "its pages contradict each other".to_owned(),
        Some(ErrorCode::NotADatabase) => "it is no database any more".to_owned(),
        _ => in_one_line(&error.to_string()),
    }
}

/// What SQLite says of a statement or of damaged pages goes over several lines.
pub fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    fn failure(code: i32) -> Error {
        Error::SqliteFailure(ffi::Error::new(code), None)
    }

    #[test]
    fn a_full_disk_and_a_failing_one_are_tried_again_and_a_damaged_file_is_not() {
        let file = Path::new("data/world.db");
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_BUSY, ffi::SQLITE_READONLY] {
            assert!(writing(file, &failure(code)).is_temporary(), "{code}");
        }
        for code in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB, ffi::SQLITE_CORRUPT_INDEX] {
            assert!(writing(file, &failure(code)).is_damage() && reading(file, &failure(code)).is_damage(), "{code}");
        }
        assert_eq!(
            writing(file, &failure(ffi::SQLITE_FULL)).to_string(),
            "the database data/world.db cannot be written: the disk is full; make room or mend the disk"
        );
    }

    #[test]
    fn a_value_that_no_database_can_hold_damages_none_and_is_not_tried_again() {
        let error = writing(Path::new("data/world.db"), &failure(ffi::SQLITE_TOOBIG));
        assert!(!error.is_damage() && !error.is_temporary());
        assert!(error.to_string().contains("lower guest.max_payload_kb"), "{error}");
    }
}
