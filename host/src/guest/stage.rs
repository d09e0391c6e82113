//! What a guest's call may touch: the world, and the books in which its timers, tasks and packets are noted. The server
//! owns the stage and lends it to one call at a time; imports work on it through the instance that holds it.
//!
//! A handler's changes to the world are made at once and undone if it fails. Everything that reaches beyond the world
//! (timers, tasks, packets) is noted as an [`Effect`] and only handed out when the handler has returned: see
//! [`Stage::commit`]. What has to be kept goes into the [`Batch`] that is being filled, and each effect is handed out
//! with the batch that has to be on disk before a client may hear of it.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::event_book::EventBook;
use super::letter_book::{Letter, LetterBook};
use super::timer_book::TimerBook;
use crate::store::Batch;
use crate::world::{ThinkerId, World, WorldChange};

/// Timers and other effects of one handler. A rollback, which comes after the handler's deadline, takes them all back.
pub const MAX_EFFECTS: usize = 50_000;

/// What a packet or a letter costs beyond its own bytes, so that empty packets to many receivers are bounded too.
pub const PACKET_OVERHEAD_BYTES: usize = 64;

/// A guest's number: its place in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuestId(pub u32);

/// Something that a handler has done to the world outside the world. The server carries it out, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Register the timer with this id, which the book knows.
    SetTimer(u64),
    /// Unregister a timer that is on the wheel.
    CancelTimer(u64),
    /// Start a task.
    StartTask(NewTask),
    /// Cancel a task that runs.
    CancelTask(u64),
    /// Send a packet to each of these connections.
    Send { to: Vec<u64>, packet: Arc<[u8]> },
    /// Close a connection.
    Close(u64),
    /// Tell services something on behalf of that guest.
    Letter { from: GuestId, letter: Letter },
}

/// An effect of a handler that has returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    pub effect: Effect,
    /// The batch that holds what the handler has changed, or has read: once it is on disk, no crash undoes what a client
    /// is told. 0 where there is none.
    pub after: u64,
}

/// The handler has changed something durable, and nothing such is taken now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unkept;

/// The kinds of durable state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    Entities,
    Kv,
    Events,
}

/// A task that a handler has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTask {
    pub id: u64,
    /// Who hears how it ends.
    pub owner: GuestId,
    /// The step task or job.
    pub guest: GuestId,
    pub arguments: Vec<u8>,
}

/// What the host allows one handler beyond what the world's own limits say.
#[derive(Clone, Debug)]
pub struct StageLimits {
    /// Step tasks and jobs that run at one time.
    pub max_tasks: usize,
    /// Timers on the wheel, NPCs' included.
    pub max_timers: usize,
    /// Bytes of one packet.
    pub max_packet_bytes: usize,
    /// Bytes of all packets and letters of one handler, each counted for every receiver and with an overhead.
    pub max_sent_bytes: usize,
    /// Bytes of anything else that a guest hands over in one piece.
    pub max_payload_bytes: usize,
}

/// The stage. There is one.
pub struct Stage {
    pub world: World,
    pub timers: TimerBook,
    pub events: EventBook,
    pub letters: LetterBook,
    /// What has been changed and is yet to be handed to the store.
    pub batch: Batch,
    pub limits: StageLimits,
    /// Connections that are bound to a game, as the loop has heard of them: those whose clients can be players.
    pub connections: FxHashSet<u64>,
    /// The thinkers, by guest name. A thinker's id is its guest's.
    pub thinkers: FxHashMap<String, ThinkerId>,
    /// The step tasks and jobs that can be started, by guest name.
    pub task_guests: FxHashMap<String, GuestId>,
    /// The tasks that run, and who started each.
    pub tasks: FxHashMap<u64, GuestId>,
    /// Tasks that have ended and whose owners have not heard of it, set before each call.
    pub untold_tasks: usize,
    /// Timers on the wheel that are not guests' own, set before each call.
    pub other_timers: usize,
    /// The wall clock in milliseconds since 1970-01-01 UTC, set before each call.
    pub now_ms: u64,
    /// Whether handlers may change something durable now.
    pub takes_changes: bool,
    /// For each kind of durable state the newest batch with a change to it.
    changed_in: [u64; 3],
    /// The newest batch with anything that the handler that runs has read.
    read_from: u64,
    /// The newest batch that any letter so far waits for.
    letters_after: u64,
    /// What the answer of the handler that ended last, its result or its refusal, has to wait for.
    pub answer_after: u64,
    /// The newest batch with anything that the next handler is told: a timer's payload, a task's result, an NPC's act may
    /// come from what was changed or read before. Set before a call, where it may be so.
    pub told_from: u64,
    next_task: u64,
    /// What the handler that runs has done so far.
    noted: Vec<Effect>,
    noted_sent_bytes: usize,
    noted_tasks: usize,
    /// What handlers that have returned did, for the server to carry out.
    committed: Vec<Committed>,
}

