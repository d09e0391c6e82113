//! The names of timers, and which timers bear each: what makes cancelling by name cost no more than what it cancels.
//! The wheel calls it at every registration and removal; it never hashes unless it is given a text.

use rustc_hash::FxHashMap;

/// A name the wheel knows. Registering with it does not hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NameId(u32);

struct Name {
    text: Box<str>,
    /// Ids of the timers that bear this name, in no order, and of some that are over.
    bearers: Vec<u64>,
    /// How many of them are not over.
    live: usize,
    /// Where the search for those that are over goes on.
    hand: usize,
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
}

/// Names to keep before the first sweep.
const FIRST_SWEEP: usize = 1024;

/// Dead ids that a name may carry before registrations begin to clear them out.
const DEAD_ALLOWED: usize = 32;

impl Name {
    fn new(text: &str) -> Self {
        Self { text: text.into(), bearers: Vec::new(), live: 0, hand: 0, kept: false }
    }

    /// Looks at a few ids and drops those that are over. Done at a registration, which adds one, this keeps the dead from
    /// outnumbering the living by much, and no single registration waits for a long sweep. Four, because what fills a
    /// gap comes from the end of the list, where the youngest are: two looks would find as many living as dead there,
    /// and the list would grow.
    fn drop_dead(&mut self, is_live: impl Fn(u64) -> bool) {
        for _ in 0..4 {
            if self.hand >= self.bearers.len() {
                self.hand = 0;
            }
            if is_live(self.bearers[self.hand]) {
                self.hand += 1;
            } else {
                self.bearers.swap_remove(self.hand);
            }
        }
    }
}

impl Names {
    pub fn new() -> Self {
        Self { by_text: FxHashMap::default(), names: Vec::new(), vacant: Vec::new(), sweep_at: FIRST_SWEEP }
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
        let name = Name::new(text);
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
            let used = name.kept || name.live > 0;
            if !used {
                *name = Name::new("");
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

    /// How many ids a name carries, those of timers that are over included.
    #[cfg(test)]
    pub fn carried(&self, name: NameId) -> usize {
        self.names[name.0 as usize].bearers.len()
    }

    pub fn find(&self, text: &str) -> Option<NameId> {
        self.by_text.get(text).map(|&at| NameId(at))
    }

    pub fn text(&self, id: NameId) -> &str {
        &self.names[id.0 as usize].text
    }

    /// Notes that the timer `id` bears a name. Its entry is in place, so that `is_live` says yes to it.
    #[inline]
    pub fn add(&mut self, name: NameId, id: u64, is_live: impl Fn(u64) -> bool) {
        let name = &mut self.names[name.0 as usize];
        name.bearers.push(id);
        name.live += 1;
        if name.bearers.len() > 2 * name.live + DEAD_ALLOWED {
            name.drop_dead(is_live);
        }
    }

    /// Notes that one of the timers of that name is over. Which one shows when somebody looks, so that a timer's end
    /// costs no search.
    #[inline]
    pub fn remove_one(&mut self, name: NameId) {
        let name = &mut self.names[name.0 as usize];
        name.live -= 1;
        if name.live == 0 {
            name.bearers.clear();
        }
    }

    /// The ids that bear the name, with some that are over; the name is left without them.
    pub fn take_bearers(&mut self, name: NameId) -> Vec<u64> {
        std::mem::take(&mut self.names[name.0 as usize].bearers)
    }

    /// How many timers bear the name.
    pub fn count(&self, name: NameId) -> usize {
        self.names[name.0 as usize].live
    }

    /// Forgets who bears what; the names stay.
    pub fn clear_bearers(&mut self) {
        for name in &mut self.names {
            name.bearers = Vec::new();
            name.live = 0;
        }
    }
}
