//! The requests of games that wait for an answer. One task waits for all of them, since answers that one service gives to
//! one game are to come in the order given, which tasks of their own would not keep.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};

use super::inboxes::{Replies, Reply};
use crate::guest::GuestId;
use crate::service::{Answer, Handle, Member, Services};

/// Answers after which others may use the thread.
const ANSWERS_AT_ONCE: usize = 256;

/// A request that was sent.
pub struct Asked {
    pub game: GuestId,
    /// The game, as services know it.
    pub member: Arc<Member>,
    pub to: Handle,
    pub session: u64,
    pub answer: oneshot::Receiver<Answer>,
    pub limit: Duration,
}

/// Hands requests to the task. It ends when this is dropped.
pub struct Asking {
    // Whoever asks is bounded: `service.max_waiting`.
    asked: mpsc::UnboundedSender<Asked>,
}

impl Asking {
    /// Starts the task, whose answers go to `replies`.
    pub fn start(services: &Services, replies: Replies) -> Self {
        let (sender, asked) = mpsc::unbounded_channel();
        // A task that is made to pause between any two answers would take them up again in another order.
        services.runtime().spawn(tokio::task::unconstrained(wait(services.clone(), asked, replies)));
        Self { asked: sender }
    }

    /// Waits for one more answer.
    pub fn wait_for(&self, asked: Asked) {
        // Services that have stopped answer nobody, and neither does the host that stops.
        let _ = self.asked.send(asked);
    }
}

async fn wait(services: Services, mut asked: mpsc::UnboundedReceiver<Asked>, replies: Replies) {
    let mut waiting = FuturesUnordered::new();
    let mut answered = 0;
    loop {
        tokio::select! {
            biased;
            next = asked.recv() => match next {
                Some(next) => waiting.push(answer_to(&services, next)),
                None => return,
            },
            // Those that are woken come in the order in which they were.
            Some(reply) = waiting.next(), if !waiting.is_empty() => {
                replies.push(reply);
                answered += 1;
                if answered % ANSWERS_AT_ONCE == 0 {
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

async fn answer_to(services: &Services, asked: Asked) -> Reply {
    let Asked { game, member, to, session, answer, limit } = asked;
    let answer = services.answer_within(&member, to, answer, limit).await;
    Reply { game, session, answer }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::bell::Bell;
    use super::*;
    use crate::service::{Handles, MemberKind, Request, ServiceError, ServiceOptions};

    const REQUESTS: u64 = 1000;

    #[tokio::test]
    async fn answers_come_in_the_order_in_which_they_were_given() {
        let runtime = tokio::runtime::Handle::current();
        let services = Services::new(ServiceOptions::default(), 10, Vec::new(), Handles::beginning_at(1), runtime);
        let member = services.add_member(MemberKind::Game, "rules");
        let replies = Replies::new(Bell::default());
        let asking = Asking::start(&services, replies.clone());
        let limit = Duration::from_secs(60);
        let mut requests = Vec::new();
        for session in 0..REQUESTS {
            let (request, answer) = Request::new(session, member.handle);
            requests.push(request);
            let (member, to) = (Arc::clone(&member), Handle(9));
            asking.wait_for(Asked { game: GuestId(1), member, to, session, answer, limit });
            if session == REQUESTS / 2 {
                // These are waited for before they are answered, the others not yet.
                tokio::task::yield_now().await;
            }
        }
        requests.into_iter().for_each(|request| assert!(request.answer(Ok(Bytes::new()))));
        let mut sessions = Vec::new();
        while sessions.len() < REQUESTS as usize {
            sessions.extend(replies.take().into_iter().map(|reply| reply.session));
            tokio::task::yield_now().await;
        }
        assert!(sessions.into_iter().eq(0..REQUESTS));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_not_answered_in_time_says_so() {
        let runtime = tokio::runtime::Handle::current();
        let services = Services::new(ServiceOptions::default(), 10, Vec::new(), Handles::beginning_at(1), runtime);
        let member = services.add_member(MemberKind::Game, "rules");
        let replies = Replies::new(Bell::default());
        let asking = Asking::start(&services, replies.clone());
        let (_request, answer) = Request::new(7, member.handle);
        let limit = Duration::from_secs(30);
        asking.wait_for(Asked { game: GuestId(1), member, to: Handle(9), session: 7, answer, limit });
        tokio::time::sleep(Duration::from_secs(29)).await;
        assert!(replies.take().is_empty());
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(matches!(&replies.take()[..], [Reply { session: 7, answer: Err(ServiceError::TimedOut(_)), .. }]));
    }
}
