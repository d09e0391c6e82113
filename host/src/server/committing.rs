//! Batches on their way to the store. At the end of a turn what has been changed is handed to the writer, unless the
//! writer is busy and the batch still small: then it grows with the next turn's. When a batch is on disk, the packets
//! that waited for it leave. A writer that falls behind holds the loop's admission up; nothing else here ever waits.

use std::collections::VecDeque;
use std::sync::Arc;

use super::outbox::Outbox;
use super::simulation::{Cx, HostSimulation};
use crate::sim::Reply;
use crate::store::Writer;

/// Rows at which a batch is handed over though the writer is busy, and by which larger ones count as several.
const BATCH_ROWS: usize = 4096;

/// Packets that wait for the disk, at which nothing more is taken on.
const MAX_WAITING_BYTES: usize = 64 * 1024 * 1024;

/// The loop's side of the writer.
pub struct Committing {
    writer: Arc<Writer>,
    pub outbox: Outbox,
    max_pending_batches: usize,
    /// The batches that were handed over and are not known to be on disk, each with what it counts as.
    pending: VecDeque<(u64, usize)>,
    pending_batches: usize,
    /// Who waits for a batch to be on disk.
    waiting: Vec<(u64, Reply<()>)>,
    /// Whether nothing durable is taken on: the writer is too far behind.
    holds: bool,
}

impl Committing {
    pub fn new(writer: Arc<Writer>, outbox: Outbox, max_pending_batches: usize) -> Self {
        Self {
            writer,
            outbox,
            max_pending_batches,
            pending: VecDeque::new(),
            pending_batches: 0,
            waiting: Vec::new(),
            holds: false,
        }
    }

    /// Whether the writer is so far behind that nothing which could change something durable is to be run.
    pub fn holds(&self) -> bool {
        self.holds
    }

    /// The newest batch on disk.
    pub fn committed(&self) -> u64 {
        self.writer.committed()
    }

    /// Answers when the batch `number` is on disk.
    pub fn answer_after(&mut self, number: u64, reply: Reply<()>) {
        self.waiting.push((number, reply));
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
        self.stage().events.agenda.settle(committed);
        let committing = &mut self.committing;
        while let Some((_, counts_as)) = committing.pending.pop_front_if(|(number, _)| *number <= committed) {
            committing.pending_batches -= counts_as;
        }
        committing.outbox.release(committed);
        for (_, reply) in committing.waiting.extract_if(.., |(number, _)| *number <= committed) {
            reply.send(());
        }
        let is_behind = committing.pending_batches > committing.max_pending_batches
            || committing.outbox.waiting_bytes() > MAX_WAITING_BYTES;
        // What was accepted before a stop is finished though the disk is full: it was not acknowledged, and is lost only
        // if there is no room until the end.
        let must_finish = trouble.is_some() && !cx.handle.is_running();
        committing.holds = is_behind && !must_finish;
        Ok(())
    }

    /// Hands over what has been changed.
    pub(super) fn hand_over(&mut self) {
        let stage = self.stage.as_deref_mut().expect("no call has the stage at the end of a turn");
        let rows = stage.batch.rows();
        let writer_has_next = self.committing.pending.len() > 1;
        if stage.batch.is_empty() || (writer_has_next && rows < BATCH_ROWS) {
            return;
        }
        let batch = stage.seal_batch();
        let counts_as = rows.div_ceil(BATCH_ROWS).max(1);
        self.committing.pending.push_back((batch.number, counts_as));
        self.committing.pending_batches += counts_as;
        self.committing.writer.submit(batch);
    }
}