impl Stage {
    /// A stage around a world and its events.
    pub fn new(world: World, events: EventBook, limits: StageLimits) -> Self {
        Self {
            world,
            timers: TimerBook::default(),
            events,
            letters: LetterBook::default(),
            batch: Batch { number: 1, ..Batch::default() },
            limits,
            connections: FxHashSet::default(),
            thinkers: FxHashMap::default(),
            task_guests: FxHashMap::default(),
            tasks: FxHashMap::default(),
            untold_tasks: 0,
            other_timers: 0,
            now_ms: 0,
            takes_changes: true,
            changed_in: [0; 3],
            read_from: 0,
            letters_after: 0,
            answer_after: 0,
            told_from: 0,
            next_task: 1,
            noted: Vec::new(),
            noted_sent_bytes: 0,
            noted_tasks: 0,
            committed: Vec::new(),
        }
    }

    /// Begins a handler.
    pub fn begin(&mut self) {
        // What thinkers and tasks have read since is none of this handler's business.
        self.read_from = std::mem::take(&mut self.told_from);
        self.world.begin();
    }

    /// The handler has returned: its changes stand, and its effects are handed out by
    /// [`take_effects`](Self::take_effects). An error says that it has changed something durable while nothing such is
    /// taken; then nothing it did has happened.
    pub fn commit(&mut self) -> Result<(), Unkept> {
        if !self.takes_changes && (self.world.has_changes_to_keep() || self.events.has_noted()) {
            self.rollback();
            return Err(Unkept);
        }
        let after = if self.commit_durable() { self.batch.number } else { self.read_from };
        self.answer_after = after;
        self.timers.commit();
        self.letters.commit();
        for effect in self.noted.drain(..) {
            match &effect {
                Effect::StartTask(task) => drop(self.tasks.insert(task.id, task.owner)),
                Effect::SetTimer(id) => self.timers.set_after(*id, after),
                Effect::Letter { .. } => self.letters_after = self.letters_after.max(after),
                _ => {}
            }
            self.committed.push(Committed { effect, after });
        }
        self.forget_noted();
        Ok(())
    }

    /// Adds what has to be kept to the batch. Answers whether there was anything.
    fn commit_durable(&mut self) -> bool {
        let batch = &mut self.batch;
        let number = batch.number;
        let before = batch.world.len();
        self.world.commit_to(&mut batch.world);
        for change in &batch.world[before..] {
            let (kind, bytes) = match change {
                WorldChange::Kv { key, value, .. } => (Durable::Kv, key.len() + value.as_ref().map_or(0, Vec::len)),
                WorldChange::Data { name, value, .. } => {
                    (Durable::Entities, name.len() + value.as_ref().map_or(0, Vec::len))
                }
                _ => (Durable::Entities, 0),
            };
            self.changed_in[kind as usize] = number;
            batch.bytes += bytes;
        }
        let has_changed_world = batch.world.len() > before;
        let has_changed_events = self.events.commit(self.now_ms, batch);
        if has_changed_events {
            self.changed_in[Durable::Events as usize] = number;
        }
        has_changed_world || has_changed_events
    }

    /// What the host itself has noted about events stands.
    pub fn commit_events(&mut self) {
        if self.events.commit(self.now_ms, &mut self.batch) {
            self.changed_in[Durable::Events as usize] = self.batch.number;
        }
    }

    /// The handler that runs looks at something durable.
    pub(super) fn note_read(&mut self, what: Durable) {
        self.read_from = self.read_from.max(self.changed_in[what as usize]);
    }

    /// The handler that runs looks at services, which it sees as they will be once all letters are delivered.
    pub(super) fn note_look_at_services(&mut self) {
        if self.letters.has_waiting() {
            self.read_from = self.read_from.max(self.letters_after);
        }
    }

    /// The newest batch with a change to anything that can be read from the world.
    pub fn newest_change(&self) -> u64 {
        self.changed_in[Durable::Entities as usize].max(self.changed_in[Durable::Kv as usize])
    }

    /// Takes the batch that was being filled, to be handed to the store, and begins the next.
    pub fn seal_batch(&mut self) -> Batch {
        let next = Batch { number: self.batch.number + 1, ..Batch::default() };
        std::mem::replace(&mut self.batch, next)
    }

    /// The handler has failed: nothing it did has happened.
    pub fn rollback(&mut self) {
        self.answer_after = self.read_from;
        self.world.rollback();
        self.timers.rollback();
        self.events.rollback();
        self.letters.rollback();
        self.noted.clear();
        self.forget_noted();
    }

