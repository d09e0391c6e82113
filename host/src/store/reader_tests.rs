use std::path::Path;

use super::*;
use crate::sim::wait::block_on;
use crate::store::faulty::PATIENCE;
use crate::store::{Batch, EventQuery, SqliteStore};

fn start(directory: &Path) -> Reader {
    Reader::start(Arc::new(SqliteStore::open(directory).unwrap())).unwrap()
}

fn list(reader: &mut dyn StoreReader) -> usize {
    reader.events(&EventQuery { limit: 10, ..EventQuery::default() }).unwrap().len()
}

#[test]
fn a_job_is_answered_whichever_way_it_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    let reader = start(directory.path());
    let (sender, posted) = mpsc::channel();
    reader.post(move |reader| sender.send(list(reader)).unwrap());
    assert_eq!(posted.recv_timeout(PATIENCE), Ok(0));
    assert_eq!(reader.ask_within(PATIENCE, list).unwrap(), 0);
    assert_eq!(block_on(reader.ask(list)).unwrap(), 0);
    assert_eq!(block_on(reader.ask_aside(list)).unwrap(), 0);
    reader.stop();
}

#[test]
fn jobs_run_in_the_order_in_which_they_were_posted() {
    let directory = tempfile::tempdir().unwrap();
    let reader = start(directory.path());
    let (sender, ran) = mpsc::channel();
    for number in 0..50 {
        let sender = sender.clone();
        reader.post(move |_| sender.send(number).unwrap());
    }
    drop(sender);
    assert_eq!(ran.iter().collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
}

#[test]
fn who_asks_waits_no_longer_than_it_says_and_a_long_job_aside_holds_up_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let reader = start(directory.path());
    let (let_go, held) = mpsc::channel::<()>();
    reader.post(move |_| {
        let _ = held.recv();
    });
    let late = reader.ask_within(Duration::from_millis(1), list).unwrap_err();
    assert_eq!(late.to_string(), "the database did not answer within 1 ms; try again");
    // The thread is still held, and a job aside is done all the same.
    assert_eq!(block_on(reader.ask_aside(list)).unwrap(), 0);
    let_go.send(()).unwrap();
    assert_eq!(reader.ask_within(PATIENCE, list).unwrap(), 0);
}

#[test]
fn a_job_that_panics_costs_nobody_else_the_reader() {
    let directory = tempfile::tempdir().unwrap();
    let reader = start(directory.path());
    assert!(matches!(reader.ask_within(PATIENCE, |_| panic!("as the test wants it")), Err::<(), _>(AskError::Closed)));
    assert_eq!(reader.ask_within(PATIENCE, list).unwrap(), 0);
}

#[test]
fn after_a_stop_everybody_who_asks_is_told_so() {
    let directory = tempfile::tempdir().unwrap();
    let reader = start(directory.path());
    let (sender, posted) = mpsc::channel();
    reader.post(move |_| sender.send(()).unwrap());
    reader.stop();
    assert_eq!(posted.try_recv(), Ok(()), "what was posted before is run");
    assert!(matches!(reader.ask_within(PATIENCE, list), Err(AskError::Closed)));
    assert!(matches!(block_on(reader.ask(list)), Err(AskError::Closed)));
    assert!(matches!(block_on(reader.ask_aside(list)), Err(AskError::Closed)));
    reader.stop();
}

#[test]
fn a_backup_aside_is_a_job_like_any_other() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(directory.path()).unwrap());
    store.writer(vec![]).unwrap().commit(&[Batch { number: 1, next_sequence: Some(5), ..Batch::default() }]).unwrap();
    let reader = Reader::start(store).unwrap();
    let copy = directory.path().join("copy.db");
    let file = copy.clone();
    block_on(reader.ask_aside(move |reader| reader.backup(&file))).unwrap().unwrap();
    assert!(copy.exists());
    reader.stop();
}
