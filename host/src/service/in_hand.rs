//! The messages that a service has in hand: which requests it may answer, defer or hand on, and on whose behalf. A session
//! that is not here cannot be answered, however a guest came to its number.

use rustc_hash::FxHashMap;

use super::handle::Handle;
use super::message::{Place, Request, ServiceError, Subject};

/// Requests that one service may leave open.
const MAX_DEFERRED: usize = 65_536;

/// What a service has in hand.
#[derive(Debug, Default)]
pub struct InHand {
    requests: FxHashMap<u64, Open>,
    deferred: usize,
    /// The messages that are being handled.
    messages: Vec<Handled>,
}

#[derive(Debug)]
struct Handled {
    source: Handle,
    subject: Subject,
    place: Option<Place>,
}

impl Handled {
    fn is(&self, source: Handle, subject: Subject) -> bool {
        self.source == source && self.subject == subject
    }
}

#[derive(Debug)]
struct Open {
    request: Request,
    subject: Subject,
    is_deferred: bool,
}

impl InHand {
    /// The service takes up a message.
    pub fn begin(&mut self, source: Handle, subject: Subject, request: Option<Request>, place: Option<Place>) {
        self.messages.push(Handled { source, subject, place });
        if let Some(request) = request {
            self.requests.insert(request.session, Open { request, subject, is_deferred: false });
        }
    }

    /// The handler of a message has returned: where its request is still to be answered, this is it.
    pub fn end(&mut self, source: Handle, subject: Subject, session: Option<u64>) -> Option<Request> {
        if let Some(at) = self.messages.iter().position(|other| other.is(source, subject)) {
            self.messages.swap_remove(at);
        }
        let session = session?;
        let is_answered_now = self.requests.get(&session).is_some_and(|open| !open.is_deferred);
        is_answered_now.then(|| self.take(session)).flatten()
    }

    /// Leaves a request open; false when there is none under that session, or too many are open.
    pub fn defer(&mut self, session: u64) -> bool {
        match self.requests.get_mut(&session) {
            Some(open) if open.is_deferred => true,
            Some(open) if self.deferred < MAX_DEFERRED => {
                open.is_deferred = true;
                self.deferred += 1;
                true
            }
            _ => false,
        }
    }

    /// The request under a session, to be answered or handed on now.
    pub fn take(&mut self, session: u64) -> Option<Request> {
        let open = self.requests.remove(&session)?;
        self.deferred -= usize::from(open.is_deferred);
        Some(open.request)
    }

    /// Hands the request under a session, if there is one, to `hand_on`, which may give it back.
    pub fn hand_on<E>(
        &mut self,
        session: Option<u64>,
        hand_on: impl FnOnce(Option<Request>) -> Result<(), (E, Option<Request>)>,
    ) -> Result<(), E> {
        let open = session.and_then(|session| self.requests.remove(&session));
        let Some(Open { request, subject, is_deferred }) = open else {
            return hand_on(None).map_err(|(error, _)| error);
        };
        hand_on(Some(request)).inspect(|()| self.deferred -= usize::from(is_deferred)).map_err(|(error, back)| {
            if let Some(request) = back {
                self.requests.insert(request.session, Open { request, subject, is_deferred });
            }
            error
        })
    }

    /// The place of a packet that is passed on goes with it: until it is handled there, nobody else hears of its client.
    pub fn pass_on_place(&mut self, source: Handle, subject: Subject) -> Option<Place> {
        let message = self.messages.iter_mut().find(|other| other.is(source, subject) && other.place.is_some())?;
        message.place.take().map(|place| Place { is_passed_on: true, ..place })
    }

    /// Whether a message of that source, about that, and under that session, is in hand.
    pub fn has(&self, source: Handle, subject: Subject, session: Option<u64>) -> bool {
        match session {
            Some(session) => {
                self.requests.get(&session).is_some_and(|open| open.request.source == source && open.subject == subject)
            }
            None => self.messages.iter().any(|other| other.is(source, subject)),
        }
    }

