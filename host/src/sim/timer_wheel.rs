//! The timer wheel: in-memory timers with names, fired in the order of their deadlines. The game loop asks it for due
//! timers one at a time and hands each payload back; it never reads a clock, never calls anything, never allocates
//! to fire.
//!
//! A deadline is kept in nanoseconds and rounds *up* to the tick, so a timer never fires early. A timer that repeats
//! counts from its nominal deadline, so it does not drift; occurrences that were missed are one firing that says how
//! many. Deadlines in the same tick fire in order of registration. Registering, cancelling, firing and finding the
//! next wake-up take constant time (see [`levels`]), cancelling by name takes time for what it cancels
//! and for timers of that name that ended since.

mod levels;
mod names;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::time::Duration;

use thiserror::Error;

use levels::{HOLE, Levels, NOWHERE, Place};
pub use names::NameId;
use names::Names;

/// Bits of a timer id that say where its entry lies; the rest number the registrations.
const INDEX_BITS: u32 = 24;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;

/// How many timers are read ahead of their turn.
const AHEAD: usize = 16;

/// The most timers a wheel can hold, whatever its options say.
pub const MAX_PENDING_LIMIT: usize = 1 << INDEX_BITS;

/// A timer's id. Later registrations have greater ids, and no id is given twice (before 2^40 registrations).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId(u64);

impl TimerId {
    /// The id as a number, for those who keep ids outside this process's types.
    pub fn as_u64(self) -> u64 {
        self.0
    }

    /// The id of that number. One that was never given out names no timer.
    pub fn from_u64(id: u64) -> Self {
        Self(id)
    }

    fn index(self) -> usize {
        (self.0 & INDEX_MASK) as usize
    }
}

/// Why a timer was not registered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TimerError {
    #[error("timer `{name}`: the interval is zero; give it a positive one")]
    ZeroInterval { name: String },
    #[error("timer `{name}`: the delay is zero; give it a positive one, or none to wait one interval")]
    ZeroDelay { name: String },
    #[error("timer `{name}`: {max_pending} timers are pending already; cancel some or raise timers.max_pending")]
    Full { name: String, max_pending: usize },
    #[error("timer `{name}`: the loop has stopped, so it would never fire")]
    Stopped { name: String },
}

/// One firing of a timer, as its callback learns of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Firing {
    pub id: TimerId,
    /// Known to the wheel until the next timer is asked for, or for good if it came from [`TimerWheel::name`].
    pub name: NameId,
    /// How many further occurrences passed since the last firing, and are dealt with by this one.
    pub missed: u64,
    /// The nominal deadline of the first occurrence that this firing stands for.
    pub due: Duration,
    /// How long after `due` it fires. Rounding up to the tick is part of it.
    pub late: Duration,
    /// Whether it will fire again.
    pub repeats: bool,
}

/// What the wheel has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimerCounts {
    pub registered: u64,
    pub fired: u64,
    pub cancelled: u64,
    /// Missed occurrences that were folded into a later firing.
    pub coalesced: u64,
}

/// A timer without its payload. Half a cache line, so that finding, moving and cancelling one costs a single miss.
#[repr(align(32))]
struct Entry {
    /// The timer's id, or [`HOLE`] in a vacant entry.
    id: u64,
    /// The nominal deadline; in a vacant entry, the next vacant one.
    deadline_ns: u64,
    /// Zero if it fires once.
    interval_ns: u64,
    name: NameId,
    place: Place,
}

/// Timers of payload `T`.
pub struct TimerWheel<T> {
    tick_ns: u64,
    max_pending: usize,
    levels: Levels,
    entries: Vec<Entry>,
    /// The payload of each entry, out while its callback runs. Some payloads stay in vacant entries, if dropping them
    /// does nothing.
    payloads: Vec<Option<T>>,
    vacant: u32,
    active: usize,
    registrations: u64,
    names: Names,
    /// The ids of the slot that is firing, in order, and how many of them were dealt with.
    due: Vec<u64>,
    due_done: usize,
    closed: bool,
    counts: TimerCounts,
}

