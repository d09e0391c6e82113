//! What the loop runs: the stage, the guests that live on it, and what items and timers mean here. Every call of a guest
//! starts in this file; the work is in its neighbours.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::sync::OwnedSemaphorePermit;

use super::board::Board;
use super::checkpoints::Checkpoints;
use super::committing::{Committing, Disk};
use super::event_orders::EventOrder;
use super::event_pages::EventPages;
use super::events::EventRuns;
use super::guests::Guests;
use super::held_timers::HeldTimers;
use super::inboxes::Inboxes;
use super::letters::Letters;
use super::outbox::Outbox;
use super::set_aside::SetAside;
use super::swaps::{SwapOrder, Swaps};
use super::tasks::{Ended, RunningTask};
use super::thinking::Thinking;
use crate::guest::{Committed, GuestId, LoopEngine, Stage, StageSlot};
use crate::sim::{Firing, LoopContext, NameId, Reply};
use crate::world::EntityId;

/// Work for the loop.
pub enum Item {
    /// Start the guests. The first item there is.
    Start,
    /// A client's connection is this game's from here on.
    Connected { game: GuestId, connection: u64, address: String },
    /// A client has sent a packet, which has its place in the queue until it has run.
    Packet { game: GuestId, connection: u64, packet: bytes::Bytes, _place: OwnedSemaphorePermit },
    /// A client's connection is this game's no more: it is bound elsewhere, or the client is gone.
    Disconnected { game: GuestId, connection: u64, is_gone: bool },
    /// An operator cancels a task. The answer is whether it ran.
    CancelTask { task: u64, reply: Reply<bool> },
    /// An operator decides about an event.
    Event(EventOrder),
    /// New code for a guest.
    Swap(SwapOrder),
    /// An operator wants everything saved. The answer comes when it is on disk.
    Checkpoint { reply: Reply<()> },
    /// Save everything: the last item there is.
    Finish,
    /// There is more to do than one turn should take; take another.
    GoOn,
}

/// What a timer on the wheel is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// An NPC is to think.
    Think(EntityId),
    /// A guest's own timer, by the id in the timer book.
    Guest(u64),
    /// A guest without an instance is to get one.
    Restart(GuestId),
    /// What is not kept with every handler is to be saved.
    Checkpoint,
    /// There is something to do about events.
    Events,
    /// A page of events that could not be read is to be tried again.
    PageFailed(u64),
}

/// The names of the host's timers on the wheel. A guest's own names stay in the timer book.
#[derive(Clone, Copy, Debug)]
pub struct TimerNames {
    pub npc_think: NameId,
    pub guest: NameId,
    pub restart: NameId,
    pub checkpoint: NameId,
    pub events: NameId,
}

/// The simulation of a host.
pub struct HostSimulation {
    /// Empty only while a guest's call has the stage.
    pub(super) stage: StageSlot,
    pub(super) engine: LoopEngine,
    pub(super) guests: Guests,
    pub(super) thinking: Thinking,
    /// The tasks that run, by the ids that guests know.
    pub(super) running_tasks: FxHashMap<u64, RunningTask>,
    /// Whether that list differs from the one on the board.
    pub(super) tasks_changed: bool,
    /// Tasks that have ended and whose owners have yet to hear of it.
    pub(super) ended_tasks: Vec<Ended>,
    /// What is on its way to the disk.
    pub(super) committing: Committing,
    /// The packets that wait for it.
    pub(super) outbox: Outbox,
    /// What games tell services, and waits for it too.
    pub(super) letters: Letters,
    /// What services tell games.
    pub(super) inboxes: Inboxes,
    pub(super) event_runs: EventRuns,
    pub(super) event_pages: EventPages,
    pub(super) checkpoints: Checkpoints,
    /// What clients did while the disk took nothing.
    pub(super) set_aside: SetAside,
    /// Guests' timers that fired while nothing could be run.
    pub(super) held_timers: HeldTimers,
    pub(super) swaps: Swaps,
    /// Given before the loop starts.
    pub(super) names: Option<TimerNames>,
    pub(super) checkpoint_interval: Duration,
    /// Packets that came while the game had no instance.
    pub(super) packets_lost: u64,
    pub(super) board: Arc<Board>,
    /// Empty between handlers; kept for its allocation.
    pub(super) effects: Vec<Committed>,
    /// Whether an [`Item::GoOn`] is on its way.
    pub(super) goes_on: bool,
    /// Whether a call has failed in this turn and may have cost a whole deadline: what can wait then waits for the
    /// next turn, so that a guest which fails often in a row holds nobody up for more than one deadline.
    pub(super) spent: bool,
}

