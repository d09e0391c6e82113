//! What games tell services, once what it tells is on disk. All letters of all games stand in one line, so that each game's
//! are delivered in the order in which it wrote them, also where a later one would have to wait for nothing. A request's
//! answer comes back through `inboxes`.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use rustc_hash::FxHashMap;

use super::asked::{Asked, Asking};
use super::inboxes::{Replies, Reply};
use super::simulation::HostSimulation;
use crate::guest::stage::PACKET_OVERHEAD_BYTES;
use crate::guest::{GuestId, Letter};
use crate::service::{Answer, Handle, Member, Message, Request, ServiceError, Services, Subject, describe};

/// Something in the line.
pub enum Outgoing {
    /// What a game's handler has asked for.
    Letter { from: GuestId, letter: Letter },
    /// The answer of a game to a message that it has handled.
    Answer { from: GuestId, request: Request, answer: Answer },
}

impl Outgoing {
    fn bytes(&self) -> usize {
        let payload = match self {
            Outgoing::Letter { letter, .. } => letter.bytes(),
            Outgoing::Answer { answer, .. } => answer.as_ref().map_or(0, |answer| answer.len()),
        };
        payload + PACKET_OVERHEAD_BYTES
    }
}

/// The letters that wait, and the way to services.
pub struct Letters {
    services: Services,
    /// The games, as services know them.
    members: FxHashMap<GuestId, Arc<Member>>,
    replies: Replies,
    asking: Asking,
    /// Each with the batch that it waits for.
    line: VecDeque<(u64, Outgoing)>,
    waiting_bytes: usize,
    /// The newest batch on disk.
    committed: u64,
    /// Letters that were in vain.
    lost: u64,
}

impl Letters {
    /// The letters of these games.
    pub fn new(services: Services, members: FxHashMap<GuestId, Arc<Member>>, replies: Replies) -> Self {
        let asking = Asking::start(&services, replies.clone());
        Self { services, members, replies, asking, line: VecDeque::new(), waiting_bytes: 0, committed: 0, lost: 0 }
    }

    /// The games, as services know them.
    pub fn members(&self) -> impl Iterator<Item = (GuestId, &Arc<Member>)> {
        self.members.iter().map(|(game, member)| (*game, member))
    }

    /// A game is known as this member from here on, under the handle that it had.
    pub fn know_member(&mut self, game: GuestId, member: Arc<Member>) {
        self.members.insert(game, member);
    }

    /// Gives a packet back to the gate whose connection is no longer that game's; false where it is.
    pub fn give_back(&self, game: GuestId, connection: u64, packet: &Bytes) -> bool {
        match (self.services.gate(), self.members.get(&game)) {
            (Some(gate), Some(member)) => gate.give_back(connection, member.handle, packet),
            _ => false,
        }
    }

    /// Bytes of the letters that wait.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Puts a letter at the end of the line. It waits for the batch `after`.
    fn push(&mut self, outgoing: Outgoing, after: u64) {
        self.waiting_bytes += outgoing.bytes();
        self.line.push_back((after, outgoing));
    }

    /// The letter that is to be delivered next, if it need not wait.
    fn pop(&mut self) -> Option<Outgoing> {
        let committed = self.committed;
        let (_, outgoing) = self.line.pop_front_if(|(after, _)| *after <= committed)?;
        self.waiting_bytes -= outgoing.bytes();
        Some(outgoing)
    }

    /// Does what a letter asks for. What turns out to be impossible only now cannot be told to the handler any more: it is
    /// logged, or is the answer to the request that it was.
    fn carry_out(&mut self, from: GuestId, letter: Letter) {
        // Of a game that was disabled meanwhile as well: it wrote this before, and what it changed is on disk. Only to it
        // itself nothing can be given any more.
        let Some(member) = self.members.get(&from).map(Arc::clone) else { return };
        let done = match letter {
            Letter::Request { to, session, object, payload, limit_ms } => {
                let subject = object.map_or(Subject::Plain, Subject::Object);
                let (request, answer) = Request::new(session, member.handle);
                let message = Message { request: Some(request), ..Message::new(member.handle, subject, payload) };
                if let Err(error) = self.services.deliver(Handle(to), message) {
                    self.replies.push(Reply { game: from, session, answer: Err(error) });
                    return;
                }
                let limit = self.services.options().call_limit_of(limit_ms);
                self.asking.wait_for(Asked { game: from, member, to: Handle(to), session, answer, limit });
                return;
            }
            Letter::Bind { connection, to } => return self.bind(connection, Handle(to)),
            other => tell(&self.services, member.handle, other),
        };
        if let Err(error) = done {
            self.note_lost(&member, &error);
        }
    }

