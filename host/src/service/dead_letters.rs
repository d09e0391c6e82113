//! Messages that reach nobody: counted, the last ones kept for operators, and told at each doubling. It sends nothing on.
//! As the native service `dead-letters` it can also be sent to, by whoever has no better place for a message. These are
//! whole messages of any sender, and nothing to do with the letters in which games write to services.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::handle::Handle;
use super::message::ServiceError;
use super::native;
use super::services::Services;

/// The name that the service is registered under.
pub const NAME: &str = "dead-letters";

/// So many are kept.
const KEPT: usize = 64;

/// Starts the service: whatever is sent to it is a dead letter, and whoever asks it something is refused.
pub fn start(services: &Services) {
    native::start(services, NAME, |services, own_handle, message| {
        let reason = format!("it was sent to {NAME}");
        services.shared.dead_letters.note(message.source, own_handle, message.payload.len(), reason);
        if let Some(request) = message.request {
            services.answer(own_handle, request, Err(ServiceError::Refused(format!("{NAME} answers nobody"))));
        }
    });
}

/// A message that reached nobody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// Who sent it; 0 for the host.
    pub source: u64,
    /// Whom it was for.
    pub to: u64,
    /// How long its payload was.
    pub bytes: usize,
    /// Why it did not arrive.
    pub reason: String,
}

/// All of them.
#[derive(Debug, Default)]
pub struct DeadLetters {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    count: u64,
    last: VecDeque<DeadLetter>,
}

impl DeadLetters {
    /// Notes one.
    pub fn note(&self, source: Handle, to: Handle, bytes: usize, reason: impl Into<String>) {
        let letter = DeadLetter { source: source.0, to: to.0, bytes, reason: reason.into() };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.count += 1;
        let count = state.count;
        if count.is_power_of_two() {
            let DeadLetter { source, to, reason, .. } = &letter;
            tracing::warn!(source, to, dead_letters = count, "a message reached nobody: {reason}");
        }
        if state.last.len() == KEPT {
            state.last.pop_front();
        }
        state.last.push_back(letter);
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// The last ones, oldest first.
    pub fn last(&self) -> Vec<DeadLetter> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).last.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_the_last_are_kept() {
        let letters = DeadLetters::default();
        for number in 0..KEPT + 10 {
            letters.note(Handle(1), Handle(2), number, "it has ended");
        }
        assert_eq!(letters.count(), KEPT as u64 + 10);
        let last = letters.last();
        assert_eq!((last.len(), last[0].bytes, last[KEPT - 1].bytes), (KEPT, 10, KEPT + 9));
    }
}
