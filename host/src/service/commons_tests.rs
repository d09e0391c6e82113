//! What a member that has ended is given, how late answers and dead letters are counted, and who may wait for whom.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::service::dead_letters;
use crate::service::services::last_look;
use crate::service::{
    Handle, Handles, Member, MemberKind, Message, Request, ServiceError, ServiceOptions, Services, Subject,
};

/// Longer than a test takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn services(runtime: &tokio::runtime::Handle) -> Services {
    Services::new(ServiceOptions::default(), 1000, Vec::new(), Handles::beginning_at(1), runtime.clone())
}

fn ended(services: &Services) -> Arc<Member> {
    let member = services.add_member(MemberKind::Game, "rules");
    services.remove(&member, Default::default(), &ServiceError::Gone("it is disabled".to_owned()));
    services.free_names(member.handle);
    member
}

#[tokio::test]
async fn one_that_has_ended_is_given_nothing_that_nobody_would_take_away_again() {
    let services = services(&tokio::runtime::Handle::current());
    let gone = ended(&services).handle;
    assert!(matches!(services.subscribe(7, gone, "news"), Err(ServiceError::Gone(_))));
    assert!(matches!(services.register("rules", gone), Err(ServiceError::Gone(_))));
    assert!(!services.watch(gone, "map"));
    let other = services.add_member(MemberKind::Game, "other").handle;
    assert_eq!(services.publish(other, "news", &Bytes::new()).unwrap(), 0);
    services.put(other, "map", b"hills").unwrap();
    assert_eq!(services.snapshot().dead_letters, 0);
    assert!(services.subscribe(7, other, "news").is_ok() && services.watch(other, "map"));
    assert_eq!(services.publish(other, "news", &Bytes::new()).unwrap(), 1);
}

#[test]
fn an_answer_that_comes_while_its_time_ends_is_heard() {
    let (request, answer) = Request::new(1, Handle(5));
    assert!(request.answer(Ok(Bytes::from_static(b"just in time"))));
    assert_eq!(&last_look(answer).unwrap().unwrap()[..], b"just in time");
    let (request, answer) = Request::new(2, Handle(5));
    assert!(last_look(answer).is_none() && !request.answer(Ok(Bytes::new())));
}

#[tokio::test]
async fn a_late_answer_of_whomever_is_a_dead_letter() {
    let services = services(&tokio::runtime::Handle::current());
    let (asker, game) =
        (services.add_member(MemberKind::Game, "asker"), services.add_member(MemberKind::Game, "rules"));
    let (request, answer) = Request::new(1, asker.handle);
    services.answer(game.handle, request, Ok(Bytes::from_static(b"in time")));
    assert_eq!((&answer.await.unwrap().unwrap()[..], services.snapshot().dead_letters), (&b"in time"[..], 0));
    let (request, answer) = Request::new(2, asker.handle);
    drop(answer);
    services.answer(game.handle, request, Ok(Bytes::from_static(b"late")));
    let letter = services.dead_letters().pop().unwrap();
    assert_eq!((letter.source, letter.to, letter.bytes), (game.handle.0, asker.handle.0, 4));
}

#[tokio::test]
async fn what_is_sent_to_the_dead_letters_is_one_and_whoever_asks_there_is_refused() {
    let services = services(&tokio::runtime::Handle::current());
    dead_letters::start(&services);
    let sender = services.add_member(MemberKind::Game, "rules");
    let dead_letters = services.query("dead-letters").unwrap();
    let lost = Message::new(sender.handle, Subject::Plain, Bytes::from_static(b"lost"));
    services.deliver(dead_letters, lost).unwrap();
    let asked = services.call(&sender, dead_letters, Subject::Plain, Bytes::new(), PATIENCE).await;
    assert!(matches!(asked, Err(ServiceError::Refused(_))), "{asked:?}");
    let letters = services.dead_letters();
    assert_eq!(
        (letters.len(), letters[0].source, letters[0].to, letters[0].bytes),
        (2, sender.handle.0, dead_letters.0, 4)
    );
    assert!(!services.kill(dead_letters));
}

#[tokio::test]
async fn of_several_that_it_waits_for_a_member_names_the_one_that_it_asked_last() {
    let member = services(&tokio::runtime::Handle::current()).add_member(MemberKind::Game, "rules");
    let (first, second) = (member.waits_for(Handle(7)), member.waits_for(Handle(8)));
    drop(first);
    assert_eq!(member.waited_for(), Some(Handle(8)));
    drop(second);
    assert_eq!(member.waited_for(), None);
}
