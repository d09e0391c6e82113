//! The key-value spaces: for each guest, by its name, an ordered map from keys to bytes. The world wraps its changes
//! in transactions; the durable copy is somebody else's.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use rustc_hash::FxHashMap;

/// One guest's keys and values.
#[derive(Debug)]
pub(super) struct Space {
    pub name: Arc<str>,
    pub pairs: BTreeMap<Box<str>, Vec<u8>>,
    /// All keys and values together, kept so that a limit check does not add them up.
    pub bytes: usize,
}

impl Space {
    /// Sets or, with `None`, deletes a key; answers what it held.
    pub fn replace(&mut self, key: &str, value: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let added = value.as_ref().map_or(0, |value| key.len() + value.len());
        let before = match (value, self.pairs.get_mut(key)) {
            (Some(value), Some(held)) => Some(std::mem::replace(held, value)),
            (Some(value), None) => self.pairs.insert(key.into(), value),
            (None, _) => self.pairs.remove(key),
        };
        let freed = before.as_ref().map_or(0, |before| key.len() + before.len());
        self.bytes = self.bytes + added - freed;
        before
    }

    /// The pairs whose key begins with `prefix` and comes after `after`, in the order of the keys.
    pub fn scan<'a>(&'a self, prefix: &'a str, after: Option<&'a str>) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        self.pairs
            .range::<str, _>((start, Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix))
            .map(|(key, value)| (&**key, &**value))
    }
}

/// All spaces. A space, once used, keeps its index.
#[derive(Debug, Default)]
pub(super) struct Spaces {
    indices: FxHashMap<Box<str>, u32>,
    spaces: Vec<Space>,
}

impl Spaces {
    pub fn len(&self) -> usize {
        self.spaces.len()
    }

    pub fn index(&self, name: &str) -> Option<u32> {
        self.indices.get(name).copied()
    }

    pub fn find(&self, name: &str) -> Option<&Space> {
        self.index(name).map(|index| &self.spaces[index as usize])
    }

    pub fn add(&mut self, name: &str) -> u32 {
        let index = self.spaces.len() as u32;
        self.spaces.push(Space { name: name.into(), pairs: BTreeMap::new(), bytes: 0 });
        self.indices.insert(name.into(), index);
        index
    }

    pub fn space(&self, index: u32) -> &Space {
        &self.spaces[index as usize]
    }

    pub fn space_mut(&mut self, index: u32) -> &mut Space {
        &mut self.spaces[index as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = &Space> {
        self.spaces.iter()
    }
}
