//! The undo log: what the open transaction has changed, with what was there before. The world writes it with every
//! change, reads it backwards to roll back and forwards to settle a commit. It never copies what it can move: an
//! overwritten value goes into the log as it is.

use super::entity::{ConnectionId, EntityData, Record, ThinkerId};
use super::position::Position;

/// How many entries the log keeps room for between transactions. A rare huge transaction gives its memory back.
const KEPT_ENTRIES: usize = 4096;

/// An entity that the transaction has despawned, whole.
#[derive(Debug)]
pub(super) struct Despawned {
    pub record: Record,
    pub data: EntityData,
}

/// One change, as what takes it back. Slots are those of the entity table.
#[derive(Debug)]
pub(super) enum Undo {
    Spawned { slot: u32 },
    Despawned(Box<Despawned>),
    Moved { slot: u32, from: Position },
    Connection { slot: u32, before: Option<ConnectionId> },
    Thinker { slot: u32, before: Option<ThinkerId> },
    Data { slot: u32, name: Box<str>, before: Option<Vec<u8>> },
    Kv { space: u32, key: Box<str>, before: Option<Vec<u8>> },
}

/// The log of one transaction after another.
#[derive(Debug, Default)]
pub(super) struct UndoLog {
    entries: Vec<Undo>,
    is_open: bool,
    /// Bytes of overwritten values in `entries`.
    overwritten_bytes: usize,
}

impl UndoLog {
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    pub fn open(&mut self) {
        self.is_open = true;
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// What the open transaction has changed so far, oldest first.
    pub fn entries(&self) -> &[Undo] {
        &self.entries
    }

    pub fn overwritten_bytes(&self) -> usize {
        self.overwritten_bytes
    }

    pub fn push(&mut self, undo: Undo) {
        self.entries.push(undo);
    }

    /// Like [`push`](Self::push), for a change that has overwritten `bytes` of data.
    pub fn push_overwriting(&mut self, undo: Undo, bytes: usize) {
        self.overwritten_bytes += bytes;
        self.entries.push(undo);
    }

    /// Closes the transaction and hands out its entries, oldest first. Give the vector back with
    /// [`recycle`](Self::recycle).
    pub fn close(&mut self) -> Vec<Undo> {
        self.is_open = false;
        self.overwritten_bytes = 0;
        std::mem::take(&mut self.entries)
    }

    pub fn recycle(&mut self, mut entries: Vec<Undo>) {
        entries.clear();
        if entries.capacity() > KEPT_ENTRIES {
            entries.shrink_to(KEPT_ENTRIES);
        }
        self.entries = entries;
    }
}
