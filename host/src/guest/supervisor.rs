//! When to give a failing guest up: it may fail so many times within a window; then it is left alone.

use std::collections::VecDeque;
use std::time::Duration;

/// What to do after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Start a fresh instance.
    Replace,
    /// Start no more instances.
    Disable,
}

/// Remembers the failures of one guest.
#[derive(Debug)]
pub struct Supervisor {
    max_failures: usize,
    window: Duration,
    recent: VecDeque<Duration>,
}

impl Supervisor {
    /// Gives up after `max_failures` within `window`.
    pub fn new(max_failures: u32, window: Duration) -> Self {
        Self { max_failures: max_failures as usize, window, recent: VecDeque::new() }
    }

    /// Notes a failure at the time `now`.
    pub fn failed(&mut self, now: Duration) -> Verdict {
        self.recent.retain(|then| now.saturating_sub(*then) < self.window);
        self.recent.push_back(now);
        if self.recent.len() >= self.max_failures { Verdict::Disable } else { Verdict::Replace }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(60);

    #[test]
    fn the_tenth_failure_within_the_window_ends_it() {
        let mut supervisor = Supervisor::new(10, WINDOW);
        let verdicts: Vec<_> = (0..10).map(|second| supervisor.failed(Duration::from_secs(second))).collect();
        assert_eq!(verdicts[..9], [Verdict::Replace; 9]);
        assert_eq!(verdicts[9], Verdict::Disable);
    }

    #[test]
    fn failures_that_are_older_than_the_window_are_forgotten() {
        let mut supervisor = Supervisor::new(2, WINDOW);
        assert_eq!(supervisor.failed(Duration::from_secs(0)), Verdict::Replace);
        assert_eq!(supervisor.failed(Duration::from_secs(60)), Verdict::Replace);
        assert_eq!(supervisor.failed(Duration::from_secs(119)), Verdict::Disable);
    }
}
