//! Shared data: blobs by name, published once and read by many. Readers get the same bytes, however many they are; who
//! watches a name is kept here, telling them is the business of [`Services`](super::Services).

use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use rustc_hash::{FxHashMap, FxHashSet};

use super::handle::Handle;
pub use crate::guest::contract::sim::shared::SharedError;

/// The longest name in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// Names that one member watches, and blobs that it puts together at one time.
const MAX_NAMES_OF_ONE: usize = 1024;

/// A published blob.
#[derive(Clone, Debug)]
pub struct Blob {
    pub version: u64,
    pub bytes: Arc<[u8]>,
}

/// All blobs.
#[derive(Debug)]
pub struct SharedData {
    state: RwLock<State>,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    blobs: FxHashMap<String, Blob>,
    /// Blobs that are being put together.
    unfinished: FxHashMap<(Handle, String), Vec<u8>>,
    watchers: FxHashMap<String, FxHashSet<Handle>>,
    watched_by: FxHashMap<Handle, FxHashSet<String>>,
    last_version: u64,
    /// Bytes of all blobs, unfinished ones included.
    bytes: usize,
}

/// A blob was published.
#[derive(Debug, PartialEq, Eq)]
pub struct Published {
    pub version: u64,
    /// Who is to be told.
    pub watchers: Vec<Handle>,
}

impl SharedData {
    /// None yet, and never more than `max_bytes` together.
    pub fn new(max_bytes: usize) -> Self {
        Self { state: RwLock::default(), max_bytes }
    }

    /// Whether a blob of that length could be published under that name.
    pub fn check(&self, name: &str, bytes: usize) -> Result<(), SharedError> {
        self.write().room_for(name, bytes, self.max_bytes)
    }

    /// Publishes a blob in place of what has that name.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<Published, SharedError> {
        let mut state = self.write();
        state.room_for(name, bytes.len(), self.max_bytes)?;
        Ok(state.publish(name, Arc::from(bytes)))
    }

    /// Adds to a blob that `by` puts together. An error drops what there was of it.
    pub fn append(&self, by: Handle, name: &str, more: &[u8]) -> Result<(), SharedError> {
        check_name(name)?;
        let mut state = self.write();
        let limit = self.max_bytes;
        let is_new = !state.unfinished.contains_key(&(by, name.to_owned()));
        let has_many = is_new && state.unfinished.keys().filter(|(owner, _)| *owner == by).count() >= MAX_NAMES_OF_ONE;
        if has_many || state.bytes.saturating_add(more.len()) > limit {
            let dropped = state.unfinished.remove(&(by, name.to_owned()));
            state.bytes -= dropped.map_or(0, |bytes| bytes.len());
            return Err(SharedError::Full(limit as u64));
        }
        state.bytes += more.len();
        state.unfinished.entry((by, name.to_owned())).or_default().extend_from_slice(more);
        Ok(())
    }

    /// Publishes what `by` has put together under a name, if there is anything.
    pub fn finish(&self, by: Handle, name: &str) -> Option<Published> {
        let mut state = self.write();
        let bytes = state.unfinished.remove(&(by, name.to_owned()))?;
        state.bytes -= bytes.len();
        Some(state.publish(name, Arc::from(bytes)))
    }

    /// Removes a blob; false when there is none.
    pub fn remove(&self, name: &str) -> bool {
        let mut state = self.write();
        let removed = state.blobs.remove(name);
        state.bytes -= removed.as_ref().map_or(0, |blob| blob.bytes.len());
        removed.is_some()
    }

    /// The blob with that name: the bytes themselves, not a copy.
    pub fn get(&self, name: &str) -> Option<Blob> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).blobs.get(name).cloned()
    }

    /// Has a member told of what is published under a name; false when it watches too many.
    pub fn watch(&self, watcher: Handle, name: &str) -> bool {
        if name.len() > MAX_NAME_BYTES {
            return false;
        }
        let mut state = self.write();
        let watched = state.watched_by.entry(watcher).or_default();
        if watched.len() >= MAX_NAMES_OF_ONE && !watched.contains(name) {
            return false;
        }
        watched.insert(name.to_owned());
        state.watchers.entry(name.to_owned()).or_default().insert(watcher);
        true
    }

    /// Ends that; false when it did not watch the name.
    pub fn unwatch(&self, watcher: Handle, name: &str) -> bool {
        let mut state = self.write();
        let did_watch = state.watched_by.get_mut(&watcher).is_some_and(|names| names.remove(name));
        if did_watch {
            state.forget_watcher(watcher, name);
        }
        did_watch
    }

    /// A member has ended: what it published stays, what it was putting together does not.
    pub fn forget(&self, member: Handle) {
        let mut state = self.write();
        for name in state.watched_by.remove(&member).unwrap_or_default() {
            state.forget_watcher(member, &name);
        }
        let mut freed = 0;
        state.unfinished.retain(|(owner, _), bytes| {
            freed += if *owner == member { bytes.len() } else { 0 };
            *owner != member
        });
        state.bytes -= freed;
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn room_for(&self, name: &str, bytes: usize, max_bytes: usize) -> Result<(), SharedError> {
        check_name(name)?;
        if bytes > max_bytes {
            return Err(SharedError::TooLarge(max_bytes as u64));
        }
        let freed = self.blobs.get(name).map_or(0, |blob| blob.bytes.len());
        if self.bytes - freed + bytes > max_bytes {
            return Err(SharedError::Full(max_bytes as u64));
        }
        Ok(())
    }

    fn publish(&mut self, name: &str, bytes: Arc<[u8]>) -> Published {
        self.last_version += 1;
        let version = self.last_version;
        self.bytes += bytes.len();
        let before = self.blobs.insert(name.to_owned(), Blob { version, bytes });
        self.bytes -= before.map_or(0, |blob| blob.bytes.len());
        let watchers = self.watchers.get(name).into_iter().flatten().copied().collect();
        Published { version, watchers }
    }

    fn forget_watcher(&mut self, watcher: Handle, name: &str) {
        if let Some(watchers) = self.watchers.get_mut(name) {
            watchers.remove(&watcher);
            if watchers.is_empty() {
                self.watchers.remove(name);
            }
        }
    }
}

