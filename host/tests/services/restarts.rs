//! Services that are started again.

use bytes::Bytes;
use wheelhouse::guest::settings::RestartPolicy;
use wheelhouse::service::{Handle, ServiceError, ServiceOptions};

use crate::actors::Actors;

const SOON: ServiceOptions = ServiceOptions {
    threads: None,
    max_running: 100,
    mailbox_capacity: 1000,
    mailbox_mb: 16,
    deadline_ms: 5000,
    max_in_hand: 64,
    max_waiting: 100,
    call_limit_ms: 30_000,
    restart_pause_ms: 1,
    max_restarts: 3,
    max_shared_mb: 1,
};

/// Waits until the name belongs to another than `before`, who it is.
fn successor(actors: &Actors, name: &str, before: Handle) -> Handle {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        match actors.services.query(name) {
            Some(handle) if handle != before => return handle,
            _ => assert!(std::time::Instant::now() < until, "nobody came in its place"),
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_service_that_failed_is_started_again_with_its_names_and_arguments() {
    let actors = Actors::with(SOON, &["hostile-service"], RestartPolicy::OnFailure);
    let first = actors.launch("hostile-service");
    actors.services.register("victim", first).unwrap();
    let _ = actors.ask(first, "unreachable");
    let second = successor(&actors, "victim", first);
    assert_eq!(actors.told(second, "echo again"), "again");
    assert_eq!(actors.services.list().iter().find(|entry| entry.handle == second.0).unwrap().names, ["victim"]);
    let _ = actors.ask(second, "exit");
    actors.until_running(0);
    assert_eq!(actors.services.query("victim"), None, "one that exits is not");
}

#[test]
fn a_service_that_is_always_to_be_there_comes_again_after_it_exited_or_was_killed() {
    let actors = Actors::with(SOON, &["hostile-service"], RestartPolicy::Always);
    let first = actors.launch("hostile-service");
    actors.services.register("victim", first).unwrap();
    let _ = actors.ask(first, "exit");
    let second = successor(&actors, "victim", first);
    assert!(actors.services.kill(second));
    successor(&actors, "victim", second);
}

#[test]
fn one_that_fails_again_and_again_is_given_up() {
    let actors = Actors::with(SOON, &["hostile-service"], RestartPolicy::OnFailure);
    actors.services.launch("hostile-service", Bytes::from("unreachable")).unwrap();
    let launched = u64::from(SOON.max_restarts) + 1;
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while actors.services.snapshot().failed < launched {
        assert!(std::time::Instant::now() < until, "{:?}", actors.services.snapshot());
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    actors.until_running(0);
    assert_eq!(actors.services.snapshot().launched, launched);
}

#[test]
fn one_that_fails_in_its_init_has_the_name_that_it_was_launched_under_kept_for_the_next() {
    let slow = ServiceOptions { restart_pause_ms: 60_000, ..SOON };
    let actors = Actors::with(slow, &["hostile-service"], RestartPolicy::OnFailure);
    actors.services.launch_named("victim", "hostile-service", Bytes::from("unreachable")).unwrap();
    actors.until_running(0);
    assert_eq!(actors.services.snapshot().failed, 1);
    let taken = actors.services.register("victim", actors.asker.handle);
    assert!(matches!(taken, Err(ServiceError::NameTaken)), "{taken:?}");
    let refused = actors.services.launch_named("asker", "hostile-service", Bytes::new());
    assert!(matches!(refused, Err(ServiceError::NameTaken)), "{refused:?}");
    assert_eq!(actors.services.snapshot().launched, 1, "one without its name does not run either");
    assert!(actors.services.launch_named("other", "nobody", Bytes::new()).is_err());
    actors.services.register("other", actors.asker.handle).expect("who is not launched keeps no name");
}

#[test]
fn a_restart_that_finds_the_host_full_is_tried_again_until_there_is_room() {
    let one = ServiceOptions { max_running: 1, restart_pause_ms: 50, ..SOON };
    let actors = Actors::with(one, &["hostile-service"], RestartPolicy::OnFailure);
    let first = actors.services.launch_named("victim", "hostile-service", Bytes::new()).unwrap();
    let _ = actors.ask(first, "unreachable");
    actors.until_running(0);
    let filler = actors.launch("hostile-service");
    // Several restarts are in vain meanwhile.
    let until = std::time::Instant::now() + std::time::Duration::from_millis(250);
    while std::time::Instant::now() < until {
        let _ = actors.told(filler, "echo ready");
    }
    assert_eq!(actors.services.query("victim"), None);
    assert!(actors.services.kill(filler));
    assert_eq!(actors.told(successor(&actors, "victim", first), "echo again"), "again");
}

#[test]
fn nothing_is_started_again_once_the_host_stops() {
    let actors = Actors::with(SOON, &["hostile-service"], RestartPolicy::Always);
    let services: Vec<Handle> = (0..20).map(|_| actors.launch("hostile-service")).collect();
    services.iter().for_each(|service| drop(actors.told(*service, "echo ready")));
    actors.runtime.block_on(actors.services.stop(std::time::Duration::from_secs(60)));
    assert_eq!(actors.services.snapshot().running, 0);
    assert!(actors.services.launch("hostile-service", Bytes::new()).is_err());
}
