//! The commit mark: the number of the newest commit, in a small file beside the database. It is written after each
//! commit, without waiting for the disk, and so never ahead of the database: a database that holds fewer commits than
//! its mark has lost some. It tells nothing else, and a database without a mark is as good as any.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::files;

/// How long a mark is: the number in 20 digits, its checksum (CRC-32) in 8, a space between and a line end behind.
const BYTES: usize = 20 + 1 + 8 + 1;

/// What was found of a mark.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// None, or one that a power cut kept from being written.
    Nothing,
    Commits(u64),
    Garbage,
}

/// Reads the mark. It must be possible to write it too, which is better known before anything is.
pub fn read(file: &Path) -> io::Result<Found> {
    let mut mark = match OpenOptions::new().read(true).write(true).open(file) {
        Ok(mark) => mark,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !files::is_dangling(file) => {
            return Ok(Found::Nothing);
        }
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    mark.read_to_end(&mut bytes)?;
    Ok(match &bytes[..] {
        [] => Found::Nothing,
        bytes => decode(bytes).map_or(Found::Garbage, Found::Commits),
    })
}

fn decode(bytes: &[u8]) -> Option<u64> {
    let commits = std::str::from_utf8(bytes.get(..20)?).ok()?.parse().ok()?;
    (bytes == encode(commits).as_bytes()).then_some(commits)
}

fn encode(commits: u64) -> String {
    let digits = format!("{commits:020}");
    let mark = format!("{digits} {:08x}\n", crc32fast::hash(digits.as_bytes()));
    debug_assert_eq!(mark.len(), BYTES);
    mark
}

/// The mark of a running host.
#[derive(Debug)]
pub struct CommitMark {
    file: File,
}

impl CommitMark {
    /// Opens the mark, or makes it, and sees that it is on disk: from here on it is only written over, so that no power
    /// cut can leave half of one.
    pub fn open(file: &Path, commits: u64) -> io::Result<Self> {
        let mark = Self { file: OpenOptions::new().write(true).create(true).truncate(false).open(file)? };
        mark.write(commits)?;
        mark.file.sync_all()?;
        if let Some(directory) = file.parent() {
            files::sync_directory(directory)?;
        }
        Ok(mark)
    }

    /// Writes the number of the newest commit. It survives the end of the process at once, and a power cut when the
    /// system gets round to it.
    pub fn write(&self, commits: u64) -> io::Result<()> {
        self.file.write_all_at(encode(commits).as_bytes(), 0)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_marked_last_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mark");
        assert_eq!(read(&file).unwrap(), Found::Nothing);
        let mark = CommitMark::open(&file, 7).unwrap();
        assert_eq!(read(&file).unwrap(), Found::Commits(7));
        mark.write(u64::MAX).unwrap();
        mark.write(8).unwrap();
        assert_eq!(read(&file).unwrap(), Found::Commits(8));
        assert_eq!(fs::read_to_string(&file).unwrap().len(), BYTES);
    }

    #[test]
    fn an_empty_mark_is_none_and_any_change_to_one_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mark");
        drop(CommitMark::open(&file, 1234).unwrap());
        let whole = fs::read(&file).unwrap();
        for length in 0..whole.len() {
            fs::write(&file, &whole[..length]).unwrap();
            let expected = if length == 0 { Found::Nothing } else { Found::Garbage };
            assert_eq!(read(&file).unwrap(), expected, "{length} bytes");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(&file, &changed).unwrap();
            assert_eq!(read(&file).unwrap(), Found::Garbage, "byte {at}");
        }
    }
}
