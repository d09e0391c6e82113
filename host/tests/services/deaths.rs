//! Whatever way a service ends, everybody who waits for it hears of it, and nothing of it is left.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::sync::Semaphore;
use wheelhouse::service::{GatePort, Handle, Member, Message, PacketRefused, Place, ServiceError, Subject};

use crate::actors::Actors;

/// Times that a service dies with callers waiting.
const DEATHS: usize = 1000;

/// Callers at each of them.
const CALLERS: usize = 300;

const PATIENCE: Duration = Duration::from_secs(60);

/// What a caller may hear, each naming the service.
fn names_it(error: &ServiceError, victim: Handle) -> bool {
    let (ServiceError::Failed(text) | ServiceError::Gone(text)) = error else { return false };
    text.contains(&victim.to_string())
}

#[test]
fn hundreds_who_wait_when_a_service_dies_all_hear_of_it_a_thousand_times_over() {
    let actors = Actors::of(&["hostile-service"]);
    let before = actors.services.snapshot();
    for death in 0..DEATHS {
        let victim = actors.launch("hostile-service");
        let answers = actors.runtime.block_on(async {
            let callers = (0..CALLERS).map(|caller| {
                // Some are answered first, some wait in its hands, and some in its mailbox.
                let order = match (caller, death % 3) {
                    (100, 0) => "unreachable",
                    (100, 1) => "exit",
                    (100, _) => "defer-and-die",
                    (caller, _) if caller % 3 == 0 => "defer-for-ever",
                    _ => "echo hello",
                };
                actors.asking(victim, order, PATIENCE)
            });
            join_all(callers).await
        });
        assert_eq!(answers.len(), CALLERS);
        for (caller, answer) in answers.into_iter().enumerate() {
            match answer {
                Ok(answer) => assert!(caller <= 100 && (&*answer == b"hello" || caller == 100), "{caller}: {answer:?}"),
                Err(error) => {
                    assert!(names_it(&error, victim), "{caller}: {error:?}");
                    assert!(caller >= 100 || caller % 3 == 0, "{caller} was to be answered: {error:?}");
                }
            }
        }
    }
    actors.until_running(before.running);
    let after = actors.services.snapshot();
    assert_eq!(after.launched - before.launched, DEATHS as u64);
    assert_eq!(after.failed + after.exited, DEATHS as u64);
    assert_eq!(actors.counters["hostile-service"].snapshot().memory_bytes, 0, "no instance is left");
    assert_eq!(actors.services.list().iter().filter(|entry| entry.guest == "hostile-service").count(), 0);
}

#[test]
fn one_that_is_killed_while_it_computes_or_waits_answers_everybody() {
    let actors = Actors::of(&["hostile-service"]);
    for order in ["loop", "sleep 60000", "defer-for-ever"] {
        let victim = actors.launch("hostile-service");
        actors.told(victim, "echo ready");
        let answers = actors.runtime.block_on(async {
            let callers = (0..50).map(|_| actors.asking(victim, order, PATIENCE));
            let killing = async {
                tokio::time::sleep(Duration::from_millis(5)).await;
                assert!(actors.services.kill(victim));
            };
            tokio::join!(join_all(callers), killing).0
        });
        for answer in answers {
            let error = answer.unwrap_err();
            assert!(matches!(error, ServiceError::Gone(_)) && names_it(&error, victim), "{order}: {error:?}");
        }
    }
    actors.until_running(0);
}

#[test]
fn what_is_sent_to_one_that_has_ended_is_an_error_and_a_dead_letter() {
    let actors = Actors::of(&["hostile-service"]);
    let victim = actors.launch("hostile-service");
    actors.services.register("victim", victim).unwrap();
    let _ = actors.ask(victim, "exit");
    actors.until_running(0);
    let letters = actors.services.snapshot().dead_letters;
    let sent = actors.services.deliver(victim, Message::new(actors.asker.handle, Subject::Plain, Bytes::new()));
    assert!(matches!(sent, Err(ServiceError::Gone(_))));
    assert!(matches!(actors.ask(victim, "echo hello"), Err(ServiceError::Gone(_))));
    assert_eq!(actors.services.snapshot().dead_letters, letters + 1, "whoever asks hears of it, whoever sends may not");
    assert_eq!(actors.services.query("victim"), None, "its name is free");
    assert!(!actors.services.kill(victim));
}

/// A gate with a fault: whoever comes to a packet of a client panics.
struct FaultyGate;

impl GatePort for FaultyGate {
    fn send(&self, _: u64, _: &[u8]) -> Result<(), PacketRefused> {
        Ok(())
    }
    fn close(&self, _: u64) -> bool {
        false
    }
    fn bind(&self, _: u64, _: &Arc<Member>) -> bool {
        false
    }
    fn give_back(&self, _: u64, _: Handle, _: &Bytes) -> bool {
        panic!("a fault of the host, made by a test")
    }
    fn member_ended(&self, _: Handle) {}
}

#[test]
fn a_fault_of_the_host_ends_the_service_that_it_happens_to_and_no_other() {
    let actors = Actors::of(&["hostile-service", "counter"]);
    actors.services.set_gate(Arc::new(FaultyGate));
    for guest in ["hostile-service", "counter"] {
        let service = actors.launch(guest);
        let place = Arc::new(Semaphore::new(1)).try_acquire_owned().ok();
        let packet = Message {
            place: place.map(|permit| Place { permit, is_passed_on: false }),
            ..Message::new(Handle::HOST, Subject::Packet(7), Bytes::new())
        };
        actors.services.deliver(service, packet).unwrap();
        let error = actors.ask(service, "echo hello").unwrap_err();
        assert!(matches!(error, ServiceError::Failed(_) | ServiceError::Gone(_)), "{error:?}");
        actors.until_running(0);
        assert!(actors.services.member(service).is_none());
    }
    let figures = actors.services.snapshot();
    assert_eq!((figures.launched, figures.exited, figures.failed), (2, 0, 2));
}
