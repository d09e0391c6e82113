//! Durations as the contract wants them: whole milliseconds.

use std::time::Duration;

/// Rounded up, so that nothing comes early and only zero is zero.
pub(crate) fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
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
    }
}