pub(super) type Cx<'a> = LoopContext<'a, HostSimulation>;

impl HostSimulation {
    /// The stage, which no call has between two items.
    pub(super) fn stage(&mut self) -> &mut Stage {
        self.stage.as_deref_mut().expect("a call that was lent the stage gives it back before it returns")
    }

    /// The names of the host's timers.
    pub(super) fn names(&self) -> TimerNames {
        self.names.expect("the names are given before the loop starts")
    }

    /// Sees to it that there is another turn soon.
    pub(super) fn go_on(&mut self, cx: &mut Cx<'_>) {
        // Where the queue is full there is another turn anyway.
        self.goes_on = self.goes_on || cx.handle.try_post(Item::GoOn).is_ok();
    }
}

impl crate::sim::Simulation for HostSimulation {
    type Item = Item;
    type Timer = Timer;

    fn begin_turn(&mut self, cx: &mut Cx<'_>) -> anyhow::Result<()> {
        self.follow_writer(cx)?;
        self.follow_reader(cx)
    }

    /// While the disk is too far behind, items wait, and so do those who post them.
    fn takes_items(&self) -> bool {
        self.committing.disk() != Disk::Behind
    }

    fn run_item(&mut self, item: Item, cx: &mut Cx<'_>) -> anyhow::Result<()> {
        match item {
            Item::Start => self.start_guests(cx),
            Item::Connected { .. } | Item::Packet { .. } | Item::Disconnected { .. } => self.run_or_set_aside(item, cx),
            Item::CancelTask { task, reply } => reply.send(self.cancel_task(task, cx)),
            Item::Event(order) => self.event_order(order, cx),
            Item::Swap(order) => self.swap_order(order, cx),
            Item::Checkpoint { reply } => self.begin_checkpoint(Some(reply), cx),
            Item::Finish => {
                self.finish_set_aside(cx);
                self.save_all(cx);
            }
            Item::GoOn => self.goes_on = false,
        }
        Ok(())
    }

    fn fire_timer(&mut self, firing: Firing, timer: &mut Timer, cx: &mut Cx<'_>) -> anyhow::Result<()> {
        match *timer {
            Timer::Think(npc) => {
                let stage = self.stage.as_deref().expect("no call has the stage while a timer fires");
                self.thinking.due(&stage.world, npc);
            }
            Timer::Guest(id) if self.committing.disk() == Disk::Behind => self.held_timers.push(id, firing.missed),
            Timer::Guest(id) => self.guest_timer(id, firing.missed, cx),
            Timer::Restart(guest) => self.restart(guest, cx),
            Timer::Checkpoint => self.begin_checkpoint(None, cx),
            Timer::Events => self.event_timer_fired(),
            Timer::PageFailed(number) => self.stage().events.agenda.page_failed(number),
        }
        Ok(())
    }

    fn end_timer_pass(&mut self, cx: &mut Cx<'_>) {
        self.think(cx);
    }

    fn end_turn(&mut self, cx: &mut Cx<'_>) {
        if self.committing.is_last() {
            // Guests have saved their states: nothing may run any more that they would have to remember.
            self.hand_over();
            self.publish();
            return;
        }
        self.run_set_aside(cx);
        self.run_due_events(cx);
        self.run_held_timers(cx);
        self.decide_acts(cx);
        self.think_alone(cx);
        self.tell_of_ended_tasks(cx);
        self.run_messages(cx);
        self.advance_checkpoint(cx);
        self.spent = false;
        self.hand_over();
        self.set_event_timer(cx);
        self.publish();
    }
}