impl<T> TimerWheel<T> {
    /// A wheel whose lowest level has `wheel_size` slots (rounded up to a power of two) of one `tick`, for at most
    /// `max_pending` timers ([`MAX_PENDING_LIMIT`] if that is less).
    ///
    /// # Panics
    /// If `tick` or `wheel_size` is zero; the loop's options refuse both.
    pub fn new(tick: Duration, wheel_size: usize, max_pending: usize) -> Self {
        assert!(!tick.is_zero() && wheel_size > 0, "a wheel needs a positive tick and size");
        Self {
            tick_ns: nanos(tick),
            max_pending: max_pending.min(MAX_PENDING_LIMIT),
            levels: Levels::new(wheel_size.next_power_of_two().trailing_zeros()),
            entries: Vec::new(),
            payloads: Vec::new(),
            vacant: NOWHERE,
            active: 0,
            registrations: 0,
            names: Names::new(),
            due: Vec::new(),
            due_done: 0,
            closed: false,
            counts: TimerCounts::default(),
        }
    }

    /// The id of a name, for registering without hashing. The wheel remembers the name for good, so this is for names
    /// the program chooses; names from outside go through [`Self::register_named`].
    pub fn name(&mut self, text: &str) -> NameId {
        self.names.keep(text)
    }

    /// The text of a name.
    pub fn name_text(&self, name: NameId) -> &str {
        self.names.text(name)
    }

    /// How many timers are registered.
    pub fn active(&self) -> usize {
        self.active
    }

    /// How many timers bear a name.
    pub fn active_named(&self, name: &str) -> usize {
        self.names.find(name).map_or(0, |name| self.names.count(name))
    }

    /// Whether a timer is registered. One that fires once no longer is when its callback runs.
    pub fn contains(&self, id: TimerId) -> bool {
        self.entry_index(id).is_some()
    }

    pub fn counts(&self) -> TimerCounts {
        self.counts
    }

    /// Registers a timer at time `now`. It first fires `delay` from now, or one `interval` from now without a delay;
    /// with `repeat`, then every `interval`.
    pub fn register(
        &mut self,
        now: Duration,
        name: NameId,
        interval: Duration,
        delay: Option<Duration>,
        repeat: bool,
        payload: T,
    ) -> Result<TimerId, TimerError> {
        if interval.is_zero() || delay.is_some_and(|delay| delay.is_zero()) || self.is_full_or_closed() {
            return Err(self.refusal(self.names.text(name).into(), interval, delay));
        }
        let now_ns = nanos(now);
        if self.active == 0 {
            // Nothing can be overtaken, so the levels need not walk here later.
            let current = self.levels.current().max(now_ns / self.tick_ns);
            self.levels.set_current(current);
        }
        // Only a caller whose time went back could ask for a deadline that is over.
        let deadline_ns =
            now_ns.saturating_add(nanos(delay.unwrap_or(interval))).max(self.reached_ns().saturating_add(1));
        let interval_ns = if repeat { nanos(interval) } else { 0 };
        self.registrations += 1;
        let index = if self.vacant == NOWHERE { self.entries.len() as u32 } else { self.vacant };
        let id = (self.registrations << INDEX_BITS) | u64::from(index);
        let place = self.levels.insert(deadline_ns.div_ceil(self.tick_ns), id);
        let entry = Entry { id, deadline_ns, interval_ns, name, place };
        match self.entries.get_mut(index as usize) {
            Some(vacant) => {
                self.vacant = vacant.deadline_ns as u32;
                *vacant = entry;
                self.payloads[index as usize] = Some(payload);
            }
            None => {
                self.entries.push(entry);
                self.payloads.push(Some(payload));
            }
        }
        let entries = &self.entries;
        self.names.add(name, id, |id| entries[TimerId(id).index()].id == id);
        self.active += 1;
        self.counts.registered += 1;
        Ok(TimerId(id))
    }

    /// [`Self::register`] with the name as text. The wheel forgets the name some time after its last timer.
    pub fn register_named(
        &mut self,
        now: Duration,
        name: &str,
        interval: Duration,
        delay: Option<Duration>,
        repeat: bool,
        payload: T,
    ) -> Result<TimerId, TimerError> {
        // Refused before the name is stored, so that refusals cost no memory.
        if interval.is_zero() || delay.is_some_and(|delay| delay.is_zero()) || self.is_full_or_closed() {
            return Err(self.refusal(name.into(), interval, delay));
        }
        let name = self.names.borrow(name);
        self.register(now, name, interval, delay, repeat, payload)
    }

