//! What holds under load: messages from one sender come in order, and no two calls are in one service at a time, unless it
//! lets another in while it waits.

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use wheelhouse::service::{Handle, Message, ServiceError, Subject};

use crate::actors::Actors;

/// What one sender sends: for each message how long its handler waits, where it can.
type Sender = Vec<Option<u32>>;

fn senders() -> impl Strategy<Value = Vec<Sender>> {
    let wait = prop_oneof![6 => Just(None), 2 => Just(Some(0)), 1 => (1u32..3).prop_map(Some)];
    proptest::collection::vec(proptest::collection::vec(wait, 0..120), 1..24)
}

/// Sends everything from threads of its own, with requests in between, and answers the report.
fn report_of(actors: &Arc<Actors>, guest: &str, senders: Vec<Sender>) -> String {
    let counter = actors.launch(guest);
    let threads: Vec<_> = senders
        .into_iter()
        .enumerate()
        .map(|(number, sender)| {
            let actors = Arc::clone(actors);
            std::thread::spawn(move || {
                for (sequence, wait) in sender.into_iter().enumerate() {
                    send(&actors, Handle(1000 + number as u64), counter, sequence as u64, wait);
                    if sequence % 7 == number % 7 {
                        assert_eq!(actors.told(counter, "ping"), "pong");
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    actors.told(counter, "report")
}

fn send(actors: &Actors, source: Handle, to: Handle, sequence: u64, wait: Option<u32>) {
    let mut payload = sequence.to_le_bytes().to_vec();
    payload.extend(wait.into_iter().flat_map(u32::to_le_bytes));
    let payload = Bytes::from(payload);
    loop {
        match actors.services.deliver(to, Message::new(source, Subject::Plain, payload.clone())) {
            Err(ServiceError::MailboxFull(_)) => std::thread::yield_now(),
            sent => return sent.unwrap(),
        }
    }
}

fn expect_order(guest: &'static str) {
    let actors = Arc::new(Actors::of(&[guest]));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(64));
    let ran = runner.run(&senders(), |senders| {
        let count: usize = senders.iter().map(Vec::len).sum();
        let expected = format!("counted {count} out-of-order 0 overlaps 0");
        // A concurrent service has answered before those are done that wait.
        prop_assert_eq!(settled_report(&actors, guest, senders, count), expected);
        Ok(())
    });
    ran.unwrap();
}

fn settled_report(actors: &Arc<Actors>, guest: &str, senders: Vec<Sender>, count: usize) -> String {
    let report = report_of(actors, guest, senders);
    assert!(report.starts_with(&format!("counted {count} ")), "{report}");
    report
}

#[test]
fn messages_from_each_of_many_senders_come_in_order_and_one_at_a_time() {
    expect_order("counter");
}

#[test]
fn an_async_service_takes_them_up_in_order_and_lets_others_in_only_while_it_waits() {
    expect_order("counter-async");
}

#[test]
fn a_service_sends_to_another_in_order_however_fast() {
    let actors = Actors::of(&["pinger", "counter"]);
    let (pinger, counter) = (actors.launch("pinger"), actors.launch("counter"));
    let answer = actors.told(pinger, format!("send 200000 {counter}"));
    assert!(answer.ends_with("counted 200000 out-of-order 0 overlaps 0"), "{answer}");
}
