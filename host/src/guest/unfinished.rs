//! Shared blobs that a game is putting together, in pieces and over several handlers. Nobody else sees them; what a
//! handler that fails has added is forgotten.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::service_limits::MAX_BLOB_NAMES;

/// The blobs, by name.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    kept: FxHashMap<String, Vec<u8>>,
    kept_bytes: usize,
    noted: FxHashMap<String, Noted>,
    /// What the handler that runs has added.
    noted_bytes: usize,
}

/// What the handler that runs has done to one blob.
#[derive(Debug, Default)]
struct Noted {
    /// What was kept has been finished.
    begins_anew: bool,
    /// What it has added since, if it has.
    added: Option<Vec<u8>>,
}

impl Unfinished {
    /// Bytes of all of them; those of a blob that the handler which runs has finished still count.
    pub fn bytes(&self) -> usize {
        self.kept_bytes + self.noted_bytes
    }

    /// Adds to a blob; false when there are too many.
    pub fn append(&mut self, name: &str, more: &[u8]) -> bool {
        let is_known = self.kept.contains_key(name) || self.noted.contains_key(name);
        if !is_known && self.kept.len() + self.noted.len() >= MAX_BLOB_NAMES {
            return false;
        }
        let noted = self.noted.entry(name.to_owned()).or_default();
        noted.added.get_or_insert_default().extend_from_slice(more);
        self.noted_bytes += more.len();
        true
    }

    /// The whole of a blob, as it will be shared; it is then begun anew. `None` when there is nothing.
    pub fn finish(&mut self, name: &str) -> Option<Arc<[u8]>> {
        let kept = self.kept.get(name);
        if kept.is_none() && !self.noted.contains_key(name) {
            return None;
        }
        let noted = self.noted.entry(name.to_owned()).or_default();
        let kept = kept.filter(|_| !noted.begins_anew);
        let blob = match (kept, noted.added.take()) {
            (None, added) => added.map(Arc::from),
            // What is kept stays until the handler that finishes it has returned.
            (Some(kept), None) => Some(Arc::from(&kept[..])),
            (Some(kept), Some(added)) => Some(Arc::from([&kept[..], &added[..]].concat())),
        };
        noted.begins_anew = true;
        blob
    }

    /// Drops what there is of a blob.
    pub fn discard(&mut self, name: &str) {
        if self.kept.contains_key(name) || self.noted.contains_key(name) {
            self.noted.insert(name.to_owned(), Noted { begins_anew: true, added: None });
        }
    }

    pub fn commit(&mut self) {
        for (name, Noted { begins_anew, added }) in self.noted.drain() {
            if begins_anew {
                self.kept_bytes -= self.kept.remove(&name).map_or(0, |blob| blob.len());
            }
            if let Some(added) = added {
                self.kept_bytes += added.len();
                self.kept.entry(name).or_default().extend_from_slice(&added);
            }
        }
        self.noted_bytes = 0;
    }

    pub fn rollback(&mut self) {
        self.noted.clear();
        self.noted_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_is_put_together_over_handlers_and_those_that_fail_add_nothing() {
        let mut blobs = Unfinished::default();
        assert!(blobs.append("map", b"ab"));
        blobs.commit();
        assert!(blobs.append("map", b"XX"));
        blobs.rollback();
        assert!(blobs.append("map", b"cd"));
        assert_eq!((blobs.bytes(), blobs.finish("map")), (4, Some(Arc::from(*b"abcd"))));
        assert_eq!(blobs.finish("map"), None);
        blobs.rollback();
        assert_eq!(blobs.finish("map"), Some(Arc::from(*b"ab")), "the handler that finished it has failed");
        assert!(blobs.append("map", b"new"));
        blobs.commit();
        assert_eq!((blobs.bytes(), blobs.finish("map")), (3, Some(Arc::from(*b"new"))));
        blobs.commit();
        assert_eq!((blobs.bytes(), blobs.kept.len()), (0, 0));
        blobs.append("map", b"a");
        blobs.commit();
        blobs.append("map", b"b");
        blobs.discard("map");
        assert_eq!(blobs.finish("map"), None);
        blobs.append("map", b"c");
        assert_eq!(blobs.finish("map"), Some(Arc::from(*b"c")));
    }

    #[test]
    fn only_so_many_are_put_together_at_one_time() {
        let mut blobs = Unfinished::default();
        assert!((0..MAX_BLOB_NAMES).all(|name| blobs.append(&name.to_string(), b"")));
        assert!(!blobs.append("one more", b"") && blobs.append("7", b""));
    }
}
