//! The names of timers, and which timers bear each: what makes cancelling by name cost no more than what it cancels.
//! The wheel calls it at every registration and removal; it never hashes unless it is given a text.

use rustc_hash::FxHashMap;

/// A name the wheel knows. Registering with it does not hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NameId(u32);

struct Name {
    text: Box<str>,
    /// Indexes of the entries that bear this name, in no order.
    bearers: Vec<u32>,
    /// Somebody holds its [`NameId`], so it must stay.
    kept: bool,
}

/// Every name in use.
pub(super) struct Names {
    by_text: FxHashMap<Box<str>, u32>,
    names: Vec<Name>,
    vacant: Vec<u32>,
    /// Names nobody holds are swept when there are this many in all.
    sweep_at: usize,
    /// For each entry of the wheel, where it lies in its name's `bearers`. Apart from the entries, because a removal
    /// touches the place of another entry too, and these are small enough to stay in the cache.
    position_of: Vec<u32>,
}

/// Names to keep before the first sweep.
const FIRST_SWEEP: usize = 1024;

impl Names {
    pub fn new() -> Self {
        Self {
            by_text: FxHashMap::default(),
            names: Vec::new(),
            vacant: Vec::new(),
            sweep_at: FIRST_SWEEP,
            position_of: Vec::new(),
        }
    }

    /// The id of `text`, for good.
    pub fn keep(&mut self, text: &str) -> NameId {
        let id = self.borrow(text);
        self.names[id.0 as usize].kept = true;
        id
    }

    /// The id of `text`, for as long as a timer bears it.
    pub fn borrow(&mut self, text: &str) -> NameId {
        if let Some(&at) = self.by_text.get(text) {
            return NameId(at);
        }
        let name = Name { text: text.into(), bearers: Vec::new(), kept: false };
        let at = match self.vacant.pop() {
            Some(at) => {
                self.names[at as usize] = name;
                at
            }
            None => {
                self.names.push(name);
                (self.names.len() - 1) as u32
            }
        };
        self.by_text.insert(text.into(), at);
        NameId(at)
    }

    /// Drops the names that no timer bears and nobody holds, if many names have come since the last time: when they
    /// have doubled, so that a registration pays for a constant part of it.
    pub fn sweep_if_many(&mut self) {
        if self.by_text.len() >= self.sweep_at {
            self.sweep();
        }
    }

    fn sweep(&mut self) {
        let Self { by_text, names, vacant, .. } = self;
        by_text.retain(|_, &mut at| {
            let name = &mut names[at as usize];
            let used = name.kept || !name.bearers.is_empty();
            if !used {
                *name = Name { text: Box::default(), bearers: Vec::new(), kept: false };
                vacant.push(at);
            }
            used
        });
        self.sweep_at = (2 * by_text.len()).max(FIRST_SWEEP);
    }

    /// How many names are remembered.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.by_text.len()
    }

    pub fn find(&self, text: &str) -> Option<NameId> {
        self.by_text.get(text).map(|&at| NameId(at))
    }

    pub fn text(&self, id: NameId) -> &str {
        &self.names[id.0 as usize].text
    }

    /// Notes that `entry` bears the name `id`.
    #[inline]
    pub fn add(&mut self, id: NameId, entry: u32) {
        let bearers = &mut self.names[id.0 as usize].bearers;
        let position = bearers.len() as u32;
        bearers.push(entry);
        match self.position_of.get_mut(entry as usize) {
            Some(place) => *place = position,
            None => {
                debug_assert_eq!(self.position_of.len(), entry as usize, "entries are numbered without gaps");
                self.position_of.push(position);
            }
        }
    }

    /// Notes that `entry` bears it no longer.
    #[inline]
    pub fn remove(&mut self, id: NameId, entry: u32) {
        let position = self.position_of[entry as usize];
        let bearers = &mut self.names[id.0 as usize].bearers;
        bearers.swap_remove(position as usize);
        if let Some(&moved) = bearers.get(position as usize) {
            self.position_of[moved as usize] = position;
        }
    }

    /// One of the entries that bear the name.
    pub fn any_bearer(&self, id: NameId) -> Option<u32> {
        self.names[id.0 as usize].bearers.last().copied()
    }

    /// How many entries bear the name.
    pub fn count(&self, id: NameId) -> usize {
        self.names[id.0 as usize].bearers.len()
    }

    /// Forgets who bears what; the names stay.
    pub fn clear_bearers(&mut self) {
        for name in &mut self.names {
            name.bearers = Vec::new();
        }
        self.position_of = Vec::new();
    }
}
