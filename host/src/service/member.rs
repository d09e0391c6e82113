//! Whoever can be sent to: a service, a game guest, or a native service. A member is a handle with a mailbox; who reads
//! the mailbox is not its business.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::handle::Handle;
use super::mailbox::Mailbox;

/// What reads the mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberKind {
    /// A guest of kind `service`.
    Service,
    /// A guest of kind `game`, on the loop.
    Game,
    /// A part of the host.
    Native,
}

/// An entry of the directory.
#[derive(Debug)]
pub struct Member {
    pub handle: Handle,
    pub kind: MemberKind,
    /// The name of its guest, or what a native service is.
    pub label: Arc<str>,
    pub mailbox: Mailbox,
    /// Whom it waits for, so that whoever waits in vain can be told why; 0 for nobody.
    waits_for: AtomicU64,
    /// Messages that it has handled.
    pub(super) handled: AtomicU64,
    /// Messages that it has in hand.
    pub(super) in_hand: AtomicUsize,
    /// Turns that its task has had.
    pub(super) turns: AtomicU64,
    /// Time that it has computed.
    pub(super) used_ns: AtomicU64,
    /// Memory of its instance.
    pub(super) memory_bytes: Arc<AtomicUsize>,
    is_killed: AtomicBool,
    kill: Notify,
}

impl Member {
    pub fn new(handle: Handle, kind: MemberKind, label: Arc<str>, mailbox_capacity: usize) -> Self {
        Self {
            handle,
            kind,
            label,
            mailbox: Mailbox::new(mailbox_capacity),
            waits_for: AtomicU64::new(0),
            handled: AtomicU64::new(0),
            in_hand: AtomicUsize::new(0),
            turns: AtomicU64::new(0),
            used_ns: AtomicU64::new(0),
            memory_bytes: Arc::default(),
            is_killed: AtomicBool::new(false),
            kill: Notify::new(),
        }
    }

    /// How it is called in errors and in the log.
    pub fn title(&self) -> String {
        format!("{} ({})", self.label, self.handle)
    }

    /// Counts a message that it has handled: for those who read their mailbox outside this room.
    pub fn count_handled(&self) {
        self.handled.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes whom it waits for, until the answer is dropped.
    pub(super) fn waits_for(&self, whom: Handle) -> WaitsFor<'_> {
        self.waits_for.store(whom.0, Ordering::Relaxed);
        WaitsFor(self)
    }

    /// Whom it waits for.
    pub(super) fn waited_for(&self) -> Option<Handle> {
        Some(Handle(self.waits_for.load(Ordering::Relaxed))).filter(|handle| *handle != Handle::HOST)
    }

    /// Has it end as soon as it gives control back.
    pub(super) fn kill(&self) {
        self.is_killed.store(true, Ordering::Release);
        self.kill.notify_one();
    }

    /// Ends when it is killed. For the one task that runs it.
    pub(super) async fn until_killed(&self) {
        while !self.is_killed.load(Ordering::Acquire) {
            self.kill.notified().await;
        }
    }
}

/// While it lives, a member waits.
pub(super) struct WaitsFor<'a>(&'a Member);

impl Drop for WaitsFor<'_> {
    fn drop(&mut self) {
        self.0.waits_for.store(0, Ordering::Relaxed);
    }
}
