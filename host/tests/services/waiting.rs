//! Services that wait: for their `init`, for each other, and for themselves.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use wheelhouse::guest::settings::RestartPolicy;
use wheelhouse::service::{Message, ServiceError, ServiceOptions, Subject};

use crate::actors::{Actors, few};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn messages_to_a_service_that_is_still_starting_wait_for_it() {
    let actors = Actors::of(&["counter"]);
    let answers = actors.runtime.block_on(async {
        // Launched and asked before its task can have run to its end.
        let launched: Vec<_> = (0..200).map(|_| actors.launch("counter")).collect();
        join_all(launched.into_iter().map(|counter| actors.asking(counter, "ping", PATIENCE))).await
    });
    assert!(answers.into_iter().all(|answer| answer.unwrap() == "pong"));
}

#[test]
fn messages_to_a_service_whose_init_fails_are_answered_with_the_reason() {
    let actors = Actors::of(&["hostile-service"]);
    for (arguments, reason) in [("refuse", "as it was told"), ("unreachable", "unreachable")] {
        let letters = actors.services.snapshot().dead_letters;
        let answers = actors.runtime.block_on(async {
            let service = actors.services.launch("hostile-service", Bytes::from(arguments)).unwrap();
            let one_way = Message::new(actors.asker.handle, Subject::Plain, Bytes::from("heard"));
            let _ = actors.services.deliver(service, one_way);
            join_all((0..100).map(|_| actors.asking(service, "echo hello", PATIENCE))).await
        });
        for answer in answers {
            let error = answer.unwrap_err();
            let is_told = matches!(&error, ServiceError::Failed(text) if text.contains(reason));
            // One that asks when it is over already finds nobody.
            assert!(is_told || matches!(error, ServiceError::Gone(_)), "{error:?}");
        }
        assert_eq!(actors.services.snapshot().dead_letters, letters + 1);
    }
    actors.until_running(0);
    assert_eq!(actors.services.snapshot().failed, 2);
}

#[test]
fn a_cycle_of_calls_is_answered_where_the_first_takes_messages_while_it_waits() {
    let actors = Actors::of(&["relay", "relay-async"]);
    let (a, b) = (actors.launch("relay-async"), actors.launch("relay"));
    assert_eq!(actors.told(a, format!("call {b} call {a} echo round")), "round");
}

#[test]
fn a_cycle_of_calls_among_those_that_do_not_ends_in_time_and_names_the_chain() {
    let actors = Actors::of(&["relay"]);
    let (a, b) = (actors.launch("relay"), actors.launch("relay"));
    let error = actors.ask(a, format!("within 500 {b} within 60000 {a} echo never")).unwrap_err();
    let ServiceError::Refused(text) = error else { panic!("{error:?}") };
    let chain = format!("relay ({a}) waits for relay ({b}), which waits for relay ({a})");
    assert!(text.contains(&chain), "{text}");
    // The first goes on, and answers the other's question late.
    assert_eq!(actors.told(a, "echo still here"), "still here");
    assert_eq!(actors.told(b, "echo here too"), "here too");
}

#[test]
fn whoever_waits_for_one_that_does_not_answer_is_told_for_whom() {
    let actors = Actors::of(&["relay"]);
    let (a, b) = (actors.launch("relay"), actors.launch("relay"));
    let order = format!("call {b} sleep 60000 echo late");
    let asking = actors.asking(a, order, Duration::from_millis(300));
    let error = actors.runtime.block_on(asking).unwrap_err();
    let ServiceError::TimedOut(text) = error else { panic!("{error:?}") };
    assert!(text.contains(&format!("waits for relay ({a}), which waits for relay ({b})")), "{text}");
}

#[test]
fn the_chain_goes_on_through_one_that_takes_messages_while_it_waits() {
    let actors = Actors::of(&["relay", "relay-async"]);
    let (a, b, c) = (actors.launch("relay"), actors.launch("relay-async"), actors.launch("relay"));
    let order = format!("call {b} call {c} sleep 60000 echo late");
    let asking = actors.asking(a, order, Duration::from_millis(300));
    let error = actors.runtime.block_on(asking).unwrap_err();
    let ServiceError::TimedOut(text) = error else { panic!("{error:?}") };
    let chain = format!("relay ({a}), which waits for relay-async ({b}), which waits for relay ({c})");
    assert!(text.contains(&chain), "{text}");
}

#[test]
fn a_message_that_is_forwarded_keeps_its_source_and_session() {
    let actors = Actors::of(&["relay"]);
    let (a, b, c) = (actors.launch("relay"), actors.launch("relay"), actors.launch("relay"));
    assert_eq!(actors.told(a, format!("forward {b} forward {c} echo far")), "far");
    let nobody = actors.launch("relay");
    assert!(actors.services.kill(nobody));
    actors.until_running(3);
    let error = actors.ask(a, format!("forward {nobody} echo far")).unwrap_err();
    assert!(matches!(error, ServiceError::Refused(_)), "who could not forward it answers itself: {error:?}");
}

#[test]
fn a_late_answer_is_a_dead_letter() {
    let actors = Actors::of(&["relay"]);
    let relay = actors.launch("relay");
    let asking = actors.asking(relay, "sleep 100 echo late", Duration::from_millis(1));
    assert!(matches!(actors.runtime.block_on(asking), Err(ServiceError::TimedOut(_))));
    let letters = actors.services.snapshot().dead_letters;
    assert_eq!(actors.told(relay, "echo next"), "next");
    assert_eq!(actors.services.snapshot().dead_letters, letters + 1);
}

#[test]
fn what_a_service_waits_does_not_count_as_time_that_it_computes() {
    for guest in ["relay", "relay-async"] {
        let options = ServiceOptions { deadline_ms: 100, ..few() };
        let actors = Actors::with(options, &[guest], RestartPolicy::Never);
        let relay = actors.launch(guest);
        assert_eq!(actors.told(relay, "naps 400 1 awake"), "awake", "{guest}");
    }
}

#[test]
fn more_handlers_may_wait_for_their_turn_than_a_service_may_have_in_hand() {
    let options = ServiceOptions { max_in_hand: 4, ..few() };
    let actors = Actors::with(options, &["relay-async"], RestartPolicy::Never);
    let relay = actors.launch("relay-async");
    let answers = actors
        .runtime
        .block_on(async { join_all((0..200).map(|_| actors.asking(relay, "naps 3 0 done", PATIENCE))).await });
    assert!(answers.into_iter().all(|answer| answer.unwrap() == "done"));
}

#[test]
fn a_service_that_ends_has_handled_first_what_it_has_in_hand() {
    for guest in ["relay", "relay-async"] {
        let actors = Actors::of(&[guest]);
        let relay = actors.launch(guest);
        let (leaving, after) = actors.runtime.block_on(async {
            let leaving = actors.asking(relay, "leave 100 good-bye", PATIENCE);
            tokio::join!(leaving, actors.asking(relay, "echo too late", PATIENCE))
        });
        assert_eq!(leaving.unwrap(), Bytes::from("good-bye"), "{guest}");
        assert!(matches!(after, Err(ServiceError::Gone(_))) || guest == "relay-async", "{guest}: {after:?}");
        actors.until_running(0);
    }
}