    fn forget_noted(&mut self) {
        self.noted_sent_bytes = 0;
        self.noted_tasks = 0;
        self.read_from = 0;
    }

    /// What committed handlers have done, oldest first. Trades vectors with `into`, which must be empty.
    pub fn take_effects(&mut self, into: &mut Vec<Committed>) {
        std::mem::swap(&mut self.committed, into);
    }

    /// Whether the handler that runs has done as much as one handler may.
    pub(super) fn is_full(&self) -> bool {
        self.noted.len() >= MAX_EFFECTS
    }

    /// Notes that a timer was set; the book has it already.
    pub(super) fn note_timer(&mut self, id: u64) {
        self.noted.push(Effect::SetTimer(id));
    }

    /// Notes that timers on the wheel were cancelled.
    pub(super) fn note_cancelled_timers(&mut self, ids: impl IntoIterator<Item = u64>) {
        self.noted.extend(ids.into_iter().map(Effect::CancelTimer));
    }

    /// Notes a new task and answers its id; `None` when there are too many.
    pub(super) fn note_task(&mut self, owner: GuestId, guest: GuestId, arguments: Vec<u8>) -> Option<u64> {
        if self.tasks.len() + self.untold_tasks + self.noted_tasks >= self.limits.max_tasks {
            return None;
        }
        let id = self.next_task;
        self.next_task += 1;
        self.noted_tasks += 1;
        self.noted.push(Effect::StartTask(NewTask { id, owner, guest, arguments }));
        Some(id)
    }

    /// Notes that a task is cancelled; false when `owner` has none with that id.
    pub(super) fn note_cancelled_task(&mut self, owner: GuestId, id: u64) -> bool {
        let begun_here = |effect: &Effect| matches!(effect, Effect::StartTask(task) if task.id == id);
        if let Some(at) = self.noted.iter().position(begun_here) {
            self.noted.remove(at);
            self.noted_tasks -= 1;
            return true;
        }
        if self.tasks.get(&id) != Some(&owner) || self.noted.contains(&Effect::CancelTask(id)) {
            return false;
        }
        self.noted.push(Effect::CancelTask(id));
        true
    }

    /// Notes a packet. `Err` with the limit when the handler has sent too much.
    pub(super) fn note_packet(&mut self, to: Vec<u64>, packet: Arc<[u8]>) -> Result<(), u64> {
        let bytes = (packet.len() + PACKET_OVERHEAD_BYTES).saturating_mul(to.len());
        let sent = self.noted_sent_bytes.saturating_add(bytes);
        if sent > self.limits.max_sent_bytes {
            return Err(self.limits.max_sent_bytes as u64);
        }
        self.noted_sent_bytes = sent;
        self.noted.push(Effect::Send { to, packet });
        Ok(())
    }

    /// Notes a letter. A handler that has sent, or done, as much as one may has broken a limit.
    pub(super) fn note_letter(&mut self, from: GuestId, letter: Letter) -> wasmtime::Result<()> {
        self.count_sent(letter.bytes())?;
        self.noted.push(Effect::Letter { from, letter });
        Ok(())
    }

    /// Notes that a blob which was put together is published. Its bytes were counted as they came.
    pub(super) fn note_finished(&mut self, from: GuestId, name: String, blob: Arc<[u8]>) -> wasmtime::Result<()> {
        self.count_sent(0)?;
        self.noted.push(Effect::Letter { from, letter: Letter::PutShared { name, blob } });
        Ok(())
    }

    /// Counts bytes that are handed over to services.
    pub(super) fn count_sent(&mut self, bytes: usize) -> wasmtime::Result<()> {
        let sent = self.noted_sent_bytes.saturating_add(bytes + PACKET_OVERHEAD_BYTES);
        if sent > self.limits.max_sent_bytes {
            wasmtime::bail!("a handler may send at most {} bytes to services and clients", self.limits.max_sent_bytes);
        }
        if self.is_full() {
            wasmtime::bail!("a handler may ask at most {MAX_EFFECTS} things of services");
        }
        self.noted_sent_bytes = sent;
        Ok(())
    }

    /// Notes that a connection is to be closed; false when it is not open.
    pub(super) fn note_close(&mut self, connection: u64) -> bool {
        if !self.is_connected(connection) {
            return false;
        }
        self.noted.push(Effect::Close(connection));
        true
    }

    /// Whether a connection is open. A game may tell every client something, also one that is bound to a service.
    pub(super) fn is_connected(&self, connection: u64) -> bool {
        self.connections.contains(&connection) || self.letters.is_open(connection)
    }
}

#[cfg(test)]
#[path = "stage_durability_tests.rs"]
mod durability_tests;
#[cfg(test)]
#[path = "stage_tests.rs"]
mod tests;
