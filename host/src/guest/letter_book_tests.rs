//! What a handler sees of services while its letters have yet to leave, and what of it stands.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::*;

const GAME: GuestId = GuestId(1);
const OTHER: GuestId = GuestId(2);

/// A part of the host.
const LOGGER: u64 = 3;

/// Services as a test wants them.
#[derive(Clone, Default)]
pub(in crate::guest) struct World {
    there: Arc<Mutex<HashSet<u64>>>,
    names: Arc<Mutex<HashMap<String, u64>>>,
    next: Arc<AtomicU64>,
}

impl ServiceView for World {
    fn is_there(&self, handle: u64) -> bool {
        self.there.lock().unwrap().contains(&handle)
    }
    fn is_service(&self, handle: u64) -> bool {
        self.is_there(handle)
    }
    fn check_receiver(&self, to: u64) -> Result<(), ServiceError> {
        if self.is_there(to) { Ok(()) } else { Err(ServiceError::Gone(String::new())) }
    }
    fn has_guest(&self, guest: &str) -> bool {
        guest == "chat"
    }
    fn query(&self, name: &str) -> Option<u64> {
        self.names.lock().unwrap().get(name).copied()
    }
    fn takes_connections(&self, handle: u64) -> bool {
        self.is_there(handle) && handle != LOGGER
    }
    fn check_publication(&self, _channel: &str, _bytes: usize) -> Result<(), ServiceError> {
        Ok(())
    }
    fn subscribers(&self, _channel: &str) -> u32 {
        0
    }
    fn blob(&self, name: &str) -> Option<SharedBlob> {
        (name == "map").then(|| (1, Arc::from(*b"map")))
    }
    fn check_blob(&self, _name: &str, bytes: usize) -> Result<(), SharedError> {
        if bytes > 10 { Err(SharedError::Full(10)) } else { Ok(()) }
    }
    fn max_shared_bytes(&self) -> usize {
        10
    }
    fn is_open(&self, connection: u64) -> bool {
        connection == 7
    }
    fn new_handle(&self) -> u64 {
        100 + self.next.fetch_add(1, Ordering::Relaxed)
    }
    fn new_session(&self) -> u64 {
        self.new_handle()
    }
    fn new_subscription(&self) -> u64 {
        self.new_handle()
    }
    fn max_waiting(&self) -> u32 {
        2
    }
}

/// A book over services of which one has the handle 5 and the name `hall`.
fn book() -> (LetterBook, World) {
    let world = World::default();
    world.there.lock().unwrap().insert(5);
    world.names.lock().unwrap().insert("hall".to_owned(), 5);
    (LetterBook::new(Box::new(world.clone())), world)
}

fn register(book: &mut LetterBook, name: &str, service: u64) -> Result<bool, ServiceError> {
    book.register(name, service).unwrap()
}

#[test]
fn a_service_is_there_from_its_launch_on_also_while_the_letter_waits() {
    let (mut book, world) = book();
    let handle = book.launch("chat").unwrap().unwrap();
    assert!(book.is_there(handle) && book.check_receiver(handle).unwrap().is_ok());
    book.commit();
    assert!(book.is_there(handle), "its letter may wait for the disk");
    world.there.lock().unwrap().insert(handle);
    book.delivered(&Letter::Launch { handle, guest: "chat".to_owned(), arguments: Bytes::new() });
    assert!(book.is_there(handle));
    world.there.lock().unwrap().clear();
    assert!(!book.is_there(handle), "from the delivery on it is as it really is");
}

#[test]
fn a_service_that_was_ended_is_not_seen_again_while_it_has_yet_to_leave() {
    let (mut book, world) = book();
    assert!(book.kill(5).unwrap());
    book.commit();
    book.delivered(&Letter::Kill(5));
    assert!(!book.is_there(5) && !book.kill(5).unwrap() && book.check_receiver(5).unwrap().is_err());
    assert!(!book.has_waiting(), "nobody need wait for that");
    world.there.lock().unwrap().remove(&5);
    book.delivered(&Letter::Kill(6));
    assert!(!book.is_there(5) && book.ending.is_empty(), "services themselves say so now");
}

#[test]
fn connections_are_bound_to_services_and_games_and_to_no_part_of_the_host() {
    let (mut book, world) = book();
    world.there.lock().unwrap().insert(LOGGER);
    let handle = book.launch("chat").unwrap().unwrap();
    assert!(book.takes_connections(5) && book.takes_connections(handle));
    assert!(book.is_there(LOGGER) && !book.takes_connections(LOGGER) && !book.takes_connections(99));
}

#[test]
fn what_only_a_game_that_is_disabled_knew_of_is_forgotten() {
    let (mut book, _world) = book();
    let subscription = book.subscribe(GAME, "news").unwrap().unwrap();
    assert!(book.append(GAME, "tiles", b"123456").unwrap().is_ok());
    assert!(book.launch("chat").unwrap().is_ok());
    book.commit();
    book.forget(GAME);
    book.request_is_over(GAME);
    assert!(book.own.is_empty() && !book.waiting.launched.is_empty(), "its letters stand");
    assert!(!book.unsubscribe(GAME, subscription));
}

#[test]
fn what_a_failed_handler_did_is_forgotten() {
    let (mut book, _world) = book();
    let handle = book.launch("chat").unwrap().unwrap();
    assert_eq!(register(&mut book, "inn", handle).ok(), Some(true));
    assert!(book.kill(5).unwrap() && !book.is_there(5) && !book.kill(5).unwrap());
    assert!(book.unregister("hall").unwrap());
    let subscription = book.subscribe(GAME, "news").unwrap().unwrap();
    book.watch(GAME, "map");
    book.rollback();
    assert!(!book.is_there(handle) && book.is_there(5));
    assert_eq!((book.query("inn").unwrap(), book.query("hall").unwrap()), (None, Some(5)));
    assert!(!book.unsubscribe(GAME, subscription) && !book.unwatch(GAME, "map"));
}

