//! Batches on their way to the store. At the end of a turn what has been changed is handed to the writer, unless the
//! writer is busy and the batch still small: then it grows with the next turn's. When a batch is on disk, the packets
//! and letters that waited for it leave. What the loop may do depends on the [`Disk`]; the loop itself never waits for it.

use std::collections::VecDeque;

use super::simulation::{Cx, HostSimulation};
use crate::store::Writer;

/// The size at which a batch is handed over though the writer is busy; larger ones count as several.
const BATCH_ROWS: usize = 4096;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// Packets and letters that wait for the disk, at which nothing more is taken on.
const MAX_WAITING_BYTES: usize = 64 * 1024 * 1024;

/// What the disk lets the loop do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// Everything.
    Ready,
    /// Everything but to change what is durable: the writer cannot write. Handlers run, and those that do are taken back;
    /// what comes again by itself (events, acts, ended tasks, checkpoints) waits.
    TakesNothing,
    /// No more of what could change something durable, or would have to wait for it: the writer is too far behind, or
    /// too much waits. Items stay in the queue, and so do those who post them; guests' timers wait.
    Behind,
}

/// The loop's side of the writer.
pub struct Committing {
    writer: Writer,
    max_pending_batches: usize,
    /// The batches that were handed over and are not known to be on disk, each with what it counts as.
    pending: VecDeque<(u64, usize)>,
    pending_batches: usize,
    /// What is to be done once a batch is on disk.
    waiting: Vec<(u64, Box<dyn FnOnce() + Send>)>,
    disk: Disk,
    /// Whether no further turn will hand anything over.
    is_last: bool,
}

impl Committing {
    pub fn new(writer: Writer, max_pending_batches: usize) -> Self {
        Self {
            writer,
            max_pending_batches,
            pending: VecDeque::new(),
            pending_batches: 0,
            waiting: Vec::new(),
            disk: Disk::Ready,
            is_last: false,
        }
    }

    /// What the disk lets the loop do now.
    pub fn disk(&self) -> Disk {
        self.disk
    }

    /// Whether this batch is the last, which no other turn will follow.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// The newest batch on disk.
    pub fn committed(&self) -> u64 {
        self.writer.committed()
    }

    /// Does something, like answering somebody, when the batch `number` is on disk.
    pub fn when_on_disk(&mut self, number: u64, then: impl FnOnce() + Send + 'static) {
        if number <= self.committed() {
            then();
        } else {
            self.waiting.push((number, Box::new(then)));
        }
    }

    /// The next batch is the last: it is handed over whatever its size.
    pub fn finish(&mut self) {
        self.is_last = true;
    }
}

impl HostSimulation {
    /// Looks what has come to be on disk.
    pub(super) fn follow_writer(&mut self, cx: &mut Cx<'_>) -> anyhow::Result<()> {
        let committed = self.committing.committed();
        let trouble = self.committing.writer.trouble();
        if let Some(trouble) = trouble.as_ref().filter(|trouble| trouble.is_fatal) {
            anyhow::bail!("{}", trouble.text);
        }
        self.outbox.release(committed);
        self.release_letters(committed);
        let committing = &mut self.committing;
        while let Some((_, counts_as)) = committing.pending.pop_front_if(|(number, _)| *number <= committed) {
            committing.pending_batches -= counts_as;
        }
        for (_, then) in committing.waiting.extract_if(.., |(number, _)| *number <= committed) {
            then();
        }
        let is_behind = committing.pending_batches > committing.max_pending_batches;
        let waiting_bytes = self.outbox.waiting_bytes() + self.letters.waiting_bytes();
        let too_much_waits = waiting_bytes > MAX_WAITING_BYTES;
        // What was accepted before a stop is finished though the disk is full: it was not acknowledged, and is lost only if
        // there is no room until the end.
        let takes_nothing = trouble.is_some() && cx.handle.is_running();
        committing.disk = if takes_nothing {
            if too_much_waits || self.set_aside.overflows() { Disk::Behind } else { Disk::TakesNothing }
        } else if trouble.is_none() && (is_behind || too_much_waits) {
            Disk::Behind
        } else {
            Disk::Ready
        };
        self.stage().takes_changes = !takes_nothing;
        Ok(())
    }

    /// Hands over what has been changed.
    pub(super) fn hand_over(&mut self) {
        let stage = self.stage.as_deref_mut().expect("no call has the stage at the end of a turn");
        let (rows, bytes) = (stage.batch.rows(), stage.batch.bytes);
        let is_large = rows >= BATCH_ROWS || bytes >= BATCH_BYTES;
        let writer_has_next = self.committing.pending.len() > 1;
        if stage.batch.is_empty() || (writer_has_next && !is_large && !self.committing.is_last) {
            return;
        }
        let batch = stage.seal_batch();
        let counts_as = (rows / BATCH_ROWS).max(bytes / BATCH_BYTES).max(1);
        self.committing.pending.push_back((batch.number, counts_as));
        self.committing.pending_batches += counts_as;
        self.committing.writer.submit(batch);
    }
}
