//! Who hears what next, and what becomes of it when nobody does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Wake;

use bytes::Bytes;
use tokio::runtime::Runtime;

use super::*;
use crate::service::{Handle, Handles, MemberKind, Request, ServiceOptions, Subject};

const ONE: GuestId = GuestId(1);
const OTHER: GuestId = GuestId(2);

struct World {
    inboxes: Inboxes,
    services: Services,
    members: FxHashMap<GuestId, Arc<Member>>,
    rings: Arc<Rings>,
    _runtime: Runtime,
}

/// Counts how often it is rung.
#[derive(Default)]
struct Rings(AtomicU64);

impl Wake for Rings {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl World {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let options = ServiceOptions::default();
        let services = Services::new(options, 1000, Vec::new(), Handles::beginning_at(1), runtime.handle().clone());
        let add = |game: GuestId| (game, services.add_member(MemberKind::Game, &format!("game {}", game.0)));
        let members: FxHashMap<_, _> = [ONE, OTHER].map(add).into_iter().collect();
        let mut inboxes = Inboxes::new(services.clone(), &members, Replies::new(Bell::default()));
        let rings = Arc::new(Rings::default());
        inboxes.waker = Waker::from(Arc::clone(&rings));
        Self { inboxes, services, members, rings, _runtime: runtime }
    }

    fn send(&self, game: GuestId, text: &'static str) {
        let message = Message::new(Handle::HOST, Subject::Plain, Bytes::from_static(text.as_bytes()));
        self.services.deliver(self.members[&game].handle, message).unwrap();
    }

    fn answer(&self, game: GuestId, session: u64) {
        self.inboxes.replies.push(Reply { game, session, answer: Ok(Bytes::new()) });
    }

    /// What is heard next by those who are ready, as text.
    fn next(&mut self, is_ready: impl Fn(GuestId) -> bool) -> Option<String> {
        self.inboxes.next(is_ready).map(|(game, incoming)| told(game, &incoming))
    }

    fn all(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.next(|_| true)).collect()
    }
}

fn told(game: GuestId, incoming: &Incoming) -> String {
    match incoming {
        Incoming::Message(message) => format!("{} {}", game.0, String::from_utf8_lossy(&message.payload)),
        Incoming::Reply { session, .. } => format!("{} answer {session}", game.0),
    }
}

#[test]
fn games_hear_in_turn_and_each_in_order() {
    let mut world = World::new();
    ["a", "b", "c"].iter().for_each(|text| world.send(ONE, text));
    ["x", "y"].iter().for_each(|text| world.send(OTHER, text));
    assert_eq!(world.all(), ["1 a", "2 x", "1 b", "2 y", "1 c"]);
}

#[test]
fn messages_and_answers_come_in_turn() {
    let mut world = World::new();
    ["a", "b"].iter().for_each(|text| world.send(ONE, text));
    (1..=3).for_each(|session| world.answer(ONE, session));
    assert_eq!(world.all(), ["1 answer 1", "1 a", "1 answer 2", "1 b", "1 answer 3"]);
}

#[test]
fn what_could_not_be_heard_comes_again_first() {
    let mut world = World::new();
    ["a", "b"].iter().for_each(|text| world.send(ONE, text));
    let (game, incoming) = world.inboxes.next(|_| true).unwrap();
    world.inboxes.put_back(game, incoming);
    assert_eq!(world.all(), ["1 a", "1 b"]);
}

#[test]
fn a_game_that_is_not_ready_holds_nobody_up_and_loses_nothing() {
    let mut world = World::new();
    world.send(ONE, "a");
    world.send(OTHER, "x");
    world.answer(ONE, 1);
    assert_eq!(world.next(|game| game == OTHER).as_deref(), Some("2 x"));
    assert_eq!(world.next(|game| game == OTHER), None);
    assert!(world.inboxes.has_next(|_| true));
    assert_eq!(world.all(), ["1 answer 1", "1 a"]);
}

#[test]
fn the_bell_is_rung_for_the_first_message_after_there_was_none() {
    let mut world = World::new();
    assert!(!world.inboxes.has_next(|_| true));
    world.send(ONE, "a");
    world.send(ONE, "b");
    assert_eq!(world.rings.0.load(Ordering::Relaxed), 1);
    assert_eq!(world.all(), ["1 a", "1 b"]);
    world.send(OTHER, "x");
    assert_eq!(world.rings.0.load(Ordering::Relaxed), 2);
}

#[test]
fn whoever_asks_a_game_that_will_not_run_again_is_told_why() {
    let mut world = World::new();
    let (member, source) = (Arc::clone(&world.members[&ONE]), Handle(5));
    let mut answers = Vec::new();
    for session in 1..=2 {
        let (request, answer) = Request::new(session, source);
        let message = Message { request: Some(request), ..Message::new(source, Subject::Plain, Bytes::new()) };
        world.services.deliver(member.handle, message).unwrap();
        answers.push(answer);
    }
    world.send(ONE, "a");
    // One of them is out of the mailbox already.
    let (game, incoming) = world.inboxes.next(|_| true).unwrap();
    world.inboxes.put_back(game, incoming);
    world.inboxes.close(ONE, &ServiceError::Failed("it is disabled".to_owned()));
    for mut answer in answers {
        assert!(matches!(answer.try_recv().unwrap(), Err(ServiceError::Failed(why)) if why == "it is disabled"));
    }
    assert_eq!(world.services.snapshot().dead_letters, 1);
    assert!(world.services.member(member.handle).is_none() && world.services.query("game 1").is_none());
    world.send(OTHER, "x");
    assert_eq!(world.all(), ["2 x"]);
}

#[test]
fn an_answer_for_a_game_that_will_not_run_again_is_a_dead_letter() {
    let mut world = World::new();
    world.answer(ONE, 1);
    assert!(world.inboxes.has_next(|_| true), "it has come in");
    world.inboxes.close(ONE, &ServiceError::Failed("it is disabled".to_owned()));
    assert_eq!(world.services.snapshot().dead_letters, 1);
    world.answer(ONE, 2);
    let none = Err(ServiceError::Gone("nobody".to_owned()));
    world.inboxes.replies.push(Reply { game: ONE, session: 3, answer: none });
    assert!(world.all().is_empty());
    let letters = world.services.dead_letters();
    assert_eq!((letters.len(), letters[1].to), (2, world.members[&ONE].handle.0), "that there is none is no answer");
}
