//! Shared data: blobs by name, published once and read by many. Readers get the same bytes, however many they are; who
//! watches a name is kept here, telling them is the business of [`Services`](super::Services).

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustc_hash::{FxHashMap, FxHashSet};

use super::handle::Handle;
pub use crate::guest::contract::sim::shared::SharedError;
use crate::guest::service_limits::{MAX_BLOB_NAMES, MAX_NAME_BYTES};

/// What a blob counts beside its bytes and those of its name, so that many small ones take no memory that is not counted.
const OVERHEAD_BYTES: usize = 64;

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
    /// The most bytes handed over at one time.
    max_piece_bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    blobs: FxHashMap<String, Blob>,
    /// Blobs that are being put together, by whom and by name.
    unfinished: FxHashMap<Handle, FxHashMap<String, Vec<u8>>>,
    watchers: FxHashMap<String, FxHashSet<Handle>>,
    watched_by: FxHashMap<Handle, FxHashSet<String>>,
    last_version: u64,
    /// What all blobs count together, unfinished ones included.
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
    /// None yet, and never more than `max_bytes` together. `put` and `append` take at most `max_piece_bytes` at a time.
    pub fn new(max_bytes: usize, max_piece_bytes: usize) -> Self {
        Self { state: RwLock::default(), max_bytes, max_piece_bytes }
    }

    /// The most that all blobs may count together.
    pub fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Whether a blob of that length could be published under that name.
    pub fn check(&self, name: &str, bytes: usize) -> Result<(), SharedError> {
        self.read().room_for(name, bytes, self.max_bytes)
    }

    /// Publishes a blob in place of what has that name.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<Published, SharedError> {
        self.check_piece(bytes.len())?;
        self.check(name, bytes.len())?;
        self.put_whole(name, Arc::from(bytes))
    }

    /// Publishes a blob, of whatever length, in place of what has that name.
    pub fn put_whole(&self, name: &str, bytes: Arc<[u8]>) -> Result<Published, SharedError> {
        let mut state = self.write();
        state.room_for(name, bytes.len(), self.max_bytes)?;
        let (published, before) = state.publish(name, bytes);
        drop(state);
        // It may be large, and nobody waits while it is given back.
        drop(before);
        Ok(published)
    }

    /// Adds to a blob that `by` puts together. An error drops what there was of it.
    pub fn append(&self, by: Handle, name: &str, more: &[u8]) -> Result<(), SharedError> {
        check_name(name)?;
        let checked = self.check_piece(more.len());
        let limit = self.max_bytes;
        let mut state = self.write();
        let own = state.unfinished.entry(by).or_default();
        let is_new = !own.contains_key(name);
        let has_many = is_new && own.len() >= MAX_BLOB_NAMES;
        let needed = more.len() + if is_new { weight(name, 0) } else { 0 };
        let has_room = !has_many && state.bytes.saturating_add(needed) <= limit;
        let checked = checked.and(if has_room { Ok(()) } else { Err(SharedError::Full(limit as u64)) });
        if checked.is_err() {
            let dropped = state.take_unfinished(by, name);
            state.bytes -= dropped.map_or(0, |bytes| weight(name, bytes.len()));
            return checked;
        }
        state.bytes += needed;
        state.unfinished.entry(by).or_default().entry(name.to_owned()).or_default().extend_from_slice(more);
        Ok(())
    }

    /// Publishes what `by` has put together under a name, if there is anything.
    pub fn finish(&self, by: Handle, name: &str) -> Option<Published> {
        let bytes = self.write().take_unfinished(by, name)?;
        let counted = weight(name, bytes.len());
        // It goes on to count while it is copied to where readers share it.
        let bytes = Arc::from(bytes);
        let mut state = self.write();
        state.bytes -= counted;
        let (published, before) = state.publish(name, bytes);
        drop(state);
        drop(before);
        Some(published)
    }

    /// Removes a blob; false when there is none.
    pub fn remove(&self, name: &str) -> bool {
        let mut state = self.write();
        let removed = state.blobs.remove(name);
        state.bytes -= removed.as_ref().map_or(0, |blob| weight(name, blob.bytes.len()));
        drop(state);
        removed.is_some()
    }

    /// The blob with that name: the bytes themselves, not a copy.
    pub fn get(&self, name: &str) -> Option<Blob> {
        self.read().blobs.get(name).cloned()
    }

    /// Has a member told of what is published under a name; false when it watches too many.
    pub fn watch(&self, watcher: Handle, name: &str) -> bool {
        if check_name(name).is_err() {
            return false;
        }
        let mut state = self.write();
        let watched = state.watched_by.entry(watcher).or_default();
        if watched.len() >= MAX_BLOB_NAMES && !watched.contains(name) {
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
        let dropped = state.unfinished.remove(&member).unwrap_or_default();
        state.bytes -= dropped.iter().map(|(name, bytes)| weight(name, bytes.len())).sum::<usize>();
        drop(state);
    }

    fn check_piece(&self, bytes: usize) -> Result<(), SharedError> {
        let limit = self.max_piece_bytes;
        if bytes > limit { Err(SharedError::TooLarge(limit as u64)) } else { Ok(()) }
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn room_for(&self, name: &str, bytes: usize, max_bytes: usize) -> Result<(), SharedError> {
        check_name(name)?;
        let needed = weight(name, bytes);
        if needed > max_bytes {
            return Err(SharedError::TooLarge(max_bytes as u64));
        }
        let freed = self.blobs.get(name).map_or(0, |blob| weight(name, blob.bytes.len()));
        if self.bytes - freed + needed > max_bytes {
            return Err(SharedError::Full(max_bytes as u64));
        }
        Ok(())
    }

    /// Publishes a blob; what had its name comes back.
    fn publish(&mut self, name: &str, bytes: Arc<[u8]>) -> (Published, Option<Blob>) {
        self.last_version += 1;
        let version = self.last_version;
        self.bytes += weight(name, bytes.len());
        let before = self.blobs.insert(name.to_owned(), Blob { version, bytes });
        self.bytes -= before.as_ref().map_or(0, |blob| weight(name, blob.bytes.len()));
        let watchers = self.watchers.get(name).into_iter().flatten().copied().collect();
        (Published { version, watchers }, before)
    }

    fn take_unfinished(&mut self, by: Handle, name: &str) -> Option<Vec<u8>> {
        let own = self.unfinished.get_mut(&by)?;
        let taken = own.remove(name);
        if own.is_empty() {
            self.unfinished.remove(&by);
        }
        taken
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

/// What a blob of so many bytes counts.
fn weight(name: &str, bytes: usize) -> usize {
    bytes.saturating_add(name.len() + OVERHEAD_BYTES)
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
        let data = SharedData::new(1000, 1000);
        let first = data.put("map", b"old").unwrap().version;
        let (a, b) = (data.get("map").unwrap(), data.get("map").unwrap());
        assert!(Arc::ptr_eq(&a.bytes, &b.bytes));
        assert!(data.remove("map") && !data.remove("map"));
        assert!(data.put("map", b"new").unwrap().version > first);
        assert_eq!(&*a.bytes, b"old", "who reads keeps what there was");
    }

    #[test]
    fn a_blob_is_put_together_unseen_and_published_whole() {
        let data = SharedData::new(1000, 1000);
        data.append(ONE, "map", b"ab").unwrap();
        data.append(Handle(2), "map", b"xx").unwrap();
        data.append(ONE, "map", b"cd").unwrap();
        assert!(data.get("map").is_none());
        assert!(data.finish(ONE, "map").is_some() && data.finish(ONE, "map").is_none());
        assert_eq!(&*data.get("map").unwrap().bytes, b"abcd");
    }

    /// Room for blobs of so many bytes whose names have one letter.
    fn room_for(blobs: usize, bytes: usize) -> SharedData {
        SharedData::new(blobs * (OVERHEAD_BYTES + 1) + bytes, 1000)
    }

    #[test]
    fn all_blobs_together_stay_within_the_limit_and_give_back_what_they_had() {
        let data = room_for(1, 10);
        data.put("a", &[0; 6]).unwrap();
        assert!(matches!(data.put("b", &[0; 5]), Err(SharedError::Full(75))));
        assert!(matches!(data.put("b", &[0; 11]), Err(SharedError::TooLarge(75))));
        data.put("a", &[0; 10]).unwrap();
        data.remove("a");
        data.append(ONE, "c", &[0; 9]).unwrap();
        assert!(matches!(data.append(ONE, "c", &[0; 2]), Err(SharedError::Full(75))));
        assert!(data.finish(ONE, "c").is_none(), "half a blob is none");
        data.append(ONE, "c", &[0; 9]).unwrap();
        data.forget(ONE);
        data.put("a", &[0; 10]).unwrap();
        assert_eq!(data.write().bytes, 75);
        data.remove("a");
        data.append(ONE, "c", &[0; 9]).unwrap();
        data.finish(ONE, "c").unwrap();
        let state = data.write();
        assert_eq!((state.bytes, state.unfinished.len()), (74, 0));
    }

    #[test]
    fn empty_blobs_under_ever_new_names_are_not_free() {
        let data = room_for(2, 0);
        assert!(data.put("a", b"").is_ok() && data.append(ONE, "b", b"").is_ok());
        assert!(matches!(data.put("c", b""), Err(SharedError::Full(_))));
        assert!(matches!(data.append(ONE, "c", b""), Err(SharedError::Full(_))));
        assert!(data.finish(ONE, "b").is_some());
        assert!(data.put("c", b"").is_err() && data.remove("a") && data.put("c", b"").is_ok());
    }

    #[test]
    fn one_call_takes_so_much_and_a_blob_may_be_larger() {
        let data = SharedData::new(1000, 4);
        assert!(matches!(data.put("map", b"12345"), Err(SharedError::TooLarge(4))));
        data.append(ONE, "map", b"1234").unwrap();
        assert!(matches!(data.append(ONE, "map", b"12345"), Err(SharedError::TooLarge(4))));
        assert!(data.finish(ONE, "map").is_none(), "an error drops what there was");
        data.append(ONE, "map", b"1234").unwrap();
        data.append(ONE, "map", b"5").unwrap();
        assert!(data.finish(ONE, "map").is_some() && data.put_whole("map", Arc::from(*b"123456")).is_ok());
    }

    #[test]
    fn watchers_are_told_until_they_stop_or_end() {
        let data = SharedData::new(1000, 1000);
        assert!(data.watch(ONE, "map") && data.watch(Handle(2), "map"));
        assert_eq!(data.put("map", b"").unwrap().watchers.len(), 2);
        assert!(data.unwatch(ONE, "map") && !data.unwatch(ONE, "map"));
        data.forget(Handle(2));
        assert!(data.put("map", b"").unwrap().watchers.is_empty());
        assert!(data.write().watchers.is_empty());
    }
}