    fn answer(&self, from: GuestId, request: Request, answer: Answer) {
        let by = self.members.get(&from).map_or(Handle::HOST, |member| member.handle);
        self.services.answer(by, request, answer);
    }

    fn note_lost(&mut self, from: &Member, error: &ServiceError) {
        self.lost += 1;
        // It may be the doing of others and happen often, so it is told at each doubling.
        if self.lost.is_power_of_two() {
            let (guest, times) = (&*from.label, self.lost);
            tracing::warn!(guest, times, "what a game asked of services was in vain: {}", describe(error));
        }
    }

    /// Binds a connection. One that would be bound to nobody is closed, as if its service had ended a little later.
    fn bind(&self, connection: u64, to: Handle) {
        let Some(gate) = self.services.gate() else { return };
        match self.services.member(to).filter(|member| member.takes_connections()) {
            Some(member) => drop(gate.bind(connection, &member)),
            None => drop(gate.close(connection)),
        }
    }
}

/// Tells services what needs no answer.
fn tell(services: &Services, source: Handle, letter: Letter) -> Result<(), ServiceError> {
    match letter {
        Letter::Send { to, payload } => {
            return services.deliver(Handle(to), Message::new(source, Subject::Plain, payload));
        }
        Letter::Launch { handle, guest, arguments } => drop(services.launch_as(Handle(handle), &guest, arguments)?),
        Letter::Kill(service) => drop(services.kill(Handle(service))),
        Letter::Register { name, service } => return services.register(&name, Handle(service)),
        Letter::Unregister(name) => drop(services.unregister(&name)),
        Letter::Publish { channel, payload } => drop(services.publish(source, &channel, &payload)?),
        Letter::Subscribe { id, channel } => return services.subscribe(id, source, &channel),
        Letter::Unsubscribe(id) => drop(services.unsubscribe(id, source)),
        Letter::PutShared { name, blob } => {
            let no_room = |_| ServiceError::Failed(format!("there is no room for the shared blob {name:?}"));
            return services.put_whole(source, &name, blob).map_err(no_room);
        }
        Letter::RemoveShared(name) => drop(services.data().remove(&name)),
        Letter::Watch(name) => drop(services.watch(source, &name)),
        Letter::Unwatch(name) => drop(services.data().unwatch(source, &name)),
        // These come back to the game or go to the gate.
        Letter::Request { .. } | Letter::Bind { .. } => {}
    }
    Ok(())
}

impl HostSimulation {
    /// Delivers a letter as soon as what it tells, the batch `after`, is on disk.
    pub(super) fn post(&mut self, outgoing: Outgoing, after: u64) {
        let after = match &outgoing {
            // A client's packets that were sent before come before.
            Outgoing::Letter { letter: Letter::Bind { connection, .. }, .. } => {
                after.max(self.outbox.newest_wait(*connection))
            }
            _ => after,
        };
        self.letters.push(outgoing, after);
        self.deliver_letters();
    }

    /// Everything up to the batch `committed` is on disk.
    pub(super) fn release_letters(&mut self, committed: u64) {
        self.letters.committed = committed;
        self.deliver_letters();
    }

    fn deliver_letters(&mut self) {
        while let Some(outgoing) = self.letters.pop() {
            match outgoing {
                Outgoing::Letter { from, letter } => {
                    self.stage().letters.delivered(&letter);
                    self.letters.carry_out(from, letter);
                }
                Outgoing::Answer { from, request, answer } => self.letters.answer(from, request, answer),
            }
        }
    }
}
