//! The timeouts of one service: each becomes a message in its mailbox, unless it is taken back before the message is
//! handled.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustc_hash::FxHashMap;
use tokio::runtime::Handle as Runtime;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::member::Member;
use super::message::{Message, Subject};

/// Timeouts that one service may have set.
pub const MAX_TIMEOUTS: usize = 65_536;

/// The timeouts that are set, or over and not handled yet. Dropping it takes all back.
#[derive(Debug, Default)]
pub struct Timeouts {
    set: FxHashMap<u64, Timeout>,
    /// Bytes of their payloads.
    bytes: usize,
}

#[derive(Debug)]
struct Timeout {
    set: Set,
    bytes: usize,
}

#[derive(Debug)]
enum Set {
    /// It is waited for.
    Waiting(AbortHandle),
    /// It went straight to the mailbox.
    InMailbox,
    /// It is no message for the guest: somebody waits until the mailbox has been taken up to here.
    Mark(oneshot::Sender<()>),
}

/// Whose timeouts they are, and what waits for them.
pub struct Whose<'a> {
    pub member: &'a Arc<Member>,
    pub runtime: &'a Runtime,
}

impl Timeouts {
    /// Sets one under an id that nobody has; false when there are too many, or their payloads have more than `max_bytes`.
    pub fn set(&mut self, id: u64, delay: Duration, payload: Bytes, max_bytes: usize, whose: Whose<'_>) -> bool {
        let bytes = payload.len();
        if self.set.len() >= MAX_TIMEOUTS || (!self.set.is_empty() && self.bytes + bytes > max_bytes) {
            return false;
        }
        let Whose { member, runtime } = whose;
        let message = Message::new(member.handle, Subject::Timeout(id), payload);
        let set = if delay.is_zero() {
            // A mailbox that is closed belongs to a service that is ending: nobody is there to miss it.
            let _ = member.push_always(message);
            Set::InMailbox
        } else {
            let member = Arc::clone(member);
            let waiting = runtime.spawn(async move {
                tokio::time::sleep(delay).await;
                let _ = member.push_always(message);
            });
            Set::Waiting(waiting.abort_handle())
        };
        self.bytes += bytes;
        self.set.insert(id, Timeout { set, bytes });
        true
    }

    fn remove(&mut self, id: u64) -> Option<Set> {
        let Timeout { set, bytes } = self.set.remove(&id)?;
        self.bytes -= bytes;
        Some(set)
    }

    /// Tells when everything that is in the mailbox now has been taken up; as many of these may be set as of timeouts.
    pub fn mark(&mut self, id: u64, member: &Member) -> oneshot::Receiver<()> {
        let (mark, taken_up) = oneshot::channel();
        if self.set.len() < MAX_TIMEOUTS {
            self.set.insert(id, Timeout { set: Set::Mark(mark), bytes: 0 });
            let _ = member.push_always(Message::new(member.handle, Subject::Timeout(id), Bytes::new()));
        }
        taken_up
    }

    /// Tells all who wait for the mailbox to be taken up: it is not, as long as they wait.
    pub fn release_marks(&mut self) {
        let marks = self.set.extract_if(|_, timeout| matches!(timeout.set, Set::Mark(_)));
        for (_, timeout) in marks {
            if let Set::Mark(mark) = timeout.set {
                let _ = mark.send(());
            }
        }
    }

    /// Takes one back; false when there is none with that id.
    pub fn cancel(&mut self, id: u64) -> bool {
        match self.remove(id) {
            Some(Set::Waiting(waiting)) => waiting.abort(),
            Some(Set::InMailbox) => {}
            Some(mark @ Set::Mark(_)) => {
                self.set.insert(id, Timeout { set: mark, bytes: 0 });
                return false;
            }
            None => return false,
        }
        true
    }

    /// The message of one has come to its turn; false when it was taken back, or is no message for the guest.
    pub fn is_due(&mut self, id: u64) -> bool {
        match self.remove(id) {
            Some(Set::Waiting(_) | Set::InMailbox) => true,
            Some(Set::Mark(mark)) => {
                let _ = mark.send(());
                false
            }
            None => false,
        }
    }
}

impl Drop for Timeouts {
    fn drop(&mut self) {
        for timeout in self.set.values() {
            if let Set::Waiting(waiting) = &timeout.set {
                waiting.abort();
            }
        }
    }
}
