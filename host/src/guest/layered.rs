//! A set that a handler changes: what it adds and takes out is seen by itself, and stands or is forgotten with it.

use std::borrow::Borrow;
use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};

/// The set.
#[derive(Debug)]
pub(super) struct Layered<T> {
    kept: FxHashSet<T>,
    /// What the handler that runs has added (true) or taken out (false).
    noted: FxHashMap<T, bool>,
    /// How many there are, as the handler that runs sees it.
    len: usize,
}

impl<T> Default for Layered<T> {
    fn default() -> Self {
        Self { kept: FxHashSet::default(), noted: FxHashMap::default(), len: 0 }
    }
}

impl<T: Eq + Hash> Layered<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn contains<Q: Eq + Hash + ?Sized>(&self, what: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.noted.get(what).copied().unwrap_or_else(|| self.kept.contains(what))
    }

    /// Adds it. False when it is there.
    pub fn insert(&mut self, what: T) -> bool {
        let is_new = !self.contains(&what);
        if is_new {
            self.noted.insert(what, true);
            self.len += 1;
        }
        is_new
    }

    /// Takes it out. False when it is not there.
    pub fn remove(&mut self, what: T) -> bool {
        let was_there = self.contains(&what);
        if was_there {
            self.noted.insert(what, false);
            self.len -= 1;
        }
        was_there
    }

    pub fn commit(&mut self) {
        for (what, is_there) in self.noted.drain() {
            if is_there {
                self.kept.insert(what);
            } else {
                self.kept.remove(&what);
            }
        }
    }

    pub fn rollback(&mut self) {
        self.noted.clear();
        self.len = self.kept.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_handler_changed_is_seen_by_itself_and_stands_or_is_forgotten() {
        let mut set = Layered::default();
        assert!(set.insert("a".to_owned()) && !set.insert("a".to_owned()));
        set.commit();
        assert!(set.remove("a".to_owned()) && !set.remove("a".to_owned()) && set.insert("b".to_owned()));
        assert_eq!((set.contains("a"), set.contains("b"), set.len()), (false, true, 1));
        set.rollback();
        assert_eq!((set.contains("a"), set.contains("b"), set.len()), (true, false, 1));
        assert!(set.remove("a".to_owned()) && set.insert("a".to_owned()));
        set.commit();
        assert_eq!((set.contains("a"), set.len()), (true, 1));
    }
}
