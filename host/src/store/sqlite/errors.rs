//! What SQLite says, as what it means for a host: whether the file is damaged, or cannot be written or read just now.

use std::io;
use std::path::Path;

use rusqlite::{Error, ErrorCode, ffi};

use super::files;
use crate::store::StoreError;

/// An error met while a database is opened or looked at.
pub fn opening(file: &Path, error: &Error) -> StoreError {
    told(file, error, |file, reason| StoreError::Open { file: file.to_owned(), reason })
}

/// An error met while a database is made or brought forward.
pub fn laying_out(file: &Path, error: &rusqlite_migration::Error) -> StoreError {
    match error {
        // With the statement it would go over many lines.
        rusqlite_migration::Error::RusqliteError { err, .. } => writing(file, err),
        other => StoreError::Damaged { file: file.to_owned(), reason: in_one_line(&other.to_string()) },
    }
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
    use io::ErrorKind::{NotFound, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let file = file.to_owned();
    match error.kind() {
        StorageFull | QuotaExceeded => StoreError::Unwritable { file, reason: FULL.to_owned() },
        NotFound if files::is_dangling(&file) => {
            let reason = "it is a link to a file that is not there; mend the link, or remove it".to_owned();
            StoreError::Open { file, reason }
        }
        PermissionDenied | ReadOnlyFilesystem => {
            StoreError::Open { file, reason: format!("{error}; {PERMISSIONS}, or name another data_dir") }
        }
        _ => StoreError::Open { file, reason: format!("{error}; mend that, or name another data_dir") },
    }
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

pub const FULL: &str = "the disk is full; make room";
const PERMISSIONS: &str = "mend its permissions and those of its folder";

/// In the words of an operator where the case is a common one, with what helps where something does.
pub fn reason(error: &Error) -> String {
    let said = in_one_line(&error.to_string());
    // The memory that programs share is a file, which may find no room either.
    if error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_SHMSIZE) {
        return FULL.to_owned();
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => FULL.to_owned(),
        Some(ErrorCode::SystemIoFailure) => format!("{said}; mend the disk"),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            format!("{said}; {PERMISSIONS}")
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => LOCKED.to_owned(),
        Some(ErrorCode::DatabaseCorrupt) => "its pages contradict each other".to_owned(),
        Some(ErrorCode::NotADatabase) => "it is no database any more".to_owned(),
        _ => said,
    }
}

/// What SQLite says of a statement or of damaged pages goes over several lines.
pub fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
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
            "the database data/world.db cannot be written: the disk is full; make room"
        );
    }

    #[test]
    fn only_a_full_disk_is_to_get_room_and_only_a_file_that_is_closed_to_us_other_permissions() {
        let file = Path::new("data/world.db");
        let cases = [
            (ffi::SQLITE_FULL, "the disk is full; make room"),
            (ffi::SQLITE_IOERR_SHMSIZE, "the disk is full; make room"),
            (ffi::SQLITE_IOERR_FSYNC, "disk I/O error; mend the disk"),
            (ffi::SQLITE_READONLY, "; mend its permissions and those of its folder"),
            (ffi::SQLITE_CANTOPEN, "; mend its permissions and those of its folder"),
            (ffi::SQLITE_BUSY, "another program holds it locked; close that one"),
        ];
        for (code, expected) in cases {
            let told = [opening(file, &failure(code)), writing(file, &failure(code)), reading(file, &failure(code))];
            for text in told.map(|error| error.to_string()) {
                assert!(text.ends_with(expected), "{code}: {text}");
                assert_eq!(text.contains("room"), expected.contains("room"), "{text}");
                assert_eq!(text.contains("permissions"), expected.contains("permissions"), "{text}");
            }
        }
    }

    #[test]
    fn what_fails_while_a_database_is_made_is_told_in_one_line_and_without_its_statement() {
        let sql = "CREATE TABLE one (\n    id INTEGER\n);\nCREATE TABLE two (id INTEGER);";
        let error = rusqlite_migration::Error::with_sql(failure(ffi::SQLITE_FULL), sql);
        assert_eq!(
            laying_out(Path::new("data/world.db"), &error).to_string(),
            "the database data/world.db cannot be written: the disk is full; make room"
        );
    }

    #[test]
    fn a_value_that_no_database_can_hold_damages_none_and_is_not_tried_again() {
        let error = writing(Path::new("data/world.db"), &failure(ffi::SQLITE_TOOBIG));
        assert!(!error.is_damage() && !error.is_temporary());
        assert!(error.to_string().contains("lower guest.max_payload_kb"), "{error}");
    }
}
