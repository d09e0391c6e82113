//! Checkpoints: what is not kept with every handler is handed to the store from time to time. Guests save their own state
//! one a turn, then the positions that NPCs have reached by themselves go in slices that keep the loop's budget. At the
//! stop everything goes at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::committing::Disk;
use super::simulation::{Cx, HostSimulation};
use crate::guest::GuestId;
use crate::sim::Reply;
use crate::store::GuestChange;
use crate::world::EntityId;

/// Time of one turn for positions, looked at between two portions.
const SLICE_BUDGET: Duration = Duration::from_millis(2);

/// Positions between two looks at the clock.
const PORTION: usize = 256;

/// The checkpoint that is under way, and the one that is to follow.
#[derive(Default)]
pub struct Checkpoints {
    current: Option<Checkpoint>,
    /// Whether there is another to follow, and who asked for it.
    wanted: Option<Vec<Reply<()>>>,
}

/// A checkpoint.
struct Checkpoint {
    guests: VecDeque<GuestId>,
    /// Entities that have moved, the next one last.
    moved: Vec<EntityId>,
    /// Who asked for it.
    replies: Vec<Reply<()>>,
}

impl Checkpoints {
    fn is_to_go_on(&self) -> bool {
        self.current.is_some() || self.wanted.is_some()
    }
}

impl HostSimulation {
    /// Begins a checkpoint. One that is under way is done first; whoever asks meanwhile gets one of their own.
    pub(super) fn begin_checkpoint(&mut self, reply: Option<Reply<()>>, cx: &mut Cx<'_>) {
        self.checkpoints.wanted.get_or_insert_default().extend(reply);
        self.go_on(cx);
    }

    /// Does a turn's part of the checkpoint.
    pub(super) fn advance_checkpoint(&mut self, cx: &mut Cx<'_>) {
        if self.committing.disk() == Disk::Ready && !self.spent {
            self.do_part_of_checkpoint(cx);
        }
        if self.committing.disk() == Disk::Ready && self.checkpoints.is_to_go_on() {
            self.go_on(cx);
        }
    }

    fn do_part_of_checkpoint(&mut self, cx: &mut Cx<'_>) {
        if self.checkpoints.current.is_none()
            && let Some(replies) = self.checkpoints.wanted.take()
        {
            let guests = self.guests.residents().into();
            let moved = self.stage().world.take_unsaved();
            self.checkpoints.current = Some(Checkpoint { guests, moved, replies });
        }
        let Some(checkpoint) = &mut self.checkpoints.current else { return };
        if let Some(guest) = checkpoint.guests.pop_front() {
            self.save_guest(guest, cx);
        } else if !checkpoint.moved.is_empty() {
            self.save_positions(cx);
        } else {
            self.end_checkpoint();
        }
    }

    /// Has a game or a thinker save its state.
    fn save_guest(&mut self, id: GuestId, cx: &mut Cx<'_>) {
        self.prepare_handler(cx);
        let Some(saved) = self.guests.save(id, &mut self.stage) else { return };
        self.after_handler(cx);
        // One that did not run before has a timer for its next instance already.
        if saved.was_running {
            self.look_after(id, cx);
        }
        let batch = &mut self.stage().batch;
        batch.bytes += saved.state.as_ref().map_or(0, Vec::len);
        batch.guests.push(GuestChange::Saved { guest: saved.name, state: saved.state });
    }

    /// Hands positions over until the time is up.
    fn save_positions(&mut self, cx: &Cx<'_>) {
        let Some(checkpoint) = &mut self.checkpoints.current else { return };
        let stage = self.stage.as_deref_mut().expect("no call has the stage at the end of a turn");
        let until = cx.clock.now() + SLICE_BUDGET;
        while !checkpoint.moved.is_empty() {
            for entity in checkpoint.moved.drain(checkpoint.moved.len().saturating_sub(PORTION)..) {
                stage.world.tell_entity(entity, &mut stage.batch.world);
            }
            if cx.clock.now() >= until {
                break;
            }
        }
    }

    /// Everything has been handed over; whoever asked is told when it is on disk.
    fn end_checkpoint(&mut self) {
        let Some(checkpoint) = self.checkpoints.current.take() else { return };
        let number = self.newest_batch();
        for reply in checkpoint.replies {
            self.committing.when_on_disk(number, move || reply.send(()));
        }
    }

    /// The newest batch with anything in it.
    fn newest_batch(&mut self) -> u64 {
        let batch = &self.stage().batch;
        if batch.is_empty() { batch.number - 1 } else { batch.number }
    }

    /// Everything at once, for the stop.
    pub(super) fn save_all(&mut self, cx: &mut Cx<'_>) {
        for guest in self.guests.residents() {
            self.save_guest(guest, cx);
        }
        let moved_before = self.checkpoints.current.take().map(|checkpoint| checkpoint.moved).unwrap_or_default();
        let stage = self.stage();
        for entity in moved_before.into_iter().chain(stage.world.take_unsaved()) {
            stage.world.tell_entity(entity, &mut stage.batch.world);
        }
        self.committing.finish();
    }
}

/// What a guest has saved.
pub struct SavedGuest {
    pub name: Arc<str>,
    pub was_running: bool,
    pub state: Option<Vec<u8>>,
}
