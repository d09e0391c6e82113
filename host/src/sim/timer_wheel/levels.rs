//! Where timers wait for their tick: the levels of the wheel, as lists of timer ids with one occupancy bit a slot.
//! The wheel calls it with ticks and ids; it never sees a timer's interval, name or payload.
//!
//! Level 0 holds one tick a slot, and each level above it has 64 slots of one whole turn of the level below. Windows
//! are aligned: an id lies on the lowest level whose window it shares with the current tick, so everything on a level
//! comes before everything on the levels above. A slot of a higher level is emptied into the lower ones when time
//! reaches its first tick, before anything can be added below it, and so keeps the order of its ids.
//!
//! The ids of a slot lie in chunks taken from one pool. A cancelled id leaves a hole, and a chunk of holes goes back
//! to the pool, so no operation here looks at more than one chunk, one slot, or the bitmap.

use std::hint::black_box;

/// Ids in one chunk, so that a chunk is one cache line, and taking an id out touches no other.
const CHUNK_IDS: usize = 6;

/// Slots of every level but the lowest, so that one word holds its occupancy.
const UPPER_SLOTS_BITS: u32 = 6;

/// Removals that are put off at most.
const REMOVALS: usize = 32;

/// "No chunk": the end of a list.
pub(super) const NOWHERE: u32 = u32::MAX;

/// An id that was taken away. Ids begin above it.
pub(super) const HOLE: u64 = 0;

/// Where an id lies, so that it can be taken out without a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

/// Bits of a place that say where in its chunk an id lies.
const POSITION_BITS: u32 = 3;
const POSITION_MASK: u32 = (1 << POSITION_BITS) - 1;

impl Place {
    fn new(chunk: u32, position: usize) -> Self {
        Self((chunk << POSITION_BITS) | position as u32)
    }

    fn chunk(self) -> u32 {
        self.0 >> POSITION_BITS
    }

    fn position(self) -> usize {
        (self.0 & POSITION_MASK) as usize
    }
}

/// The next slot that holds anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Upcoming {
    /// The slot's first tick. On level 0 that is the tick of all its ids.
    pub tick: u64,
    pub slot: usize,
    pub exact: bool,
}

#[derive(Clone)]
#[repr(align(64))]
struct Chunk {
    next: u32,
    previous: u32,
    slot: u32,
    /// How many positions were ever filled, and how many of them still hold an id.
    len: u16,
    live: u16,
    ids: [u64; CHUNK_IDS],
}

#[derive(Clone, Copy)]
struct Slot {
    head: u32,
    tail: u32,
}

impl Slot {
    const EMPTY: Self = Self { head: NOWHERE, tail: NOWHERE };
}

/// All levels, and the tick they are at.
pub(super) struct Levels {
    current: u64,
    base_bits: u32,
    /// Where level 1 begins in `slots`; level 0 is padded to whole words of `occupied`.
    upper_start: usize,
    slots: Vec<Slot>,
    occupied: Vec<u64>,
    chunks: Vec<Chunk>,
    free_chunk: u32,
    removals: Vec<(Place, u64)>,
}

impl Levels {
    /// Levels over 2^`base_bits` slots of one tick each, reaching to the end of time.
    pub fn new(base_bits: u32) -> Self {
        let upper_start = (1usize << base_bits).next_multiple_of(64);
        let upper_levels = (64 - base_bits).div_ceil(UPPER_SLOTS_BITS) as usize;
        let slots = upper_start + (upper_levels << UPPER_SLOTS_BITS);
        Self {
            current: 0,
            base_bits,
            upper_start,
            slots: vec![Slot::EMPTY; slots],
            occupied: vec![0; slots / 64],
            chunks: Vec::new(),
            free_chunk: NOWHERE,
            removals: Vec::with_capacity(REMOVALS),
        }
    }

    /// The tick reached so far.
    pub fn current(&self) -> u64 {
        self.current
    }

    /// Moves on to `tick`. The caller has dealt with every slot before it.
    pub fn set_current(&mut self, tick: u64) {
        debug_assert!(tick >= self.current);
        self.current = tick;
    }

    /// Adds `id`, due at `tick`, which is not before the current one.
    #[inline]
    pub fn insert(&mut self, tick: u64, id: u64) -> Place {
        let slot = self.slot_of(tick);
        let tail = self.slots[slot].tail;
        if tail != NOWHERE {
            let chunk = &mut self.chunks[tail as usize];
            let position = chunk.len as usize;
            if position < CHUNK_IDS {
                chunk.ids[position] = id;
                chunk.len += 1;
                chunk.live += 1;
                return Place::new(tail, position);
            }
        }
        self.insert_in_new_chunk(slot, tail, id)
    }

    fn insert_in_new_chunk(&mut self, slot: usize, tail: u32, id: u64) -> Place {
        let mut ids = [HOLE; CHUNK_IDS];
        ids[0] = id;
        let chunk = Chunk { next: NOWHERE, previous: tail, slot: slot as u32, len: 1, live: 1, ids };
        let at = match self.free_chunk {
            NOWHERE => {
                self.chunks.push(chunk);
                (self.chunks.len() - 1) as u32
            }
            free => {
                self.free_chunk = self.chunks[free as usize].next;
                self.chunks[free as usize] = chunk;
                free
            }
        };
        match tail {
            NOWHERE => {
                self.slots[slot].head = at;
                self.occupied[slot / 64] |= 1 << (slot % 64);
            }
            _ => self.chunks[tail as usize].next = at,
        }
        self.slots[slot].tail = at;
        Place::new(at, 0)
    }

