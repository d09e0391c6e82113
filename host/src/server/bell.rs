//! What wakes the loop when something has happened elsewhere that it waits for: a batch is on disk, a message has come.
//! Rung before the loop is there it does nothing: the first turn looks everywhere.

use std::sync::{Arc, OnceLock};
use std::task::Wake;

use super::simulation::Item;
use crate::sim::LoopHandle;

/// The bell. Clones ring the same loop.
#[derive(Clone, Default)]
pub struct Bell {
    handle: Arc<OnceLock<LoopHandle<Item>>>,
}

impl Bell {
    /// Hangs it up beside the loop. Once.
    pub fn hang(&self, handle: LoopHandle<Item>) {
        let _ = self.handle.set(handle);
    }

    /// Has the loop take a turn.
    pub fn ring(&self) {
        self.handle.get().into_iter().for_each(LoopHandle::nudge);
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}
