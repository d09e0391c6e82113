//! The log lines of one guest: each with the guest's name in front, cut to a length, and only so many a second. Used by
//! the `log` import and by what a guest writes to standard output.

use std::sync::Mutex;

use tracing::Level;

use crate::clock::SharedClock;

/// A longer message is cut.
pub const MAX_LINE_BYTES: usize = 4096;

/// Writes a guest's lines.
pub struct LogLines {
    guest: String,
    clock: SharedClock,
    max_per_second: u32,
    window: Mutex<Window>,
}

#[derive(Debug, Default)]
struct Window {
    second: u64,
    written: u32,
    dropped: u64,
}

impl LogLines {
    /// For the guest with that name.
    pub fn new(guest: &str, max_per_second: u32, clock: SharedClock) -> Self {
        Self { guest: guest.into(), clock, max_per_second, window: Mutex::default() }
    }

    /// Writes a line, unless there were too many in this second.
    pub fn write(&self, level: Level, message: &str) {
        let dropped_before = match self.admit() {
            Admitted::No => return,
            Admitted::Yes { dropped_before } => dropped_before,
        };
        if dropped_before > 0 {
            tracing::warn!(
                guest = self.guest,
                "{dropped_before} log lines were dropped; guest.max_log_lines_per_s is {}",
                self.max_per_second
            );
        }
        let message = cut(message);
        let guest = &self.guest;
        match level {
            Level::ERROR => tracing::error!(target: "guest", guest, "{message}"),
            Level::WARN => tracing::warn!(target: "guest", guest, "{message}"),
            Level::INFO => tracing::info!(target: "guest", guest, "{message}"),
            Level::DEBUG => tracing::debug!(target: "guest", guest, "{message}"),
            Level::TRACE => tracing::trace!(target: "guest", guest, "{message}"),
        }
    }

    /// Whether the host may write a line about the guest: a guest that fails without end must not fill a disk either.
    pub(crate) fn has_room(&self) -> bool {
        matches!(self.admit(), Admitted::Yes { .. })
    }

    fn admit(&self) -> Admitted {
        let second = self.clock.now().as_secs();
        let mut window = self.window.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut dropped_before = 0;
        if window.second != second {
            dropped_before = window.dropped;
            *window = Window { second, ..Window::default() };
        }
        if window.written >= self.max_per_second {
            window.dropped += 1;
            if window.dropped == 1 {
                tracing::warn!(
                    guest = self.guest,
                    "more log lines than guest.max_log_lines_per_s; the rest of this second's are dropped"
                );
            }
            return Admitted::No;
        }
        window.written += 1;
        Admitted::Yes { dropped_before }
    }
}

enum Admitted {
    No,
    Yes { dropped_before: u64 },
}

/// The message up to the limit, whole characters. Its own line breaks are indented and other characters that move a
/// terminal's cursor are replaced, so that nothing in it can pass for a line of the host's own.
fn cut(message: &str) -> String {
    let mut end = message.len().min(MAX_LINE_BYTES);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    let mut shown = String::with_capacity(end);
    for character in message[..end].trim_end().chars() {
        match character {
            '\n' => shown.push_str("\n  "),
            '\t' => shown.push('\t'),
            '\u{2028}' | '\u{2029}' => shown.push(char::REPLACEMENT_CHARACTER),
            other if other.is_control() => shown.push(char::REPLACEMENT_CHARACTER),
            other => shown.push(other),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::ManualClock;

    fn is_written(lines: &LogLines) -> bool {
        matches!(lines.admit(), Admitted::Yes { .. })
    }

    #[test]
    fn lines_beyond_those_of_a_second_are_dropped_and_the_next_second_tells_how_many() {
        let clock = ManualClock::shared();
        let lines = LogLines::new("rules", 2, clock.clone());
        let written: Vec<bool> = (0..5).map(|_| is_written(&lines)).collect();
        assert_eq!(written, [true, true, false, false, false]);
        clock.advance(Duration::from_millis(1001));
        assert!(matches!(lines.admit(), Admitted::Yes { dropped_before: 3 }));
        assert!(matches!(lines.admit(), Admitted::Yes { dropped_before: 0 }));
        assert!(!is_written(&lines));
    }

    #[test]
    fn a_long_message_is_cut_between_two_characters() {
        let message = format!("a{}", "\u{e4}".repeat(MAX_LINE_BYTES));
        let shown = cut(&message);
        assert_eq!(shown.len(), MAX_LINE_BYTES - 1);
        assert!(message.starts_with(&shown));
    }

    #[test]
    fn a_message_of_several_lines_cannot_pass_for_lines_of_the_host() {
        assert_eq!(cut("one\nERROR two\n"), "one\n  ERROR two");
        assert_eq!(cut("one\r\u{1b}[2Ktwo\u{2028}three\t4"), "one\u{fffd}\u{fffd}[2Ktwo\u{fffd}three\t4");
    }
}
