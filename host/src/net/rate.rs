//! How often one client may send: a token bucket. The reading side of a connection asks it once per frame; it never
//! reads a clock itself.

use std::time::Duration;

use tokio::time::Instant;

/// Tokens that refill at a steady rate up to a burst; each frame takes one.
#[derive(Debug)]
pub(super) struct FrameAllowance {
    per_second: f64,
    burst: f64,
    tokens: f64,
    refilled_at: Instant,
}

impl FrameAllowance {
    /// A full bucket.
    pub fn new(per_second: u32, burst: u32, now: Instant) -> Self {
        let burst = f64::from(burst);
        Self { per_second: f64::from(per_second), burst, tokens: burst, refilled_at: now }
    }

    /// Takes one frame's token; false if there is none.
    pub fn take(&mut self, now: Instant) -> bool {
        if self.tokens < self.burst {
            let refill = now.saturating_duration_since(self.refilled_at).as_secs_f64() * self.per_second;
            self.tokens = (self.tokens + refill).min(self.burst);
        }
        self.refilled_at = now;
        if self.tokens < 1.0 {
            return false;
        }
        self.tokens -= 1.0;
        true
    }

    /// Credits the frames that may have piled up in the socket while the host itself did not read, beyond the burst
    /// too: a client that kept to the rate must not be cut off because the loop was busy.
    pub fn forgive(&mut self, unread_for: Duration, now: Instant) {
        self.tokens += unread_for.as_secs_f64() * self.per_second;
        self.refilled_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(allowance: &mut FrameAllowance, at: Instant) -> u32 {
        (0..).take_while(|_| allowance.take(at)).count() as u32
    }

    #[test]
    fn a_burst_passes_and_then_only_the_rate() {
        let start = Instant::now();
        let mut allowance = FrameAllowance::new(10, 5, start);
        assert_eq!(taken(&mut allowance, start), 5);
        assert_eq!(taken(&mut allowance, start + Duration::from_millis(99)), 0);
        assert_eq!(taken(&mut allowance, start + Duration::from_millis(201)), 2);
    }

    #[test]
    fn a_long_silence_refills_no_more_than_the_burst() {
        let start = Instant::now();
        let mut allowance = FrameAllowance::new(10, 5, start);
        assert_eq!(taken(&mut allowance, start), 5);
        assert_eq!(taken(&mut allowance, start + Duration::from_secs(3600)), 5);
    }

    #[test]
    fn exactly_the_rate_passes_for_ever() {
        let start = Instant::now();
        let mut allowance = FrameAllowance::new(100, 1, start);
        for frame in 0..10_000 {
            assert!(allowance.take(start + frame * Duration::from_micros(10_001)), "frame {frame}");
        }
    }

    #[test]
    fn time_in_which_the_host_did_not_read_is_not_held_against_the_client() {
        let start = Instant::now();
        let mut allowance = FrameAllowance::new(10, 5, start);
        let after = start + Duration::from_secs(60);
        allowance.forgive(Duration::from_secs(60), after);
        assert_eq!(taken(&mut allowance, after), 605);
        assert_eq!(taken(&mut allowance, after + Duration::from_secs(60)), 5);
    }
}