fn check_name(name: &str) -> Result<(), SharedError> {
    if name.len() > MAX_NAME_BYTES { Err(SharedError::TooLarge(MAX_NAME_BYTES as u64)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Handle = Handle(1);

    #[test]
    fn readers_get_the_same_bytes_and_versions_grow_over_removals() {
        let data = SharedData::new(100);
        let first = data.put("map", b"old").unwrap().version;
        let (a, b) = (data.get("map").unwrap(), data.get("map").unwrap());
        assert!(Arc::ptr_eq(&a.bytes, &b.bytes));
        assert!(data.remove("map") && !data.remove("map"));
        assert!(data.put("map", b"new").unwrap().version > first);
        assert_eq!(&*a.bytes, b"old", "who reads keeps what there was");
    }

    #[test]
    fn a_blob_is_put_together_unseen_and_published_whole() {
        let data = SharedData::new(100);
        data.append(ONE, "map", b"ab").unwrap();
        data.append(Handle(2), "map", b"xx").unwrap();
        data.append(ONE, "map", b"cd").unwrap();
        assert!(data.get("map").is_none());
        assert!(data.finish(ONE, "map").is_some() && data.finish(ONE, "map").is_none());
        assert_eq!(&*data.get("map").unwrap().bytes, b"abcd");
    }

    #[test]
    fn all_blobs_together_stay_within_the_limit_and_give_back_what_they_had() {
        let data = SharedData::new(10);
        data.put("a", &[0; 6]).unwrap();
        assert!(matches!(data.put("b", &[0; 5]), Err(SharedError::Full(10))));
        assert!(matches!(data.put("b", &[0; 11]), Err(SharedError::TooLarge(10))));
        data.put("a", &[0; 10]).unwrap();
        data.remove("a");
        data.append(ONE, "c", &[0; 9]).unwrap();
        assert!(matches!(data.append(ONE, "c", &[0; 2]), Err(SharedError::Full(10))));
        assert!(data.finish(ONE, "c").is_none(), "half a blob is none");
        data.append(ONE, "c", &[0; 9]).unwrap();
        data.forget(ONE);
        data.put("a", &[0; 10]).unwrap();
        assert_eq!(data.write().bytes, 10);
    }

    #[test]
    fn watchers_are_told_until_they_stop_or_end() {
        let data = SharedData::new(100);
        assert!(data.watch(ONE, "map") && data.watch(Handle(2), "map"));
        assert_eq!(data.put("map", b"").unwrap().watchers.len(), 2);
        assert!(data.unwatch(ONE, "map") && !data.unwatch(ONE, "map"));
        data.forget(Handle(2));
        assert!(data.put("map", b"").unwrap().watchers.is_empty());
        assert!(data.write().watchers.is_empty());
    }
}
