//! What games are to hear from services: for each game its mailbox, and the answers to its requests. They are taken in
//! turn, one of each game, and of a game that has both a message and an answer in turn as well, so that nobody is starved.
//! What is taken out stays in order.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};

use rustc_hash::FxHashMap;

use super::bell::Bell;
use crate::guest::GuestId;
use crate::service::{Answer, Handle, Member, MemberKind, Message, ServiceError, Services};

/// Messages that are taken out of a mailbox at one time. They count no more there, so they are few.
const TAKEN_AT_ONCE: usize = 64;

/// The answer to a request of a game.
#[derive(Debug)]
pub struct Reply {
    pub game: GuestId,
    pub session: u64,
    pub answer: Answer,
}

/// Where answers come in, from any thread. Requests that wait for one are bounded, and so are these.
#[derive(Clone)]
pub struct Replies {
    queue: Arc<Mutex<Vec<Reply>>>,
    bell: Bell,
}

impl Replies {
    /// None yet; the bell is rung when there are.
    pub fn new(bell: Bell) -> Self {
        Self { queue: Arc::default(), bell }
    }

    /// Hands an answer in.
    pub fn push(&self, reply: Reply) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push(reply);
        let is_first = queue.len() == 1;
        drop(queue);
        if is_first {
            self.bell.ring();
        }
    }

    /// All that have come in, in order.
    pub fn take(&self) -> Vec<Reply> {
        std::mem::take(&mut *self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a game hears next.
#[derive(Debug)]
pub enum Incoming {
    Message(Message),
    Reply { session: u64, answer: Answer },
}

/// All games' inboxes.
pub struct Inboxes {
    services: Services,
    replies: Replies,
    of: FxHashMap<GuestId, Inbox>,
    /// Games that will not run again, as services knew them.
    closed: FxHashMap<GuestId, Handle>,
    /// The games, next one first.
    order: VecDeque<GuestId>,
    waker: Waker,
}

struct Inbox {
    member: Arc<Member>,
    messages: VecDeque<Message>,
    replies: VecDeque<(u64, Answer)>,
    /// A message was the last that was taken.
    reply_is_next: bool,
}

impl Inboxes {
    /// The inboxes of these games.
    pub fn new(services: Services, members: &FxHashMap<GuestId, Arc<Member>>, replies: Replies) -> Self {
        let mut order: Vec<GuestId> = members.keys().copied().collect();
        order.sort_unstable();
        let of = members.iter().map(|(game, member)| (*game, Inbox::new(Arc::clone(member)))).collect();
        let waker = Waker::from(Arc::new(replies.bell.clone()));
        Self { services, replies, of, closed: FxHashMap::default(), order: order.into(), waker }
    }

    /// Takes the next thing out that a game which `is_ready` is to hear. `None` says that there is nothing: the bell is
    /// rung when there is something again for one that is ready now.
    pub fn next(&mut self, is_ready: impl Fn(GuestId) -> bool) -> Option<(GuestId, Incoming)> {
        let game = self.next_game(is_ready)?;
        let incoming = self.of.get_mut(&game)?.pop()?;
        // Its turn comes again after all others'.
        if let Some(at) = self.order.iter().position(|of| *of == game) {
            self.order.rotate_left(at + 1);
        }
        Some((game, incoming))
    }

    /// Whether there is something for a game that is ready. As [`next`](Self::next) it sees to the bell otherwise.
    pub fn has_next(&mut self, is_ready: impl Fn(GuestId) -> bool) -> bool {
        self.next_game(is_ready).is_some()
    }

    fn next_game(&mut self, is_ready: impl Fn(GuestId) -> bool) -> Option<GuestId> {
        for Reply { game, session, answer } in self.replies.take() {
            match self.of.get_mut(&game) {
                Some(inbox) => inbox.replies.push_back((session, answer)),
                None => self.note_unheard(game, &answer),
            }
        }
        let Self { of, order, waker, .. } = self;
        let mut ready = order.iter().copied().filter(|game| is_ready(*game));
        ready.find(|game| of.get_mut(game).is_some_and(|inbox| inbox.fill(waker)))
    }

    /// Puts back what was taken out last and could not be heard.
    pub fn put_back(&mut self, game: GuestId, incoming: Incoming) {
        let Some(inbox) = self.of.get_mut(&game) else { return };
        match incoming {
            Incoming::Message(message) => inbox.messages.push_front(message),
            Incoming::Reply { session, answer } => inbox.replies.push_front((session, answer)),
        }
    }

    /// A game has handled a message.
    pub fn count_handled(&self, game: GuestId) {
        if let Some(inbox) = self.of.get(&game) {
            inbox.member.count_handled(1);
        }
    }

    /// An answer has come for a game that will not hear it. That there is none is no answer.
    fn note_unheard(&self, game: GuestId, answer: &Answer) {
        if let (Ok(answer), Some(handle)) = (answer, self.closed.get(&game)) {
            self.services.late_answer(Handle::HOST, *handle, answer.len());
        }
    }

    /// A game will not run again: nothing reaches it any more, and everybody who waits for it is told why.
    pub fn close(&mut self, game: GuestId, why: &ServiceError) {
        let Some(inbox) = self.of.remove(&game) else { return };
        self.order.retain(|of| *of != game);
        self.closed.insert(game, inbox.member.handle);
        inbox.replies.iter().for_each(|(_, answer)| self.note_unheard(game, answer));
        self.services.remove(&inbox.member, inbox.messages, why);
        self.services.free_names(inbox.member.handle);
    }

    /// A game that was [closed](Self::close) runs again: it has its handle, and its name where that is free.
    pub fn open(&mut self, game: GuestId, name: &str) -> Option<Arc<Member>> {
        let handle = self.closed.remove(&game)?;
        let member = self.services.add_member_as(handle, MemberKind::Game, name);
        self.of.insert(game, Inbox::new(Arc::clone(&member)));
        self.order.push_back(game);
        Some(member)
    }
}

impl Inbox {
    fn new(member: Arc<Member>) -> Self {
        Self { member, messages: VecDeque::new(), replies: VecDeque::new(), reply_is_next: true }
    }

    /// Sees to it that the next message is at hand. Whether there is anything; if not, the waker is called once there is.
    fn fill(&mut self, waker: &Waker) -> bool {
        if self.messages.is_empty() {
            // Pending and closed come to the same: there is none.
            let mut context = Context::from_waker(waker);
            let _ = self.member.mailbox.poll_take(&mut context, &mut self.messages, TAKEN_AT_ONCE);
        }
        !self.messages.is_empty() || !self.replies.is_empty()
    }

    fn pop(&mut self) -> Option<Incoming> {
        let takes_reply = !self.replies.is_empty() && (self.reply_is_next || self.messages.is_empty());
        self.reply_is_next = !takes_reply;
        if takes_reply {
            let (session, answer) = self.replies.pop_front()?;
            return Some(Incoming::Reply { session, answer });
        }
        self.messages.pop_front().map(Incoming::Message)
    }
}

#[cfg(test)]
#[path = "inboxes_tests.rs"]
mod tests;
