//! Where the loop puts up its figures and others read them: the loop never waits for a reader.

use std::sync::{Arc, Mutex, TryLockError};
use std::time::Duration;

use serde::Serialize;

use super::simulation::{HostSimulation, Item};
use crate::clock::SharedClock;
use crate::guest::{GuestCounters, GuestSnapshot};
use crate::net::{Connections, ConnectionsSnapshot};
use crate::sim::{LoopHandle, metrics::SimSnapshot};
use crate::world::NpcCounts;

/// Figures that only the loop can count.
#[derive(Debug, Default)]
pub struct Board {
    npcs: Mutex<NpcCounts>,
}

impl HostSimulation {
    /// Puts up the figures of this turn. If somebody reads them just now, the next turn's will do.
    pub(super) fn publish(&mut self) {
        let Some(stage) = &self.stage else { return };
        match self.board.npcs.try_lock() {
            Ok(mut npcs) => *npcs = self.thinking.counts(&stage.world),
            Err(TryLockError::Poisoned(npcs)) => *npcs.into_inner() = self.thinking.counts(&stage.world),
            Err(TryLockError::WouldBlock) => {}
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
    pub connections: ConnectionsSnapshot,
    pub guests: Vec<GuestSnapshot>,
}

/// Reads the figures.
#[derive(Clone)]
pub struct StatusReader {
    pub(super) handle: LoopHandle<Item>,
    pub(super) board: Arc<Board>,
    pub(super) connections: Connections,
    pub(super) guests: Vec<Arc<GuestCounters>>,
    pub(super) clock: SharedClock,
    pub(super) started: Duration,
}

impl StatusReader {
    /// The figures now.
    pub fn read(&self) -> HostStatus {
        HostStatus {
            uptime_ms: (self.clock.now() - self.started).as_millis() as u64,
            sim: self.handle.metrics(),
            npcs: *self.board.npcs.lock().unwrap_or_else(std::sync::PoisonError::into_inner),
            connections: self.connections.snapshot(),
            guests: self.guests.iter().map(|guest| guest.snapshot()).collect(),
        }
    }
}