#[test]
fn a_name_has_one_holder_as_the_handler_sees_it() {
    let (mut book, _world) = book();
    let handle = book.launch("chat").unwrap().unwrap();
    assert!(matches!(register(&mut book, "hall", handle), Err(ServiceError::NameTaken)));
    assert_eq!(register(&mut book, "hall", 5).ok(), Some(false), "it has it already");
    assert_eq!(register(&mut book, "inn", handle).ok(), Some(true));
    assert!(matches!(register(&mut book, "inn", 5), Err(ServiceError::NameTaken)));
    assert!(matches!(register(&mut book, "new", 99), Err(ServiceError::Gone(_))));
    assert!(book.unregister("hall").unwrap() && !book.unregister("hall").unwrap());
    assert_eq!(register(&mut book, "hall", handle).ok(), Some(true));
    assert_eq!(book.query("hall").unwrap(), Some(handle));
}

#[test]
fn a_name_is_as_the_last_letter_about_it_says_until_all_are_delivered() {
    let (mut book, world) = book();
    book.unregister("hall").unwrap();
    book.commit();
    let handle = book.launch("chat").unwrap().unwrap();
    register(&mut book, "hall", handle).unwrap();
    book.commit();
    world.names.lock().unwrap().remove("hall");
    book.delivered(&Letter::Unregister("hall".to_owned()));
    assert_eq!(book.query("hall").unwrap(), Some(handle));
    book.delivered(&Letter::Register { name: "hall".to_owned(), service: handle });
    assert_eq!(book.query("hall").unwrap(), None, "as the test's services have it");
}

#[test]
fn a_game_has_only_so_many_requests_and_those_of_failed_handlers_do_not_count() {
    let (mut book, _world) = book();
    let begin = |book: &mut LetterBook, guest| book.begin_request(guest).unwrap();
    assert!(begin(&mut book, GAME).is_ok() && begin(&mut book, GAME).is_ok());
    assert!(matches!(begin(&mut book, GAME), Err(ServiceError::TooMany(2))));
    book.rollback();
    assert!(begin(&mut book, GAME).is_ok());
    book.commit();
    assert!(begin(&mut book, GAME).is_ok());
    book.commit();
    assert!(begin(&mut book, GAME).is_err());
    book.rollback();
    assert!(begin(&mut book, OTHER).is_ok());
    book.rollback();
    book.request_is_over(GAME);
    assert!(begin(&mut book, GAME).is_ok());
}

#[test]
fn subscriptions_and_names_that_are_watched_are_the_guests_own_and_bounded() {
    let (mut book, _world) = book();
    let first = book.subscribe(GAME, "news").unwrap().unwrap();
    assert!((1..MAX_SUBSCRIPTIONS).all(|_| book.subscribe(GAME, "news").unwrap().is_ok()));
    assert!(matches!(book.subscribe(GAME, "news").unwrap(), Err(ServiceError::TooMany(1024))));
    book.commit();
    assert!(!book.unsubscribe(OTHER, first));
    book.rollback();
    assert!(book.unsubscribe(GAME, first) && !book.unsubscribe(GAME, first));
    assert!((0..MAX_BLOB_NAMES).all(|name| book.watch(GAME, &name.to_string()) == Some(true)));
    assert_eq!((book.watch(GAME, "7"), book.watch(GAME, "one more")), (Some(false), None));
    assert!(book.unwatch(GAME, "7") && book.watch(GAME, "one more") == Some(true));
}

#[test]
fn blobs_are_removed_once_and_put_together_within_the_limit() {
    let (mut book, _world) = book();
    assert!(book.remove("map").unwrap() && !book.remove("map").unwrap());
    assert!(book.put("map", 3).unwrap().is_ok() && book.remove("map").unwrap());
    assert!(book.append(GAME, "tiles", b"123456").unwrap().is_ok());
    book.commit();
    assert!(matches!(book.append(GAME, "other", b"12345").unwrap(), Err(SharedError::Full(10))));
    assert!(book.append(GAME, "tiles", b"12345").unwrap().is_err());
    assert_eq!(book.finish(GAME, "tiles"), None, "an error has dropped it");
    book.rollback();
    assert_eq!(book.finish(OTHER, "tiles"), None);
    book.rollback();
    assert_eq!(book.finish(GAME, "tiles"), Some(Arc::from(*b"123456")));
}

#[test]
fn a_blob_is_there_for_the_next_handler_while_its_letter_waits() {
    let (mut book, _world) = book();
    let put = |name: &str| Letter::PutShared { name: name.to_owned(), blob: Arc::from(*b"tiles") };
    assert!(book.put("tiles", 3).unwrap().is_ok());
    book.commit();
    assert!(book.has_waiting() && book.remove("tiles").unwrap() && !book.remove("tiles").unwrap());
    book.commit();
    assert!(!book.remove("tiles").unwrap(), "its removal waits as well");
    book.delivered(&put("tiles"));
    assert!(!book.remove("tiles").unwrap());
    book.delivered(&Letter::RemoveShared("tiles".to_owned()));
    assert!(!book.has_waiting());
}

#[test]
fn a_game_that_puts_too_many_blobs_together_is_told_how_much_there_may_be() {
    let (mut book, _world) = book();
    assert!((0..MAX_BLOB_NAMES).all(|name| book.append(GAME, &name.to_string(), b"").unwrap().is_ok()));
    assert!(matches!(book.append(GAME, "one more", b"1").unwrap(), Err(SharedError::Full(10))));
}
