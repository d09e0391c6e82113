//! Frames: the stretches of time whose leftover tasks share. The loop asks at each turn what is left; there is no tick
//! behind it, so a frame begins with the first turn after the last one ended.

use std::time::Duration;

/// The frame the loop is in.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    length: Duration,
    started: Duration,
    previous_length: Duration,
}

impl Frame {
    /// Frames of `length`, the first of which begins at `now`.
    pub fn new(length: Duration, now: Duration) -> Self {
        Self { length, started: now, previous_length: length }
    }

    /// When it ends.
    pub fn end(&self) -> Duration {
        self.started + self.length
    }

    /// How long the frame before it was.
    pub fn previous_length(&self) -> Duration {
        self.previous_length
    }

    /// What the loop has not yet spent of it. Time slept counts as spent: it was offered, and there was no task.
    pub fn left(&self, now: Duration) -> Duration {
        self.end().saturating_sub(now)
    }

    /// Begins a new frame if this one is over. A frame that nobody used, because there were no tasks, was as long as
    /// planned, however long the loop slept.
    pub fn advance(&mut self, now: Duration, used: bool) -> bool {
        if now < self.end() {
            return false;
        }
        self.previous_length = if used { now - self.started } else { self.length };
        self.started = now;
        true
    }
}
