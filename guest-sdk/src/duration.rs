//! Durations as the contract wants them: whole milliseconds.

use std::time::Duration;

/// Rounded up, so that nothing comes early and only zero is zero.
pub(crate) fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// As [`whole_ms`], for times of at most 49 days; longer ones are cut to that.
pub(crate) fn short_ms(duration: Duration) -> u32 {
    u32::try_from(whole_ms(duration)).unwrap_or(u32::MAX)
}

/// How long an answer is waited for; none for as long as the host does by itself.
pub(crate) fn limit_ms(limit: impl Into<Option<Duration>>) -> Option<u32> {
    limit.into().map(short_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_millisecond_counts_as_a_whole_one() {
        assert_eq!(whole_ms(Duration::ZERO), 0);
        assert_eq!(whole_ms(Duration::from_nanos(1)), 1);
        assert_eq!(whole_ms(Duration::from_millis(7)), 7);
        assert_eq!(whole_ms(Duration::MAX), u64::MAX);
        assert_eq!(short_ms(Duration::MAX), u32::MAX);
        assert_eq!(limit_ms(None), None);
        assert_eq!(limit_ms(Duration::from_micros(1)), Some(1));
    }
}