    fn is_full_or_closed(&self) -> bool {
        self.active >= self.max_pending || self.closed
    }

    #[cold]
    fn refusal(&self, name: String, interval: Duration, delay: Option<Duration>) -> TimerError {
        if interval.is_zero() {
            TimerError::ZeroInterval { name }
        } else if delay.is_some_and(|delay| delay.is_zero()) {
            TimerError::ZeroDelay { name }
        } else if self.closed {
            TimerError::Stopped { name }
        } else {
            TimerError::Full { name, max_pending: self.max_pending }
        }
    }

    /// Cancels a timer. `false` if it is not registered (any more).
    #[inline]
    pub fn unregister(&mut self, id: TimerId) -> bool {
        let Some(index) = self.entry_index(id) else { return false };
        self.cancel(index);
        true
    }

    /// Cancels every timer of that name and says how many there were.
    pub fn unregister_named(&mut self, name: &str) -> usize {
        self.names.find(name).map_or(0, |name| self.unregister_all_of(name))
    }

    /// [`Self::unregister_named`] without hashing.
    pub fn unregister_all_of(&mut self, name: NameId) -> usize {
        let count = self.names.count(name);
        for id in self.names.take_bearers(name) {
            self.unregister(TimerId(id));
        }
        count
    }

    /// Cancels every timer and says how many there were.
    pub fn unregister_all(&mut self) -> usize {
        let count = self.active;
        self.counts.cancelled += count as u64;
        self.entries = Vec::new();
        self.payloads = Vec::new();
        self.vacant = NOWHERE;
        self.active = 0;
        self.levels.clear();
        self.names.clear_bearers();
        self.due.clear();
        self.due_done = 0;
        count
    }

    /// Cancels every timer and refuses new ones from now on.
    pub fn close(&mut self) -> usize {
        self.closed = true;
        self.unregister_all()
    }

    fn cancel(&mut self, index: usize) {
        let Entry { id, place, .. } = self.entries[index];
        self.levels.remove(place, id);
        self.vacate(index);
        if std::mem::needs_drop::<T>() {
            self.payloads[index] = None;
        }
        self.counts.cancelled += 1;
    }

    /// Frees an entry that no slot holds.
    #[inline]
    fn vacate(&mut self, index: usize) {
        let entry = &mut self.entries[index];
        entry.id = HOLE;
        entry.deadline_ns = u64::from(self.vacant);
        self.vacant = index as u32;
        self.names.remove_one(entry.name);
        self.active -= 1;
    }

    #[inline]
    fn entry_index(&self, id: TimerId) -> Option<usize> {
        let index = id.index();
        let entry = self.entries.get(index)?;
        (entry.id == id.0 && id.0 != HOLE).then_some(index)
    }

    /// The end of the tick reached so far. Every deadline before it is over.
    #[inline]
    fn reached_ns(&self) -> u64 {
        self.levels.current().saturating_mul(self.tick_ns)
    }

    /// How long after `now` the loop should look again: zero if a timer is due, nothing if there are no timers. For
    /// timers more than a turn away it may be early, by enough to move them a level down.
    pub fn next_wakeup(&mut self, now: Duration) -> Option<Duration> {
        if self.due_done < self.due.len() {
            return Some(Duration::ZERO);
        }
        self.levels.settle();
        let upcoming = self.levels.upcoming()?;
        let at_ns = upcoming.tick.saturating_mul(self.tick_ns);
        Some(Duration::from_nanos(at_ns.saturating_sub(nanos(now))))
    }

    /// The next timer that is due at `now`, with its payload. Give the payload back with [`Self::put_back`] when the
    /// callback has returned; until then the timer can be cancelled as ever.
    ///
    /// # Panics
    /// If a timer that repeats is due again and its payload was not put back.
    #[inline]
    pub fn pop_due(&mut self, now: Duration) -> Option<(Firing, T)> {
        let now_ns = nanos(now);
        loop {
            while let Some(&id) = self.due.get(self.due_done) {
                if self.due_done.is_multiple_of(AHEAD) {
                    self.touch(&self.due[self.due_done..]);
                }
                self.due_done += 1;
                // A timer that was cancelled after its slot came due has left its entry.
                let Some(index) = self.entry_index(TimerId(id)) else { continue };
                return Some(self.fire(index, now_ns));
            }
            self.due.clear();
            self.due_done = 0;
            self.names.sweep_if_many();
            if !self.advance(now_ns / self.tick_ns) {
                return None;
            }
        }
    }

