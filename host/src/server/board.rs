//! Where the loop puts up its figures and others read them: the loop never waits for a reader.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use serde::Serialize;

use super::events::EventCounts;
use super::simulation::{HostSimulation, Item};
use super::swapper::{Swapper, SwapsSnapshot};
use crate::clock::SharedClock;
use crate::guest::{GuestCounters, GuestSnapshot};
use crate::net::{Connections, ConnectionsSnapshot};
use crate::service::{Services, ServicesSnapshot};
use crate::sim::LoopHandle;
use crate::sim::metrics::{Durations, Micros, SimSnapshot};
use crate::store::{StoreSnapshot, Writer};
use crate::world::NpcCounts;

/// What only the loop knows.
#[derive(Clone, Debug, Default)]
struct Posted {
    npcs: NpcCounts,
    tasks: Vec<TaskSnapshot>,
    events: EventCounts,
}

/// A step task or job that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskSnapshot {
    /// What `wheelhouse cancel` takes.
    pub id: u64,
    pub guest: String,
}

/// The loop's place to put it up.
#[derive(Debug, Default)]
pub struct Board {
    posted: Mutex<Posted>,
}

impl Board {
    fn read(&self) -> Posted {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl HostSimulation {
    /// Puts up the figures of this turn. If somebody reads them just now, the next turn's will do.
    pub(super) fn publish(&mut self) {
        let Some(stage) = &self.stage else { return };
        let mut posted = match self.board.posted.try_lock() {
            Ok(posted) => posted,
            Err(TryLockError::Poisoned(posted)) => posted.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        posted.npcs = self.thinking.counts(&stage.world);
        posted.events = self.event_counts();
        if self.tasks_changed {
            let running = self.running_tasks.iter();
            posted.tasks = running.map(|(id, task)| TaskSnapshot { id: *id, guest: task.guest.to_string() }).collect();
            posted.tasks.sort_unstable_by_key(|task| task.id);
            self.tasks_changed = false;
        }
    }
}

/// The figures of a running host: what `wheelhouse status --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct HostStatus {
    pub uptime_ms: u64,
    #[serde(flatten)]
    pub sim: SimSnapshot,
    pub npcs: NpcCounts,
    pub services: ServicesSnapshot,
    pub connections: ConnectionsSnapshot,
    pub events: EventsStatus,
    pub store: StoreSnapshot,
    pub guests: Vec<GuestSnapshot>,
    pub swaps: SwapsSnapshot,
    /// The step tasks and jobs that run.
    pub running_tasks: Vec<TaskSnapshot>,
}

/// The part about events.
#[derive(Clone, Debug, Serialize)]
pub struct EventsStatus {
    #[serde(flatten)]
    pub counts: EventCounts,
    /// How much later than it was to be run an event was run.
    pub lateness_us: Micros,
}

/// Reads the figures.
#[derive(Clone)]
pub struct StatusReader {
    pub(super) handle: LoopHandle<Item>,
    pub(super) board: Arc<Board>,
    pub(super) connections: Connections,
    pub(super) services: Services,
    pub(super) lateness: Arc<Durations>,
    pub(super) writer: Writer,
    pub(super) swapper: Swapper,
    pub(super) guests: Vec<Arc<GuestCounters>>,
    pub(super) clock: SharedClock,
    pub(super) started: Duration,
}

impl StatusReader {
    /// The figures now.
    pub fn read(&self) -> HostStatus {
        let Posted { npcs, tasks, events } = self.board.read();
        HostStatus {
            uptime_ms: (self.clock.now() - self.started).as_millis() as u64,
            sim: self.handle.metrics(),
            npcs,
            services: self.services.snapshot(),
            connections: self.connections.snapshot(),
            events: EventsStatus { counts: events, lateness_us: self.lateness.micros().into() },
            store: self.writer.snapshot(),
            guests: self.guests.iter().map(|guest| guest.snapshot()).collect(),
            swaps: self.swapper.snapshot(),
            running_tasks: tasks,
        }
    }
}
