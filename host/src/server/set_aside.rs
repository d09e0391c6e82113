//! What clients did while the disk takes nothing. A handler that turns out to change something durable is taken back and
//! its item set aside, and with it whatever its client does after; everybody whose handlers change nothing is served as
//! ever. Once the disk takes changes again, all that was set aside is run in order. Each client has only a few packets
//! in here, since the gate reads no more from it, and all together only so many: then who wants more is turned away.

use std::collections::VecDeque;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::committing::Disk;
use super::simulation::{Cx, HostSimulation, Item};
use crate::guest::CallError;

/// Time of one turn for items that were set aside, looked at between two of them.
const BUDGET: Duration = Duration::from_millis(5);

/// Items, and bytes of packets, at which clients are turned away that want something changed.
const MAX_ITEMS: usize = 16_384;
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Items at which no more are taken from the queue.
const MOST_ITEMS: usize = 8 * MAX_ITEMS;

/// Items that wait for the disk, oldest first.
#[derive(Default)]
pub struct SetAside {
    items: VecDeque<Item>,
    bytes: usize,
    /// How many of them each client has.
    of_client: FxHashMap<u64, usize>,
}

impl SetAside {
    /// Whether there is so much of it that nothing more is set aside but that somebody has left.
    fn is_full(&self) -> bool {
        self.items.len() >= MAX_ITEMS || self.bytes >= MAX_BYTES
    }

    /// Whether even those who have left are too many.
    pub fn overflows(&self) -> bool {
        self.items.len() >= MOST_ITEMS
    }

    fn push(&mut self, client: u64, item: Item) {
        self.bytes += item.bytes();
        *self.of_client.entry(client).or_default() += 1;
        self.items.push_back(item);
    }

    /// The oldest item, which is no longer counted.
    fn pop(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
        self.bytes -= item.bytes();
        if let Some(client) = item.client()
            && let Some(count) = self.of_client.get_mut(&client)
        {
            *count -= 1;
            if *count == 0 {
                self.of_client.remove(&client);
            }
        }
        Some(item)
    }
}

impl Item {
    fn bytes(&self) -> usize {
        match self {
            Item::Packet { packet, .. } => packet.len(),
            _ => 0,
        }
    }

    /// The client whose doing it is.
    fn client(&self) -> Option<u64> {
        match self {
            Item::Connected { connection, .. }
            | Item::Packet { connection, .. }
            | Item::Disconnected { connection, .. } => Some(*connection),
            _ => None,
        }
    }
}

impl HostSimulation {
    /// Runs what a client did, or sets it aside.
    pub(super) fn run_or_set_aside(&mut self, item: Item, cx: &mut Cx<'_>) {
        let Some(client) = item.client() else { return };
        let is_unheard_of =
            !self.stage().connections.contains(&client) && !self.set_aside.of_client.contains_key(&client);
        if is_unheard_of && matches!(item, Item::Disconnected { .. }) {
            // It was turned away before the game heard of it.
            return;
        }
        let is_to_wait = self.set_aside.of_client.contains_key(&client)
            || matches!(self.run_for_client(&item, cx), Err(CallError::Unkept));
        if !is_to_wait {
            return;
        }
        // Nobody is served worse for those who come: they are turned away.
        if self.set_aside.is_full() && !matches!(item, Item::Disconnected { .. }) {
            self.outbox.close(client, 0);
            return;
        }
        self.set_aside.push(client, item);
    }

    fn run_for_client(&mut self, item: &Item, cx: &mut Cx<'_>) -> Result<(), CallError> {
        match item {
            Item::Connected { game, connection, address } => self.connected(*game, *connection, address, cx),
            Item::Packet { game, connection, packet, .. } => {
                if self.letters.give_back(*game, *connection, packet) {
                    // It was bound elsewhere while this waited, and the packet goes there.
                    return Ok(());
                }
                self.packet(*game, *connection, packet, cx)
            }
            Item::Disconnected { game, connection, is_gone } => self.disconnected(*game, *connection, *is_gone, cx),
            _ => Ok(()),
        }
    }

    /// Runs what was set aside until the time is up, once the disk takes changes again.
    pub(super) fn run_set_aside(&mut self, cx: &mut Cx<'_>) {
        if self.set_aside.items.is_empty() || self.committing.disk() != Disk::Ready {
            return;
        }
        let until = cx.clock.now() + BUDGET;
        while !self.spent
            && let Some(item) = self.set_aside.pop()
        {
            let _ = self.run_for_client(&item, cx);
            if cx.clock.now() >= until {
                break;
            }
        }
        if !self.set_aside.items.is_empty() {
            self.go_on(cx);
        }
    }

    /// Runs all of it, for the stop.
    pub(super) fn finish_set_aside(&mut self, cx: &mut Cx<'_>) {
        while let Some(item) = self.set_aside.pop() {
            let _ = self.run_for_client(&item, cx);
        }
    }
}