    fn fire(&mut self, index: usize, now_ns: u64) -> (Firing, T) {
        let reached_ns = self.reached_ns();
        let entry = &mut self.entries[index];
        let due_ns = entry.deadline_ns;
        let interval_ns = entry.interval_ns;
        let mut firing = Firing {
            id: TimerId(entry.id),
            name: entry.name,
            missed: 0,
            due: Duration::from_nanos(due_ns),
            late: Duration::from_nanos(now_ns.saturating_sub(due_ns)),
            repeats: interval_ns != 0,
        };
        self.counts.fired += 1;
        let payload = self.payloads[index].take();
        if interval_ns == 0 {
            self.vacate(index);
        } else {
            // Occurrences whose tick has come, too, are over with this firing.
            let now_tick_ns = (now_ns - now_ns % self.tick_ns).max(reached_ns);
            let mut next_ns = due_ns.saturating_add(interval_ns);
            if next_ns <= now_tick_ns {
                firing.missed = (now_tick_ns - due_ns) / interval_ns;
                next_ns = due_ns.saturating_add((firing.missed + 1).saturating_mul(interval_ns));
                self.counts.coalesced += firing.missed;
            }
            entry.deadline_ns = next_ns;
            entry.place = self.levels.insert(next_ns.div_ceil(self.tick_ns), firing.id.0);
        }
        (firing, payload.expect("the payload of the last firing was put back, as pop_due asks"))
    }

    /// Gives back the payload of a timer that fired. A timer that is over, or was cancelled meanwhile, drops it.
    #[inline]
    pub fn put_back(&mut self, id: TimerId, payload: T) {
        if let Some(index) = self.entry_index(id) {
            self.payloads[index] = Some(payload);
        }
    }

    /// Moves to the next tick, not after `target`, at which ids are due, and lays them out in order. `false` when
    /// there is none.
    fn advance(&mut self, target: u64) -> bool {
        self.levels.settle();
        while let Some(upcoming) = self.levels.upcoming() {
            if upcoming.tick > target {
                break;
            }
            self.levels.set_current(upcoming.tick);
            if upcoming.exact {
                self.lay_out(upcoming.slot);
                return true;
            }
            self.cascade(upcoming.slot);
            if let Some(slot) = self.levels.occupied_now() {
                self.lay_out(slot);
                return true;
            }
        }
        if target > self.levels.current() {
            self.levels.set_current(target);
        }
        false
    }

    /// Spreads a slot of a higher level over the levels below.
    fn cascade(&mut self, slot: usize) {
        // Nothing is due, so its list is free to hold the ids on their way.
        self.levels.take_slot(slot, &mut self.due);
        for done in 0..self.due.len() {
            if done.is_multiple_of(AHEAD) {
                self.touch(&self.due[done..]);
            }
            let id = self.due[done];
            let entry = &mut self.entries[TimerId(id).index()];
            entry.place = self.levels.insert(entry.deadline_ns.div_ceil(self.tick_ns), id);
        }
        self.due.clear();
    }

    /// Moves the ids of a slot that is due to `due`, in order of registration.
    fn lay_out(&mut self, slot: usize) {
        if !self.levels.take_slot(slot, &mut self.due) {
            // Timers that repeat come back after younger ones. Ids order by registration.
            self.due.sort_unstable();
        }
    }

    /// Reads the entries of the first [`AHEAD`] ids, with nothing that depends on what was read, so that their cache
    /// misses overlap instead of being waited for one by one.
    fn touch(&self, ids: &[u64]) {
        let mut touched = 0;
        for &id in ids.iter().take(AHEAD) {
            let index = TimerId(id).index();
            if let (Some(entry), Some(payload)) = (self.entries.get(index), self.payloads.get(index)) {
                touched ^= entry.id ^ u64::from(payload.is_some());
            }
        }
        std::hint::black_box(touched);
    }
}

/// A duration as nanoseconds, the longest ones as the longest that 64 bits hold (584 years).
#[inline]
fn nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(duration.subsec_nanos()))
}