    /// The messages of a call that had many of them have been handled: none of them had a session or a place.
    pub fn forget_messages(&mut self) {
        self.messages.clear();
    }

    /// The sessions that are deferred.
    pub fn deferred(&self) -> Vec<u64> {
        self.requests.iter().filter(|(_, open)| open.is_deferred).map(|(session, _)| *session).collect()
    }

    /// Answers what is being handled with an error, and not what is deferred.
    pub fn fail_in_hand(&mut self, error: &ServiceError) {
        self.fail_but(&self.deferred(), error);
    }

    /// Answers everything but these sessions with an error.
    pub fn fail_but(&mut self, kept: &[u64], error: &ServiceError) {
        self.messages.clear();
        for (_, open) in self.requests.extract_if(|session, _| !kept.contains(session)) {
            self.deferred -= usize::from(open.is_deferred);
            open.request.answer(Err(error.clone()));
        }
    }

    /// Answers everything with an error.
    pub fn fail_all(&mut self, error: &ServiceError) {
        self.messages.clear();
        self.deferred = 0;
        for (_, open) in self.requests.drain() {
            open.request.answer(Err(error.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::Answer;

    const A: Handle = Handle(1);
    const B: Handle = Handle(2);

    fn with_request(session: u64) -> (InHand, tokio::sync::oneshot::Receiver<Answer>) {
        let mut in_hand = InHand::default();
        let (request, answer) = Request::new(session, A);
        in_hand.begin(A, Subject::Plain, Some(request), None);
        (in_hand, answer)
    }

    #[test]
    fn a_request_is_answered_once() {
        let (mut in_hand, _answer) = with_request(7);
        assert!(in_hand.take(7).is_some() && in_hand.take(7).is_none());
        assert!(in_hand.end(A, Subject::Plain, Some(7)).is_none(), "what the handler returns counts no more");
    }

    #[test]
    fn a_deferred_request_outlives_its_handler() {
        let (mut in_hand, _answer) = with_request(7);
        assert!(in_hand.defer(7) && in_hand.defer(7));
        assert!(in_hand.end(A, Subject::Plain, Some(7)).is_none());
        assert!(in_hand.has(A, Subject::Plain, Some(7)) && in_hand.take(7).is_some());
        assert_eq!(in_hand.deferred, 0);
    }

    #[test]
    fn a_deferred_request_that_could_not_be_handed_on_stays_deferred() {
        let (mut in_hand, _answer) = with_request(7);
        in_hand.defer(7);
        assert_eq!(in_hand.hand_on(Some(7), |request| Err(("full", request))), Err("full"));
        assert!(in_hand.end(A, Subject::Plain, Some(7)).is_none());
        assert_eq!(in_hand.hand_on::<&str>(Some(7), |request| request.map(drop).ok_or(("it is gone", None))), Ok(()));
        assert_eq!(in_hand.deferred, 0);
    }

    #[test]
    fn a_session_a_source_or_a_subject_that_is_not_in_hand_is_nothing_to_it() {
        let (mut in_hand, _answer) = with_request(7);
        assert!(!in_hand.defer(8) && in_hand.take(8).is_none());
        assert!(in_hand.has(A, Subject::Plain, Some(7)) && in_hand.has(A, Subject::Plain, None));
        assert!(!in_hand.has(B, Subject::Plain, Some(7)) && !in_hand.has(A, Subject::Plain, Some(8)));
        assert!(!in_hand.has(A, Subject::Timeout(1), Some(7)) && !in_hand.has(A, Subject::Packet(1), None));
        assert!(!in_hand.has(B, Subject::Plain, None));
        in_hand.end(A, Subject::Plain, Some(7));
        assert!(!in_hand.has(A, Subject::Plain, None));
    }

    #[test]
    fn whoever_waits_hears_of_the_end() {
        let (mut in_hand, mut answer) = with_request(7);
        in_hand.defer(7);
        in_hand.fail_all(&ServiceError::Gone("it has ended".to_owned()));
        assert!(matches!(answer.try_recv().unwrap(), Err(ServiceError::Gone(_))));
    }
}
