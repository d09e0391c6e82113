//! Shared data: a blob that one guest publishes under a name and any other reads, however large it is. It is kept in
//! the host's memory only.
//!
//! One call carries at most `guest.max_payload_kb`; [`put`] and [`read`] carry larger blobs in parts by themselves.

use std::ops::ControlFlow;

pub use crate::bindings::shared::{Part, SharedError, read as read_part, remove, unwatch, version, watch};

/// How many bytes one call carries at most: a quarter of the host's default limit.
const PART: usize = 256 * 1024;

/// No limit on a part is below this; such a limit is one on the name.
const LEAST_PART: usize = 1024;

/// A whole blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// Greater each time that one is published.
    pub version: u64,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// Publishes a blob of any size under a name, in place of what is there. Whoever watches the name gets a message.
pub fn put(name: &str, blob: impl AsRef<[u8]>) -> Result<(), SharedError> {
    put_through(&mut Host, name, blob.as_ref())
}

/// Reads a whole blob; none when there is none of that name.
pub fn read(name: &str) -> Option<Blob> {
    read_through(|offset, length| read_part(name, offset, length))
}

/// Where blobs go, so that the way they are cut can be tested.
trait Shelf {
    fn put(&mut self, name: &str, blob: &[u8]) -> Result<(), SharedError>;
    fn append(&mut self, name: &str, part: &[u8]) -> Result<(), SharedError>;
    fn finish(&mut self, name: &str) -> Result<(), SharedError>;
}

struct Host;

impl Shelf for Host {
    fn put(&mut self, name: &str, blob: &[u8]) -> Result<(), SharedError> {
        crate::bindings::shared::put(name, blob)
    }

    fn append(&mut self, name: &str, part: &[u8]) -> Result<(), SharedError> {
        crate::bindings::shared::append(name, part)
    }

    fn finish(&mut self, name: &str) -> Result<(), SharedError> {
        crate::bindings::shared::finish(name).map(|_published| ())
    }
}

/// Publishes in parts of [`PART`], or of what the host says its limit is.
fn put_through(shelf: &mut impl Shelf, name: &str, blob: &[u8]) -> Result<(), SharedError> {
    let mut part = PART;
    loop {
        let outcome = if blob.len() <= part { shelf.put(name, blob) } else { append_all(shelf, name, blob, part) };
        match outcome {
            Err(SharedError::TooLarge(limit)) if (LEAST_PART as u64..part as u64).contains(&limit) => {
                part = limit as usize;
            }
            outcome => return outcome,
        }
    }
}

/// An append that fails takes along what was appended before, so that another attempt begins afresh.
fn append_all(shelf: &mut impl Shelf, name: &str, blob: &[u8], part: usize) -> Result<(), SharedError> {
    for part in blob.chunks(part) {
        shelf.append(name, part)?;
    }
    shelf.finish(name)
}

/// Reads part by part. Where another version is published meanwhile it begins again: that happens seldom, since whoever
/// publishes has more to do than whoever reads.
fn read_through(mut read_part: impl FnMut(u64, u32) -> Option<Part>) -> Option<Blob> {
    loop {
        let first = read_part(0, PART as u32)?;
        let mut blob = Blob { version: first.version, bytes: first.bytes };
        if read_rest(&mut blob, first.total, &mut read_part).is_continue() {
            return Some(blob);
        }
    }
}

/// Breaks off where the blob is of another version by now, or gone.
fn read_rest(blob: &mut Blob, total: u64, read_part: &mut impl FnMut(u64, u32) -> Option<Part>) -> ControlFlow<()> {
    blob.bytes.reserve_exact((total as usize).saturating_sub(blob.bytes.len()));
    while (blob.bytes.len() as u64) < total {
        match read_part(blob.bytes.len() as u64, PART as u32) {
            Some(part) if part.version == blob.version && !part.bytes.is_empty() => {
                blob.bytes.extend_from_slice(&part.bytes);
            }
            _ => return ControlFlow::Break(()),
        }
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host whose calls carry at most `limit` bytes.
    struct Small {
        limit: usize,
        appended: Vec<u8>,
        published: Vec<Vec<u8>>,
    }

    impl Small {
        fn new(limit: usize) -> Self {
            Self { limit, appended: Vec::new(), published: Vec::new() }
        }

        fn admit(&mut self, part: &[u8]) -> Result<(), SharedError> {
            if part.len() > self.limit {
                self.appended.clear();
                return Err(SharedError::TooLarge(self.limit as u64));
            }
            Ok(())
        }
    }

    impl Shelf for Small {
        fn put(&mut self, _name: &str, blob: &[u8]) -> Result<(), SharedError> {
            self.admit(blob)?;
            self.published.push(blob.to_vec());
            Ok(())
        }

        fn append(&mut self, _name: &str, part: &[u8]) -> Result<(), SharedError> {
            self.admit(part)?;
            self.appended.extend_from_slice(part);
            Ok(())
        }

        fn finish(&mut self, _name: &str) -> Result<(), SharedError> {
            self.published.push(std::mem::take(&mut self.appended));
            Ok(())
        }
    }

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|index| (index % 251) as u8).collect()
    }

    #[test]
    fn a_blob_of_any_size_is_published_whole_and_once() {
        for length in [0, 1, PART, PART + 1, 5 * PART + 7] {
            for limit in [LEAST_PART, 100_000, 10 * PART] {
                let mut host = Small::new(limit);
                put_through(&mut host, "map", &bytes(length)).unwrap();
                assert_eq!(host.published, [bytes(length)], "{length} bytes through {limit}");
            }
        }
    }

    #[test]
    fn a_name_that_is_too_long_is_an_error_and_no_reason_to_cut_finer() {
        let mut host = Small::new(64);
        assert_eq!(put_through(&mut host, "map", &bytes(100)), Err(SharedError::TooLarge(64)));
    }

    /// Reads a blob of three parts; `publish` says before each look whether there is a new version.
    fn read_while(mut publish: impl FnMut(u32) -> bool) -> Option<Blob> {
        let (mut version, mut looks) = (1, 0);
        read_through(|offset, length| {
            looks += 1;
            if publish(looks) {
                version += 1;
            }
            let blob = vec![version as u8; 2 * PART + 5];
            let rest = &blob[offset as usize..];
            let bytes = rest[..rest.len().min(length as usize)].to_vec();
            Some(Part { version, total: blob.len() as u64, bytes })
        })
    }

    #[test]
    fn a_blob_is_read_whole() {
        assert_eq!(read_while(|_| false), Some(Blob { version: 1, bytes: vec![1; 2 * PART + 5] }));
        assert_eq!(read_through(|_, _| None), None);
    }

    #[test]
    fn a_blob_that_is_replaced_while_it_is_read_never_mixes_with_the_next() {
        assert_eq!(read_while(|look| look == 3), Some(Blob { version: 2, bytes: vec![2; 2 * PART + 5] }));
    }
}
