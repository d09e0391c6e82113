//! Services whose code is swapped: what they keep, what refuses new code, and what brings the old back.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use wheelhouse::guest::settings::RestartPolicy;
use wheelhouse::guest::{CallError, Returned, SwapOptions};
use wheelhouse::service::{
    Handle, Message, ServiceCode, ServiceError, ServiceOptions, ServiceSwap, ServiceSwapError, Subject,
};

use crate::actors::{Actors, few};

const PATIENCE: Duration = Duration::from_secs(60);

/// A service that counts what it is sent; see the guest `changeling` for its marks.
const COUNTER: &str = "changeling-service";

/// Services that are hurried soon.
fn swapping(options: SwapOptions, guests: &[&'static str]) -> Actors {
    let actors = Actors::with(ServiceOptions { deadline_ms: 1000, ..few() }, guests, RestartPolicy::Never);
    actors.services.set_swaps(options, Box::new(|_, _| {}));
    actors
}

fn of(guests: &[&'static str]) -> Actors {
    swapping(SwapOptions { drain_ms: 200, ..SwapOptions::default() }, guests)
}

/// Another version of the counter: its file with another mark.
fn version(actors: &Actors, mark: &str) -> ServiceCode {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/guests/build/changeling-service.wasm");
    let (mut bytes, prefix) = (std::fs::read(file).unwrap(), b"changeling=");
    let at = bytes.windows(prefix.len()).position(|window| window == prefix).unwrap() + prefix.len();
    let marked = format!("{mark:53}");
    bytes[at..at + marked.len()].copy_from_slice(marked.as_bytes());
    actors.code_of(COUNTER, &bytes)
}

fn swap(actors: &Actors, guest: &str, code: ServiceCode, generation: u64) -> Result<ServiceSwap, ServiceSwapError> {
    actors.runtime.block_on(async {
        tokio::time::timeout(PATIENCE, actors.services.swap(guest, code, generation)).await.expect("it ends")
    })
}

fn moved(count: usize) -> ServiceSwap {
    ServiceSwap { moved: count, ..ServiceSwap::default() }
}

/// Waits for what `look` is to come to say.
fn until(what: &str, look: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !look() {
        assert!(Instant::now() < end, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until a service has taken up a message beside so many, or handled it.
async fn until_taken_up(actors: &Actors, service: Handle, before: u64) {
    let is_taken_up = || {
        let list = actors.services.list();
        let entry = list.iter().find(|entry| entry.handle == service.0).unwrap();
        entry.in_hand > 0 || entry.messages > before
    };
    while !is_taken_up() {
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_service_keeps_its_handle_its_name_and_its_state() {
    let actors = of(&[COUNTER]);
    let counter = actors.services.launch_named("counter", COUNTER, Bytes::new()).unwrap();
    assert_eq!(actors.told(counter, "one"), "1");
    assert_eq!(swap(&actors, COUNTER, version(&actors, "2"), 2).unwrap(), moved(1));
    assert_eq!(actors.services.query("counter"), Some(counter));
    assert_eq!(actors.told(counter, "two"), "2");
    assert_eq!(actors.counters[COUNTER].generation(), 2);
    let snapshot = actors.services.snapshot();
    assert_eq!((snapshot.launched, snapshot.running), (1, 1), "it is the same service");
}

#[test]
fn new_code_that_refuses_traps_or_hangs_leaves_the_old_one_running() {
    let actors = of(&[COUNTER]);
    let counter = actors.launch(COUNTER);
    assert_eq!(actors.told(counter, "one"), "1");
    for (generation, harm) in [(2, "refuse"), (3, "trap"), (4, "loop")] {
        let refused = swap(&actors, COUNTER, version(&actors, &format!("2 restore:{harm}")), generation).unwrap_err();
        let ServiceSwapError::Trial(error) = refused else { panic!("{harm}: {refused:?}") };
        let is_told = match &error {
            CallError::Refused(reason) => harm == "refuse" && reason.contains("does not fit"),
            CallError::Trapped { .. } => harm == "trap",
            CallError::Deadline { .. } => harm == "loop",
            _ => false,
        };
        assert!(is_told, "{harm}: {error:?}");
        assert_eq!(actors.counters[COUNTER].generation(), 1);
    }
    assert_eq!(actors.told(counter, "two"), "2");
    let later = actors.launch(COUNTER);
    assert_eq!(actors.told(later, "one"), "1", "the old code is launched");
}

/// Sends numbers from many threads while the code is swapped again and again.
fn expect_order_across_swaps(guest: &'static str) {
    let actors = Arc::new(of(&[guest]));
    let counter = actors.launch(guest);
    let is_over = Arc::new(AtomicBool::new(false));
    let sent = Arc::new(AtomicU32::new(0));
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let (actors, is_over, sent) = (Arc::clone(&actors), Arc::clone(&is_over), Arc::clone(&sent));
            std::thread::spawn(move || {
                let source = Handle(1000 + number);
                let mut sequence = 0u64;
                while !is_over.load(Ordering::Relaxed) {
                    let message =
                        || Message::new(source, Subject::Plain, Bytes::copy_from_slice(&sequence.to_le_bytes()));
                    match actors.services.deliver(counter, message()) {
                        Ok(()) => sequence += 1,
                        Err(ServiceError::MailboxFull(_)) => std::thread::yield_now(),
                        Err(error) => panic!("{error:?}"),
                    }
                    if sequence.is_multiple_of(64) {
                        assert_eq!(actors.told(counter, "ping"), "pong");
                    }
                }
                sent.fetch_add(sequence as u32, Ordering::Relaxed);
            })
        })
        .collect();
    for generation in 2..52 {
        assert_eq!(swap(&actors, guest, actors.code(guest), generation).unwrap(), moved(1));
    }
    is_over.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent > 0);
    assert_eq!(actors.told(counter, "report"), format!("counted {sent} out-of-order 0 overlaps 0"));
}

#[test]
fn nothing_is_lost_doubled_or_out_of_order_while_a_service_is_swapped_fifty_times() {
    expect_order_across_swaps("counter");
}

#[test]
fn nor_while_an_async_service_is() {
    expect_order_across_swaps("counter-async");
}

#[test]
fn a_deferred_request_is_answered_by_the_new_code_and_is_nothing_in_hand() {
    let actors = of(&["hostile-service"]);
    let service = actors.launch("hostile-service");
    let asking =
        actors.services.request(actors.asker.handle, service, Subject::Plain, "defer-for-ever".into()).unwrap();
    // Behind it, so that it is deferred when this is answered.
    actors.runtime.block_on(actors.asking(service, "echo ready", PATIENCE)).unwrap();
    assert_eq!(swap(&actors, "hostile-service", actors.code("hostile-service"), 2).unwrap(), moved(1));
    assert_eq!(actors.told(service, "answer-deferred"), "true");
    assert_eq!(actors.runtime.block_on(asking).unwrap().unwrap(), Bytes::from("at last"));
}

#[test]
fn timeouts_and_subscriptions_go_on_and_each_is_heard_once() {
    let actors = of(&["hostile-service"]);
    let service = actors.launch("hostile-service");
    actors.told(service, "timeout 300");
    actors.told(service, "subscribe news");
    for generation in 2..5 {
        assert_eq!(swap(&actors, "hostile-service", actors.code("hostile-service"), generation).unwrap(), moved(1));
    }
    let speaker = actors.launch("hostile-service");
    actors.told(speaker, "publish news hello");
    until("both are heard", || {
        let heard = actors.told(service, "heard");
        heard.contains("Published") && heard.contains("Timeout")
    });
    assert_eq!(actors.told(service, "heard").lines().count(), 2);
    assert!(actors.told(service, "timeouts").starts_with("65536 then"), "the one that rang is over");
    assert_eq!(swap(&actors, "hostile-service", actors.code("hostile-service"), 5).unwrap(), moved(2));
    assert!(actors.told(service, "timeouts").starts_with("0 then"), "those are still set");
}

#[test]
fn sockets_stay_open() {
    let actors = of(&["hostile-service"]);
    let service = actors.launch("hostile-service");
    let peer = TcpListener::bind("127.0.0.1:0").unwrap();
    let opened = actors.told(service, format!("connect 127.0.0.1 {}", peer.local_addr().unwrap().port()));
    let socket: u64 = opened.trim_start_matches("Ok(").trim_end_matches(')').parse().unwrap();
    let (mut stream, _) = peer.accept().unwrap();
    assert_eq!(swap(&actors, "hostile-service", actors.code("hostile-service"), 2).unwrap(), moved(1));
    assert_eq!(actors.told(service, format!("socket-send {socket} hello")), "Ok(())");
    let mut read = [0; 5];
    stream.read_exact(&mut read).unwrap();
    assert_eq!(&read, b"hello");
    stream.write_all(b"and you").unwrap();
    until("the answer is heard", || actors.told(service, "heard").contains("and you"));
}

#[test]
fn what_is_in_hand_ends_on_the_old_code_and_a_wait_that_is_too_long_is_answered_with_an_error() {
    for guest in ["relay", "relay-async"] {
        let actors = of(&[guest, "hostile-service"]);
        let (relay, silent) = (actors.launch(guest), actors.launch("hostile-service"));
        for (before, order, is_answered) in
            [(0, "sleep 100 echo done".to_owned(), true), (1, format!("call {silent} sleep 600000"), false)]
        {
            let (answer, swapped) = actors.runtime.block_on(async {
                let asking = actors.asking(relay, order, PATIENCE);
                let swapping = async {
                    until_taken_up(&actors, relay, before).await;
                    actors.services.swap(guest, actors.code(guest), 2).await
                };
                tokio::join!(asking, swapping)
            });
            assert_eq!(swapped.unwrap(), moved(1), "{guest}");
            match answer {
                Ok(answer) => assert!(is_answered && answer == "done", "{guest}"),
                Err(ServiceError::Refused(reason)) => {
                    assert!(!is_answered && reason.contains("is being swapped"), "{guest}: {reason}");
                }
                Err(error) => panic!("{guest}: {error:?}"),
            }
        }
        assert_eq!(actors.told(relay, "echo here"), "here", "{guest}");
    }
}

#[test]
fn a_handler_that_tries_again_and_again_is_given_up_and_does_not_end_its_service() {
    let actors = of(&["relay-async"]);
    let relay = actors.launch("relay-async");
    let (answer, swapped) = actors.runtime.block_on(async {
        let asking = actors.asking(relay, "naps 1000000 600000 never", PATIENCE);
        let swapping = async {
            until_taken_up(&actors, relay, 0).await;
            actors.services.swap("relay-async", actors.code("relay-async"), 2).await
        };
        tokio::join!(asking, swapping)
    });
    assert_eq!(swapped.unwrap(), moved(1));
    assert!(matches!(&answer, Err(ServiceError::Failed(why)) if why.contains("was swapped")), "{answer:?}");
    assert_eq!(actors.told(relay, "echo here"), "here");
    assert_eq!(actors.services.snapshot().failed, 0);
}

#[test]
fn a_plain_one_that_does_stays_on_the_old_code_which_is_launched_as_before() {
    let actors = of(&["relay"]);
    let relay = actors.launch("relay");
    let refused = actors.runtime.block_on(async {
        let asking = actors.asking(relay, "naps 1000000 600000 never", PATIENCE);
        tokio::pin!(asking);
        let swapping = async {
            until_taken_up(&actors, relay, 0).await;
            actors.services.swap("relay", actors.code("relay"), 2).await
        };
        tokio::select! {
            answer = asking => panic!("{answer:?}"),
            swapped = swapping => swapped.unwrap_err(),
        }
    });
    assert!(refused.to_string().contains("did not come to the end"), "{refused}");
    assert_eq!(actors.counters["relay"].generation(), 1);
    assert_eq!(actors.services.snapshot().running, 1);
}

#[test]
fn one_that_ends_meanwhile_keeps_nobody_waiting() {
    let actors = swapping(SwapOptions { drain_ms: 600_000, ..SwapOptions::default() }, &["relay"]);
    let relay = actors.launch("relay");
    actors
        .services
        .deliver(relay, Message::new(actors.asker.handle, Subject::Plain, "sleep 600000 echo".into()))
        .unwrap();
    until("it sleeps", || actors.services.member(relay).unwrap().mailbox.lengths().0 == 0);
    let swapped = actors.runtime.block_on(async {
        let killing = async {
            // Past the half second for which it is asked for its state.
            tokio::time::sleep(Duration::from_millis(700)).await;
            assert!(actors.services.kill(relay));
        };
        let swap = tokio::time::timeout(PATIENCE, actors.services.swap("relay", actors.code("relay"), 2));
        tokio::join!(swap, killing).0
    });
    assert_eq!(swapped.expect("it does not wait for the drain").unwrap(), moved(0));
}

#[test]
fn a_service_that_fails_on_new_code_is_back_as_it_was_and_the_messages_behind_are_handled_once() {
    let actors = of(&[COUNTER]);
    let counter = actors.services.launch_named("counter", COUNTER, Bytes::new()).unwrap();
    assert_eq!(actors.told(counter, "one"), "1");
    assert_eq!(swap(&actors, COUNTER, version(&actors, "2 third"), 2).unwrap(), moved(1));
    for _ in 0..10 {
        let message = Message::new(actors.asker.handle, Subject::Plain, "more".into());
        actors.services.deliver(counter, message).unwrap();
    }
    // Of the ten, two are forgotten with the new code, and the third was what it failed on.
    assert_eq!(actors.told(counter, "and one"), "9");
    assert_eq!(actors.services.query("counter"), Some(counter));
    assert_eq!(actors.counters[COUNTER].generation(), 2, "once is not too often");
}

#[test]
fn whoever_asked_what_it_failed_on_is_told_and_a_guest_that_fails_too_often_is_back_on_the_old_code() {
    let actors = Actors::with(ServiceOptions { deadline_ms: 1000, ..few() }, &[COUNTER], RestartPolicy::Never);
    let told: Arc<Mutex<Vec<Returned>>> = Arc::default();
    let tell = Arc::clone(&told);
    let options = SwapOptions { max_failures: 2, ..SwapOptions::default() };
    actors.services.set_swaps(options, Box::new(move |_, returned| tell.lock().unwrap().push(returned)));
    let counters: Vec<Handle> = (0..4).map(|_| actors.launch(COUNTER)).collect();
    counters.iter().for_each(|counter| assert_eq!(actors.told(*counter, "one"), "1"));
    assert_eq!(swap(&actors, COUNTER, version(&actors, "2 third"), 2).unwrap(), moved(4));
    for counter in &counters[..2] {
        assert_eq!(actors.told(*counter, "two"), "2");
        assert_eq!(actors.told(*counter, "three"), "3");
        let failed = actors.ask(*counter, "four").unwrap_err();
        assert!(matches!(&failed, ServiceError::Failed(why) if why.contains("wasm trap")), "{failed:?}");
        assert_eq!(actors.told(*counter, "two again"), "2");
    }
    until("it is told", || !told.lock().unwrap().is_empty());
    let returned = told.lock().unwrap();
    assert_eq!((returned.len(), returned[0].from, returned[0].to), (1, 2, 1));
    assert_eq!(actors.counters[COUNTER].generation(), 1);
    for counter in &counters[2..] {
        for count in 2..8 {
            assert_eq!(actors.told(*counter, "more"), count.to_string(), "it does not fail a third time");
        }
    }
}

#[test]
fn code_that_comes_back_in_its_successors_probation_need_not_understand_what_that_saved() {
    let actors = of(&[COUNTER]);
    let counter = actors.launch(COUNTER);
    assert_eq!(actors.told(counter, "one"), "1");
    assert_eq!(swap(&actors, COUNTER, version(&actors, "2"), 2).unwrap(), moved(1));
    // A relay saves nothing that a counter could read.
    assert_eq!(swap(&actors, COUNTER, actors.code("relay"), 3).unwrap(), moved(1));
    assert_eq!(actors.told(counter, "echo I am a relay"), "I am a relay");
    let other = swap(&actors, COUNTER, version(&actors, "4"), 4);
    assert!(matches!(other, Err(ServiceSwapError::Trial(CallError::Refused(_)))), "{other:?}");
    assert_eq!(swap(&actors, COUNTER, version(&actors, "2"), 2).unwrap(), moved(1));
    assert_eq!(actors.told(counter, "two"), "2");
}

#[test]
fn a_thousand_services_move_and_none_of_them_is_away_for_long() {
    let options = ServiceOptions { max_running: 1000, ..few() };
    let actors = Actors::with(options, &["counter"], RestartPolicy::Never);
    let services: Vec<Handle> = (0..1000).map(|_| actors.launch("counter")).collect();
    services.iter().for_each(|service| assert_eq!(actors.told(*service, "ping"), "pong"));
    let (swapped, longest) = actors.runtime.block_on(async {
        let is_over = AtomicBool::new(false);
        let asking = async {
            let mut longest = Duration::ZERO;
            for service in services.iter().cycle() {
                let began = Instant::now();
                assert_eq!(actors.asking(*service, "ping", PATIENCE).await.unwrap(), "pong");
                longest = longest.max(began.elapsed());
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
            longest
        };
        let swapping = async {
            let swapped = actors.services.swap("counter", actors.code("counter"), 2).await;
            is_over.store(true, Ordering::Relaxed);
            swapped
        };
        tokio::join!(swapping, asking)
    });
    assert_eq!(swapped.unwrap(), moved(1000));
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    println!("the longest answer of 1,000 services that were swapped took {longest:?}");
}
