use std::path::Path;
use std::sync::Condvar;

use super::*;
use crate::sim::wait::block_on;
use crate::store::faulty::PATIENCE;
use crate::store::{
    Batch, Claim, Event, EventQuery, Interrupter, ListedEvent, Loaded, Page, Place, SqliteStore, StoreWriter,
};
use crate::world::ThinkerId;

fn start(directory: &Path) -> Reader {
    Reader::start(Arc::new(SqliteStore::open(directory).unwrap())).unwrap()
}

fn list(reader: &mut dyn StoreReader) -> Result<usize, StoreError> {
    Ok(reader.events(&EventQuery { limit: 10, ..EventQuery::default() })?.events.len())
}

#[test]
fn a_job_is_answered_whichever_way_it_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    let reader = start(directory.path());
    let (sender, posted) = mpsc::channel();
    reader.post(move |reader| sender.send(list(reader).unwrap()).unwrap());
    assert_eq!(posted.recv_timeout(PATIENCE), Ok(0));
    assert_eq!(reader.ask_within(PATIENCE, list).unwrap(), 0);
    assert_eq!(block_on(reader.ask(list)).unwrap(), 0);
    assert_eq!(block_on(reader.ask_aside(list)).unwrap().unwrap(), 0);
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
    assert_eq!(block_on(reader.ask_aside(list)).unwrap().unwrap(), 0);
    let_go.send(()).unwrap();
    assert_eq!(reader.ask_within(PATIENCE, list).unwrap(), 0);
}

#[test]
fn a_job_whose_caller_has_given_up_is_not_run_when_its_turn_comes() {
    let directory = tempfile::tempdir().unwrap();
    let reader = start(directory.path());
    let (let_go, held) = mpsc::channel::<()>();
    reader.post(move |_| {
        let _ = held.recv();
    });
    let (sender, ran) = mpsc::channel();
    let late = sender.clone();
    let job = move |_: &mut dyn StoreReader| {
        late.send("late").unwrap();
        Ok(())
    };
    assert!(reader.ask_within(Duration::from_millis(1), job).is_err());
    reader.post(move |_| sender.send("posted").unwrap());
    let_go.send(()).unwrap();
    assert_eq!(ran.iter().collect::<Vec<_>>(), ["posted"]);
}

#[test]
fn a_job_that_panics_costs_nobody_else_the_reader() {
    let directory = tempfile::tempdir().unwrap();
    let reader = start(directory.path());
    assert!(matches!(reader.ask_within(PATIENCE, |_| panic!("as the test wants it")), Err::<(), _>(AskError::Failed)));
    assert!(matches!(block_on(reader.ask_aside(|_| panic!("and this one"))), Err::<(), _>(AskError::Failed)));
    assert_eq!(reader.ask_within(PATIENCE, list).unwrap(), 0);
}

#[test]
fn an_answer_comes_in_every_case_and_once() {
    let directory = tempfile::tempdir().unwrap();
    let reader = start(directory.path());
    let (sender, answers) = mpsc::channel();
    let on_answer = |name: &'static str| {
        let sender = sender.clone();
        move |answer: Result<usize, AskError>| sender.send((name, answer.map_err(|error| error.to_string()))).unwrap()
    };
    reader.post_answering(list, on_answer("done"));
    reader.post_answering(|_| panic!("as the test wants it"), on_answer("failed"));
    let again = reader.clone();
    // Behind the stop, and never run.
    let late = on_answer("late");
    reader.post(move |_| {
        let _ = again.inner.sender.send(Message::Stop);
        again.post_answering(list, late);
    });
    reader.stop();
    reader.post_answering(list, on_answer("after the end"));
    drop(sender);
    let answers: Vec<_> = answers.iter().collect();
    let told = |error: AskError| Err(error.to_string());
    let expected = [
        ("done", Ok(0)),
        ("failed", told(AskError::Failed)),
        ("late", told(AskError::Closed)),
        ("after the end", told(AskError::Closed)),
    ];
    assert_eq!(answers, expected);
}

/// A store of which only a backup can be asked, which takes until it is interrupted for the third time.
struct Endless {
    begun: mpsc::Sender<()>,
}

