//! Machine code by function, so that what has been compiled once is not compiled again when another part of a component
//! changes. It is what makes new versions of guests in JavaScript and Python quick to load: nearly all of such a component
//! is the language's engine, function by function as it was before. Kept in memory, up to a limit; the engines fill and
//! ask it while they compile.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;
use wasmtime::CacheStore;

/// The functions, by what they are compiled from.
#[derive(Debug)]
pub struct FunctionCache {
    functions: DashMap<Box<[u8]>, Vec<u8>, FxBuildHasher>,
    bytes: AtomicUsize,
    max_bytes: usize,
}

impl FunctionCache {
    /// An empty cache that takes so many bytes. Once it is full it takes nothing more: what is in it is as good as what
    /// comes.
    pub fn new(max_bytes: usize) -> Self {
        Self { functions: DashMap::default(), bytes: AtomicUsize::new(0), max_bytes }
    }
}

impl CacheStore for FunctionCache {
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>> {
        self.functions.get(key).map(|code| Cow::Owned(code.clone()))
    }

    fn insert(&self, key: &[u8], value: Vec<u8>) -> bool {
        let bytes = key.len() + value.len();
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.max_bytes {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        if let Some(before) = self.functions.insert(key.into(), value) {
            self.bytes.fetch_sub(key.len() + before.len(), Ordering::Relaxed);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_found_again_and_what_does_not_is_left_out() {
        let cache = FunctionCache::new(14);
        assert!(cache.insert(b"one", vec![1; 4]));
        assert!(!cache.insert(b"two", vec![2; 5]), "there is room for seven bytes, its key included");
        assert!(cache.insert(b"one", vec![3; 3]), "in place of the other");
        assert!(cache.insert(b"2", vec![2; 3]));
        assert_eq!(cache.get(b"one").as_deref(), Some(&[3, 3, 3][..]));
        assert_eq!(cache.get(b"two"), None);
    }
}
