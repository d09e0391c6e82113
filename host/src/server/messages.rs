//! Messages and answers that services have sent to games, handled as transactions. They wait in their mailboxes for as
//! long as nothing can be changed, and no answer is given before what it tells is on disk.

use std::time::Duration;

use super::committing::Disk;
use super::inboxes::Incoming;
use super::letters::Outgoing;
use super::simulation::{Cx, HostSimulation};
use crate::guest::contract::sim::services::Message as Told;
use crate::guest::{CallError, GuestId, GuestState, Resident};
use crate::service::{Answer, Message, ServiceError, answer_of};

/// Time of one turn for messages, looked at between two of them.
const BUDGET: Duration = Duration::from_millis(5);

impl HostSimulation {
    /// Has games hear what has come for them until the time is up; the rest waits for the next turn.
    pub(super) fn run_messages(&mut self, cx: &mut Cx<'_>) {
        if self.committing.disk() != Disk::Ready {
            return;
        }
        let until = cx.clock.now() + BUDGET;
        while !self.spent
            && let Some((game, incoming)) = self.inboxes.next(|game| is_running(&self.guests.games, game))
        {
            self.hear(game, incoming, cx);
            if cx.clock.now() >= until {
                break;
            }
        }
        if self.inboxes.has_next(|game| is_running(&self.guests.games, game)) {
            self.go_on(cx);
        }
    }

    fn hear(&mut self, game: GuestId, incoming: Incoming, cx: &mut Cx<'_>) {
        match incoming {
            Incoming::Message(message) => self.message(game, message, cx),
            Incoming::Reply { session, answer } => self.reply(game, session, answer, cx),
        }
    }

    /// One message. What its handler answers goes to whoever asked, once it is on disk.
    fn message(&mut self, game: GuestId, message: Message, cx: &mut Cx<'_>) {
        let told = Told {
            source: message.source.0,
            session: message.request.as_ref().map(|request| request.session),
            subject: message.subject,
            payload: message.payload.to_vec(),
        };
        let handled = self.handle(game, "on-message", cx, |game, store| game.call_on_message(store, &told));
        if let Err(CallError::Unkept) = handled {
            self.inboxes.put_back(game, Incoming::Message(message));
            return;
        }
        self.inboxes.count_handled(game);
        let Some(request) = message.request else { return };
        // What a refusal says may come from what the handler has read; what is said of a failure does not.
        let after = match handled {
            Ok(_) | Err(CallError::Refused(_)) => self.stage().answer_after,
            Err(_) => 0,
        };
        let answer = self.answer(game, handled);
        self.post(Outgoing::Answer { from: game, request, answer }, after);
    }

    fn answer(&self, game: GuestId, handled: Result<Vec<u8>, CallError>) -> Answer {
        let name = || self.guests.name(game).unwrap_or("the game").to_owned();
        let result = match handled {
            Ok(answer) => Ok(answer),
            Err(CallError::Refused(reason)) => Err(reason),
            Err(error) => return Err(ServiceError::Failed(format!("{}: {error}", name()))),
        };
        answer_of(result, self.engine.limits().max_payload_bytes(), name)
    }

    /// The answer to a request of the game.
    fn reply(&mut self, game: GuestId, session: u64, answer: Answer, cx: &mut Cx<'_>) {
        let told = answer.as_deref();
        let handled = self.handle(game, "on-reply", cx, |game, store| game.call_on_reply(store, session, told));
        if let Err(CallError::Unkept) = handled {
            self.inboxes.put_back(game, Incoming::Reply { session, answer });
            return;
        }
        self.stage().letters.request_is_over(game);
    }

    /// A game will not run, unless new code comes: whoever has sent it something that it has not handled is told.
    pub(super) fn close_inbox(&mut self, game: GuestId) {
        let name = self.guests.name(game).unwrap_or("the game");
        let why = match self.guests.games.get(&game).map(|game| game.identity().counters.state()) {
            Some(GuestState::Refused) => "does not run: its file was refused",
            _ => "is disabled: it failed too often",
        };
        let why = ServiceError::Failed(format!("{name} {why}"));
        self.inboxes.close(game, &why);
        self.stage().letters.forget(game);
    }

    /// A game that did not run does so again: it can be sent to, under its handle and its name.
    pub(super) fn open_inbox(&mut self, game: GuestId) {
        let Some(name) = self.guests.name(game) else { return };
        if let Some(member) = self.inboxes.open(game, name) {
            self.letters.know_member(game, member);
        }
    }
}

fn is_running<C: crate::guest::kinds::ResidentCode>(
    games: &rustc_hash::FxHashMap<GuestId, Resident<C>>,
    game: GuestId,
) -> bool {
    games.get(&game).is_some_and(Resident::is_running)
}