struct EndlessReader {
    begun: mpsc::Sender<()>,
    interruptions: Arc<(Mutex<u32>, Condvar)>,
}

impl Store for Endless {
    fn load(&self) -> Result<Loaded, StoreError> {
        Err(StoreError::Closed)
    }

    fn writer(&self, _: Vec<(ThinkerId, Arc<str>)>) -> Result<Box<dyn StoreWriter>, StoreError> {
        Err(StoreError::Closed)
    }

    fn reader(&self) -> Result<Box<dyn StoreReader>, StoreError> {
        Ok(Box::new(EndlessReader { begun: self.begun.clone(), interruptions: Arc::default() }))
    }
}

impl StoreReader for EndlessReader {
    fn claim(&mut self, _: &Claim) -> Result<Page, StoreError> {
        Err(StoreError::Closed)
    }

    fn release(&mut self, _: &str, _: Place) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }

    fn event(&mut self, _: u64) -> Result<Option<Event>, StoreError> {
        Err(StoreError::Closed)
    }

    fn events(&mut self, _: &EventQuery) -> Result<Page<ListedEvent>, StoreError> {
        Err(StoreError::Closed)
    }

    fn backup(&mut self, file: &Path) -> Result<(), StoreError> {
        self.begun.send(()).unwrap();
        let (interruptions, changed) = &*self.interruptions;
        let waited = changed.wait_timeout_while(interruptions.lock().unwrap(), PATIENCE, |times| *times < 3);
        assert!(!waited.unwrap().1.timed_out(), "nobody interrupts it");
        Err(StoreError::BackupInterrupted { file: file.to_owned() })
    }

    fn interrupter(&self) -> Option<Interrupter> {
        let interruptions = Arc::clone(&self.interruptions);
        Some(Box::new(move || {
            *interruptions.0.lock().unwrap() += 1;
            interruptions.1.notify_all();
        }))
    }
}

#[test]
fn a_stop_interrupts_a_backup_until_it_ends_and_who_waits_for_it_is_told() {
    let (begun, has_begun) = mpsc::channel();
    let reader = Reader::start(Arc::new(Endless { begun })).unwrap();
    let asking = reader.clone();
    let asked = thread::spawn(move || block_on(asking.ask_aside(|reader| reader.backup(Path::new("copy.db")))));
    has_begun.recv_timeout(PATIENCE).unwrap();
    reader.stop();
    let answer = asked.join().unwrap().unwrap();
    assert!(matches!(&answer, Err(StoreError::BackupInterrupted { .. })), "{answer:?}");
    assert!(matches!(block_on(reader.ask_aside(|_| ())), Err(AskError::Closed)));
}

#[test]
fn the_threads_have_ended_when_nobody_holds_their_handle() {
    let directory = tempfile::tempdir().unwrap();
    let reader = start(directory.path());
    let (sender, ran) = mpsc::channel();
    for _ in 0..9 {
        let sender = sender.clone();
        reader.post(move |_| sender.send(()).unwrap());
    }
    drop((reader, sender));
    assert_eq!(ran.try_iter().count(), 9);
    assert_eq!(ran.try_recv(), Err(mpsc::TryRecvError::Disconnected));
}

#[test]
fn the_last_handle_may_be_dropped_by_a_job() {
    let directory = tempfile::tempdir().unwrap();
    for is_aside in [false, true] {
        let reader = start(directory.path());
        let own = reader.clone();
        let (let_go, held) = mpsc::channel::<()>();
        let (sender, ended) = mpsc::channel::<()>();
        let job = move |_: &mut dyn StoreReader| {
            let _ = held.recv();
            drop(own);
            drop(sender);
        };
        match is_aside {
            false => reader.post(job),
            true => {
                let mut asked = Box::pin(reader.ask_aside(job));
                let nobody = &mut std::task::Context::from_waker(std::task::Waker::noop());
                assert!(asked.as_mut().poll(nobody).is_pending());
            }
        }
        drop(reader);
        let_go.send(()).unwrap();
        assert_eq!(ended.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected), "aside: {is_aside}");
    }
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
