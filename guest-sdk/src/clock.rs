//! The host's clocks. Every guest may read them.

use std::time::Duration;

/// Monotonic time since the host started. Never goes back.
pub fn now() -> Duration {
    Duration::from_nanos(crate::bindings::clock::now())
}

/// Wall-clock time since 1970-01-01 UTC, to the millisecond. May jump either way.
pub fn wall() -> Duration {
    Duration::from_millis(crate::bindings::clock::wall_ms())
}
