//! The number that names a service. Handed out once and never again: not after the service has ended, and not by a later
//! run of the host. Knows nothing of what it names.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bits below the number of the node.
const SERIAL_BITS: u32 = 48;

/// A service's handle. The upper 16 bits are the number of its node, 0 where there is only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u64);

impl Handle {
    /// The host itself, as the source of a message.
    pub const HOST: Handle = Handle(0);

    /// The number of the node that it lives on.
    pub fn node(self) -> u16 {
        (self.0 >> SERIAL_BITS) as u16
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// Hands out handles.
#[derive(Debug)]
pub struct Handles {
    next: AtomicU64,
}

impl Handles {
    /// Handles for a run of the host that begins at this wall-clock time: beyond every one that an earlier run can have
    /// given (it would have had to launch 128 services in every millisecond since), and within their bits until 2039.
    pub fn beginning_at(wall_ms: u64) -> Self {
        let serial = (wall_ms << 7) & ((1 << SERIAL_BITS) - 1);
        Self { next: AtomicU64::new(serial.max(1)) }
    }

    /// The next handle.
    pub fn next(&self) -> Handle {
        Handle(self.next.fetch_add(1, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_run_gives_other_handles_and_none_is_the_hosts() {
        let (earlier, later) = (Handles::beginning_at(1_000_000), Handles::beginning_at(1_000_001));
        let of_earlier: Vec<_> = (0..128).map(|_| earlier.next()).collect();
        assert!(of_earlier.iter().all(|handle| *handle < later.next()));
        assert_ne!(Handles::beginning_at(0).next(), Handle::HOST);
    }

    #[test]
    fn the_nodes_number_is_in_the_upper_bits_and_that_of_a_single_host_is_zero() {
        let new_year_2039_ms = 2_177_452_800_000;
        assert_eq!(Handles::beginning_at(new_year_2039_ms).next().node(), 0);
        assert_eq!(Handle(7 << 48 | 5).node(), 7);
    }
}
