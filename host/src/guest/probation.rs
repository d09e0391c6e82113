//! The time in which new code has to prove itself: whoever runs it keeps what was before, and goes back to it when the new
//! code fails too often.

use std::time::Duration;

use super::swap_options::SwapOptions;

/// What was before, kept for as long as new code is on probation.
#[derive(Debug)]
pub struct Probation<B> {
    until: Duration,
    failures_left: u32,
    before: B,
}

impl<B> Probation<B> {
    /// Whether it is under way at the time `now`.
    pub fn is_on(probation: Option<&Self>, now: Duration) -> bool {
        probation.is_some_and(|probation| now < probation.until)
    }

    /// New code begins at the time `now`, in place of what was `before`.
    pub fn new(options: &SwapOptions, now: Duration, before: B) -> Self {
        Self { until: now + options.probation(), failures_left: options.max_failures, before }
    }

    /// The code on probation has failed at the time `now`: answers what was before, where that was one failure too many, or
    /// `is_costly`, so that it must not happen again. A probation that is over is ended here.
    pub fn failed(probation: &mut Option<Self>, now: Duration, is_costly: bool) -> Option<B> {
        let kept = probation.as_mut()?;
        let is_over = now >= kept.until;
        if !is_over {
            kept.failures_left = kept.failures_left.saturating_sub(1);
            if kept.failures_left > 0 && !is_costly {
                return None;
            }
        }
        probation.take().filter(|_| !is_over).map(|ended| ended.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    #[test]
    fn the_last_failure_that_is_allowed_brings_back_what_was_before() {
        let options = SwapOptions { max_failures: 3, ..SwapOptions::default() };
        let mut probation = Some(Probation::new(&options, second(100), "old"));
        assert_eq!(Probation::failed(&mut probation, second(101), false), None);
        assert_eq!(Probation::failed(&mut probation, second(102), false), None);
        assert_eq!(Probation::failed(&mut probation, second(129), false), Some("old"));
        assert!(probation.is_none());
    }

    #[test]
    fn after_its_time_failures_bring_nothing_back_and_what_was_before_is_let_go() {
        let options = SwapOptions { max_failures: 1, ..SwapOptions::default() };
        let mut probation = Some(Probation::new(&options, second(100), "old"));
        assert_eq!(Probation::failed(&mut probation, second(130), true), None);
        assert!(probation.is_none());
    }

    #[test]
    fn one_costly_failure_is_enough() {
        let options = SwapOptions { max_failures: 3, ..SwapOptions::default() };
        let mut probation = Some(Probation::new(&options, second(100), "old"));
        assert_eq!(Probation::failed(&mut probation, second(101), true), Some("old"));
    }
}
