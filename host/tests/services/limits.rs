//! What one service may do to others, and to itself.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use wheelhouse::guest::settings::RestartPolicy;
use wheelhouse::service::{Message, ServiceError, ServiceOptions, Subject};

use crate::actors::{Actors, few};

const PATIENCE: Duration = Duration::from_secs(60);

fn with(options: ServiceOptions, guests: &[&'static str]) -> Actors {
    Actors::with(options, guests, RestartPolicy::Never)
}

#[test]
fn a_mailbox_that_is_full_refuses_the_next_message_and_keeps_those_it_has() {
    let actors = with(ServiceOptions { mailbox_capacity: 100, ..few() }, &["hostile-service"]);
    let service = actors.launch("hostile-service");
    actors.told(service, "echo ready");
    actors.runtime.block_on(async {
        let holding = actors.asking(service, "sleep 1000", PATIENCE);
        let flood = async {
            while actors.services.list().iter().any(|entry| entry.handle == service.0 && entry.mailbox > 0) {
                tokio::task::yield_now().await;
            }
            let mut sent = 0;
            let error = loop {
                let message = Message::new(actors.asker.handle, Subject::Timeout(sent), Bytes::new());
                match actors.services.deliver(service, message) {
                    Ok(()) => sent += 1,
                    Err(error) => break error,
                }
            };
            assert!(matches!(error, ServiceError::MailboxFull(100)), "{error:?}");
            assert!((99..=100).contains(&sent), "{sent}");
            assert!(matches!(actors.asking(service, "heard", PATIENCE).await, Err(ServiceError::MailboxFull(100))));
            sent
        };
        let (held, sent) = tokio::join!(holding, flood);
        held.unwrap();
        let heard = loop {
            match actors.asking(service, "heard", PATIENCE).await {
                // It has answered, and not looked into its mailbox yet.
                Err(ServiceError::MailboxFull(_)) => tokio::task::yield_now().await,
                heard => break heard.unwrap(),
            }
        };
        assert_eq!(heard.iter().filter(|byte| **byte == b'\n').count() + 1, sent as usize);
    });
    assert_eq!(actors.services.snapshot().mailbox_max, 100);
}

#[test]
fn a_request_is_answered_once_however_often_it_is_replied_to() {
    let actors = Actors::of(&["hostile-service"]);
    let service = actors.launch("hostile-service");
    assert_eq!(actors.told(service, "answer-twice"), "first");
    assert!(actors.told(service, "heard").contains("false"));
}

#[test]
fn a_session_that_another_service_has_in_hand_cannot_be_answered_or_passed_on() {
    let actors = Actors::of(&["hostile-service", "relay"]);
    let (victim, forger, receiver) =
        (actors.launch("hostile-service"), actors.launch("hostile-service"), actors.launch("relay"));
    actors.runtime.block_on(async {
        let asked = actors.services.request(actors.asker.handle, victim, Subject::Plain, Bytes::from("defer-for-ever"));
        let mut answer = asked.unwrap();
        // Sessions are counted, so that all of them can be guessed.
        for session in 1..50 {
            actors.asking(forger, format!("forge {session}"), PATIENCE).await.unwrap();
            let order = format!("forge-forward {receiver} {} {session}", actors.asker.handle);
            let _ = actors.asking(forger, order, PATIENCE).await;
        }
        assert!(answer.try_recv().is_err(), "nobody has answered in the victim's place");
        actors.asking(victim, "answer-deferred", PATIENCE).await.unwrap();
        answer.await.unwrap().unwrap();
    });
}

#[test]
fn a_service_that_computes_without_end_is_stopped_and_others_run_meanwhile() {
    let actors = with(ServiceOptions { deadline_ms: 300, ..few() }, &["hostile-service", "counter"]);
    let counter = actors.launch("counter");
    actors.told(counter, "ping");
    let endless: Vec<_> = (0..8).map(|_| actors.launch("hostile-service")).collect();
    actors.runtime.block_on(async {
        let spinning = join_all(endless.iter().map(|service| actors.asking(*service, "loop", PATIENCE)));
        let pings = async {
            let mut answered = 0;
            while actors.services.snapshot().running > 1 {
                actors.asking(counter, "ping", PATIENCE).await.unwrap();
                answered += 1;
            }
            answered
        };
        let (stopped, answered) = tokio::join!(spinning, pings);
        for error in stopped.into_iter().map(Result::unwrap_err) {
            assert!(matches!(&error, ServiceError::Failed(text) if text.contains("deadline")), "{error:?}");
        }
        // Eight share two threads with it for at least 1.2 s, in slices of a millisecond.
        assert!(answered > 20, "only {answered} answers while others computed");
    });
}

#[test]
fn a_service_that_never_returns_from_init_is_stopped() {
    let actors = with(ServiceOptions { deadline_ms: 50, ..few() }, &["hostile-service"]);
    let service = actors.services.launch("hostile-service", Bytes::from("loop")).unwrap();
    let error = actors.ask(service, "echo hello").unwrap_err();
    assert!(matches!(&error, ServiceError::Failed(text) if text.contains("deadline")), "{error:?}");
    actors.until_running(0);
}

#[test]
fn no_more_services_run_than_may_and_each_that_ends_makes_room() {
    let actors = with(ServiceOptions { max_running: 5, ..few() }, &["hostile-service", "counter"]);
    let service = actors.launch("hostile-service");
    let answer = actors.told(service, "launch-many counter");
    assert!(answer.starts_with("4 then"), "{answer}");
    assert!(matches!(actors.services.launch("counter", Bytes::new()), Err(ServiceError::TooMany(5))));
    let counters: Vec<_> = actors.services.list().into_iter().filter(|entry| entry.guest == "counter").collect();
    counters.iter().for_each(|entry| assert!(actors.services.kill(wheelhouse::service::Handle(entry.handle))));
    actors.until_running(1);
    assert!(actors.told(service, "launch-many counter").starts_with("4 then"));
}

#[test]
fn what_is_too_large_is_an_error_and_what_is_far_too_large_ends_the_service() {
    let actors = Actors::of(&["hostile-service", "counter"]);
    let (service, counter) = (actors.launch("hostile-service"), actors.launch("counter"));
    actors.told(service, format!("big-send {counter} 1024"));
    assert!(actors.told(service, format!("big-send {counter} 1025")).contains("TooLarge(1048576)"));
    let error = actors.ask(service, "big-answer 1025").unwrap_err();
    assert!(matches!(&error, ServiceError::Failed(text) if text.contains("guest.max_payload_kb")), "{error:?}");
    assert_eq!(actors.told(service, "echo alive"), "alive");
    let error = actors.ask(service, format!("big-send {counter} 8192")).unwrap_err();
    assert!(matches!(error, ServiceError::Failed(_)), "{error:?}");
}

#[test]
fn a_message_cannot_be_passed_on_as_something_else() {
    let actors = Actors::of(&["hostile-service", "relay"]);
    let (forger, receiver) = (actors.launch("hostile-service"), actors.launch("relay"));
    assert!(actors.told(forger, format!("forge-subject {receiver} 1")).contains("NotYours"));
}

#[test]
fn many_messages_that_each_keep_to_their_time_are_no_overrun_together() {
    let actors = with(ServiceOptions { deadline_ms: 300, ..few() }, &["hostile-service"]);
    let service = actors.launch("hostile-service");
    let send = |text: &'static str| {
        let message = Message::new(actors.asker.handle, Subject::Plain, Bytes::from(text));
        actors.services.deliver(service, message).unwrap();
    };
    // Cheap ones first, so that many are handed over in a call.
    (0..5000).for_each(|_| send("echo x"));
    (0..200).for_each(|_| send("compute 10"));
    assert_eq!(actors.told(service, "echo alive"), "alive");
    assert_eq!(actors.services.snapshot().messages, 5201);
}

#[test]
fn an_async_service_that_computes_without_end_is_stopped_however_many_messages_come_meanwhile() {
    let options = ServiceOptions { deadline_ms: 200, ..few() };
    let actors = with(options, &["relay-async"]);
    let relay = actors.launch("relay-async");
    actors.runtime.block_on(async {
        let spinning = actors.asking(relay, "spin", PATIENCE);
        let others = async {
            let mut asked = 0;
            while actors.services.snapshot().running > 0 {
                let asking = actors.asking(relay, "naps 2 1 done", Duration::from_millis(20));
                let _ = asking.await;
                asked += 1;
            }
            asked
        };
        let (spun, asked) = tokio::join!(spinning, others);
        assert!(matches!(&spun, Err(ServiceError::Failed(text)) if text.contains("deadline")), "{spun:?}");
        assert!(asked > 1);
    });
}
