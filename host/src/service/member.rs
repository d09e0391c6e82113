//! Whoever can be sent to: a service, a game guest, or a native service. A member is a handle with a mailbox; who reads
//! the mailbox is not its business.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::handle::Handle;
use super::mailbox::{Mailbox, Refused, Taken};
use super::message::{Message, ServiceError};
use super::orders::Orders;
use crate::guest::service_limits::nobody;

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
    /// Whom it asked last and still waits for, so that whoever waits in vain can be told why; 0 for nobody.
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
    /// What it is told beside its messages.
    pub(super) orders: Orders,
    is_killed: AtomicBool,
    kill: Notify,
}

impl Member {
    pub fn new(handle: Handle, kind: MemberKind, label: Arc<str>, mailbox: Mailbox) -> Self {
        Self {
            handle,
            kind,
            label,
            mailbox,
            waits_for: AtomicU64::new(0),
            handled: AtomicU64::new(0),
            in_hand: AtomicUsize::new(0),
            turns: AtomicU64::new(0),
            used_ns: AtomicU64::new(0),
            memory_bytes: Arc::default(),
            orders: Orders::default(),
            is_killed: AtomicBool::new(false),
            kill: Notify::new(),
        }
    }

    /// How it is called in errors and in the log.
    pub fn title(&self) -> String {
        format!("{} ({})", self.label, self.handle)
    }

    /// Whether a client's connection may be bound to it.
    pub fn takes_connections(&self) -> bool {
        self.kind != MemberKind::Native
    }

    /// Puts a message into its mailbox, and tells operators where that is overloaded.
    pub fn push(&self, message: Message) -> Result<(), Refused> {
        self.mailbox.push(message).map(|taken| self.tell_overload(taken))
    }

    /// The same however many are there: for what the reader itself has asked for, which is bounded elsewhere.
    pub fn push_always(&self, message: Message) -> Result<(), Refused> {
        self.mailbox.push_always(message).map(|taken| self.tell_overload(taken))
    }

    /// The same as soon as there is room. `Err` hands the message back when the mailbox is closed.
    pub async fn push_when_there_is_room(&self, message: Message) -> Result<(), Message> {
        self.mailbox.push_when_there_is_room(message).await.map(|taken| self.tell_overload(taken))
    }

    fn tell_overload(&self, taken: Taken) {
        if let Some(length) = taken.overload {
            tracing::warn!(guest = &*self.label, handle = self.handle.0, length, "a mailbox is overloaded");
        }
    }

    /// Counts messages that it has handled.
    pub fn count_handled(&self, count: u64) {
        self.handled.fetch_add(count, Ordering::Relaxed);
    }

    /// Notes whom it waits for, until the answer is dropped.
    pub(super) fn waits_for(&self, whom: Handle) -> WaitsFor<'_> {
        self.waits_for.store(whom.0, Ordering::Relaxed);
        WaitsFor { member: self, whom }
    }

    /// Whom it waits for: of several, the one that it asked last.
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
pub(super) struct WaitsFor<'a> {
    member: &'a Member,
    whom: Handle,
}

impl Drop for WaitsFor<'_> {
    fn drop(&mut self) {
        // It may have asked somebody else since, whom it still waits for.
        let (before, nobody) = (self.whom.0, Handle::HOST.0);
        let _ = self.member.waits_for.compare_exchange(before, nobody, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Refused {
    /// What a sender is told who wanted `member` to have the message.
    pub fn why(&self, member: &Member) -> ServiceError {
        match self {
            Refused::Full(_) => ServiceError::MailboxFull(member.mailbox.capacity() as u32),
            Refused::Closed(_) => nobody(member.handle.0),
        }
    }

    /// The message.
    pub fn into_message(self) -> Message {
        match self {
            Refused::Full(message) | Refused::Closed(message) => message,
        }
    }
}