    /// Takes `id` out of its slot, if it lies at `place` still: it does not once its slot was taken. It may happen as
    /// late as [`Self::settle`], so that the cache misses of many removals overlap.
    #[inline]
    pub fn remove(&mut self, place: Place, id: u64) {
        self.removals.push((place, id));
        if self.removals.len() == REMOVALS {
            self.settle();
        }
    }

    /// Does the removals that were put off. Needed before anything that looks into slots.
    pub fn settle(&mut self) {
        if self.removals.is_empty() {
            return;
        }
        // Reading all of them first, with nothing that depends on what was read, lets the reads overlap.
        let mut touched = 0;
        for (place, _) in &self.removals {
            touched ^= self.chunks[place.chunk() as usize].live;
        }
        black_box(touched);
        for index in 0..self.removals.len() {
            let (place, id) = self.removals[index];
            self.remove_now(place, id);
        }
        self.removals.clear();
    }

    fn remove_now(&mut self, place: Place, id: u64) {
        let chunk = &mut self.chunks[place.chunk() as usize];
        let found = &mut chunk.ids[place.position()];
        if *found != id {
            return;
        }
        *found = HOLE;
        chunk.live -= 1;
        if chunk.live == 0 {
            self.unlink(place.chunk());
        }
    }

    fn unlink(&mut self, at: u32) {
        let Chunk { next, previous, slot, .. } = self.chunks[at as usize];
        let slot = slot as usize;
        match previous {
            NOWHERE => self.slots[slot].head = next,
            _ => self.chunks[previous as usize].next = next,
        }
        match next {
            NOWHERE => self.slots[slot].tail = previous,
            _ => self.chunks[next as usize].previous = previous,
        }
        if self.slots[slot].head == NOWHERE {
            self.occupied[slot / 64] &= !(1 << (slot % 64));
        }
        self.release(at);
    }

    /// Gives a chunk back to the pool, without ids, so that no old place leads to one.
    fn release(&mut self, at: u32) {
        let chunk = &mut self.chunks[at as usize];
        chunk.ids = [HOLE; CHUNK_IDS];
        chunk.next = self.free_chunk;
        self.free_chunk = at;
    }

    /// Empties `slot` and appends its ids to `ids`. `false` if they are not in ascending order.
    pub fn take_slot(&mut self, slot: usize, ids: &mut Vec<u64>) -> bool {
        let mut next = self.slots[slot].head;
        self.slots[slot] = Slot::EMPTY;
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        let mut in_order = true;
        let mut last = HOLE;
        while next != NOWHERE {
            let chunk = &self.chunks[next as usize];
            for &id in &chunk.ids[..chunk.len as usize] {
                if id != HOLE {
                    in_order &= last < id;
                    last = id;
                    ids.push(id);
                }
            }
            let at = next;
            next = chunk.next;
            self.release(at);
        }
        in_order
    }

    /// The slot of level 0 that holds the current tick, if it holds anything.
    pub fn occupied_now(&self) -> Option<usize> {
        let slot = self.slot_of(self.current);
        (self.occupied[slot / 64] & (1 << (slot % 64)) != 0).then_some(slot)
    }

    /// The next slot after the current tick that holds anything.
    pub fn upcoming(&self) -> Option<Upcoming> {
        let base_mask = (1u64 << self.base_bits) - 1;
        let first = (self.current & base_mask) as usize + 1;
        if let Some(slot) = self.first_occupied(first, self.upper_start) {
            let tick = (self.current & !base_mask) | slot as u64;
            return Some(Upcoming { tick, slot, exact: true });
        }
        let upper_words = self.upper_start / 64;
        let mut shift = self.base_bits;
        for (level, &word) in self.occupied[upper_words..].iter().enumerate() {
            let here = (self.current >> shift) & 63;
            // Two shifts, because `here + 1` may be the whole width of the word.
            let ahead = (word >> here) >> 1;
            if ahead != 0 {
                let index = here + 1 + u64::from(ahead.trailing_zeros());
                let window = (self.current >> shift) & !63;
                let tick = (window | index) << shift;
                let slot = self.upper_start + (level << UPPER_SLOTS_BITS) + index as usize;
                return Some(Upcoming { tick, slot, exact: false });
            }
            shift += UPPER_SLOTS_BITS;
        }
        None
    }

    fn first_occupied(&self, from: usize, to: usize) -> Option<usize> {
        if from >= to {
            return None;
        }
        let mut word = from / 64;
        let mut bits = self.occupied[word] & (!0 << (from % 64));
        loop {
            if bits != 0 {
                return Some(word * 64 + bits.trailing_zeros() as usize);
            }
            word += 1;
            if word * 64 >= to {
                return None;
            }
            bits = self.occupied[word];
        }
    }

    #[inline]
    fn slot_of(&self, tick: u64) -> usize {
        debug_assert!(tick >= self.current);
        let above_base = (tick ^ self.current) >> self.base_bits;
        if above_base == 0 {
            return (tick & ((1u64 << self.base_bits) - 1)) as usize;
        }
        let level = (63 - above_base.leading_zeros()) / UPPER_SLOTS_BITS;
        let shift = self.base_bits + level * UPPER_SLOTS_BITS;
        let index = (tick >> shift) & 63;
        self.upper_start + ((level as usize) << UPPER_SLOTS_BITS) + index as usize
    }

    /// Forgets every id. Time stays where it is.
    pub fn clear(&mut self) {
        self.slots.fill(Slot::EMPTY);
        self.occupied.fill(0);
        self.chunks = Vec::new();
        self.free_chunk = NOWHERE;
        self.removals.clear();
    }
}
