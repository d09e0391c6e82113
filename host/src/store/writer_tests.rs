use std::sync::mpsc::{self, Receiver};

use super::*;
use crate::clock::{Clock, ManualClock, MonotonicClock};
use crate::store::faulty::{Faulty, PATIENCE, damage, full_disk};
use crate::store::{EventChange, SqliteStore, Store};

fn batch(number: u64) -> Batch {
    Batch { number, next_sequence: Some(number), ..Batch::default() }
}

/// A writer by a script, and a channel on which each of its changes arrives.
fn start(faulty: &Faulty, clock: SharedClock) -> (Writer, Receiver<()>) {
    let (sender, changes) = mpsc::channel();
    let on_change = move || sender.send(()).unwrap_or_default();
    (Writer::start(faulty.writer(), clock, Box::new(on_change)).unwrap(), changes)
}

fn wait_for_change(changes: &Receiver<()>) {
    changes.recv_timeout(PATIENCE).unwrap();
}

/// A clock that is moved by hand and tells of each pause, by its end, once the writer is in it.
struct PauseClock {
    clock: Arc<ManualClock>,
    pauses: mpsc::Sender<Duration>,
}

impl Clock for PauseClock {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn wall_ms(&self) -> u64 {
        self.clock.wall_ms()
    }

    fn real_wait(&self, until: Duration) -> Option<Duration> {
        let _ = self.pauses.send(until);
        None
    }

    fn on_advance(&self, moved: Box<dyn FnMut() -> bool + Send>) {
        self.clock.on_advance(moved);
    }
}

/// The test's end of it.
struct Pauses {
    clock: Arc<ManualClock>,
    begun: Receiver<Duration>,
    last: Duration,
}

impl Pauses {
    fn new() -> (Self, SharedClock) {
        let clock = ManualClock::shared();
        let (pauses, begun) = mpsc::channel();
        let watched = PauseClock { clock: clock.clone(), pauses };
        (Self { clock, begun, last: Duration::ZERO }, Arc::new(watched))
    }

    /// Waits for the next pause, which the writer may tell of several times, and answers with its length.
    fn wait(&mut self) -> Duration {
        let before = self.last;
        while self.last == before {
            self.last = self.begun.recv_timeout(PATIENCE).unwrap();
        }
        self.last - self.clock.now()
    }

    /// Moves the clock to the end of the pause that was told of last.
    fn end(&self) {
        self.clock.advance(self.last - self.clock.now());
    }
}

#[test]
fn batches_that_come_while_a_commit_is_under_way_share_the_next_one() {
    let faulty = Faulty::default();
    faulty.hold();
    let (writer, changes) = start(&faulty, MonotonicClock::shared());
    writer.submit(batch(1));
    faulty.wait_for_attempts(1);
    for number in 2..=5 {
        writer.submit(batch(number));
    }
    assert_eq!((writer.snapshot().backlog, writer.committed()), (5, 0));
    faulty.let_go();
    wait_for_change(&changes);
    wait_for_change(&changes);
    assert_eq!(faulty.commits(), [vec![1], vec![2, 3, 4, 5]]);
    assert_eq!((writer.snapshot().backlog, writer.committed()), (0, 5));
    writer.stop().unwrap();
    assert!(faulty.is_closed());
}

#[test]
fn a_flood_is_committed_in_several_steps_each_of_which_is_told() {
    let rows = |number, rows| Batch { events: vec![EventChange::Removed { sequence: 1 }; rows], ..batch(number) };
    let bytes = |number, bytes| Batch { bytes, ..batch(number) };
    let faulty = Faulty::default();
    faulty.hold();
    let (writer, changes) = start(&faulty, MonotonicClock::shared());
    writer.submit(batch(1));
    faulty.wait_for_attempts(1);
    let flood = [
        rows(2, GROUP_ROWS / 2),
        rows(3, GROUP_ROWS / 2),
        rows(4, 1),
        // More than fits is committed alone.
        rows(5, GROUP_ROWS + 1),
        bytes(6, GROUP_BYTES - 1),
        bytes(7, 1),
        bytes(8, GROUP_BYTES + 1),
        batch(9),
    ];
    for batch in flood {
        writer.submit(batch);
    }
    faulty.let_go();
    let expected = [vec![1], vec![2, 3], vec![4], vec![5], vec![6, 7], vec![8], vec![9]];
    for _ in &expected {
        wait_for_change(&changes);
    }
    assert_eq!(faulty.commits(), expected);
    assert_eq!((writer.snapshot().backlog, writer.committed()), (0, 9));
}

#[test]
fn a_commit_is_told_only_after_it_is_made() {
    let faulty = Faulty::default();
    faulty.hold();
    let (writer, changes) = start(&faulty, MonotonicClock::shared());
    writer.submit(batch(7));
    faulty.wait_for_attempts(1);
    assert!(changes.try_recv().is_err());
    assert_eq!(writer.committed(), 0);
    faulty.let_go();
    wait_for_change(&changes);
    assert_eq!(writer.committed(), 7);
}

#[test]
fn a_full_disk_is_tried_again_with_growing_pauses_and_nothing_is_written_twice() {
    let faulty = Faulty::default();
    for _ in 0..8 {
        faulty.fail(full_disk());
    }
    let (mut pauses, clock) = Pauses::new();
    let (writer, changes) = start(&faulty, clock);
    writer.submit(batch(1));
    let mut lengths_ms = vec![pauses.wait().as_millis()];
    wait_for_change(&changes);
    let trouble = writer.trouble().unwrap();
    assert!(!trouble.is_fatal);
    assert_eq!(writer.snapshot().state, trouble.text);
    assert!(trouble.text.contains("data/world.db cannot be written: the disk is full"), "{}", trouble.text);
    writer.submit(batch(2));
    while lengths_ms.len() < 8 {
        pauses.end();
        lengths_ms.push(pauses.wait().as_millis());
    }
    assert_eq!(lengths_ms, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
    assert_eq!((faulty.attempts(), writer.snapshot().backlog), (8, 2));

    pauses.end();
    faulty.wait_for_commits(2);
    writer.stop().unwrap();
    assert_eq!(faulty.commits(), [vec![1], vec![2]]);
    assert_eq!((writer.trouble(), writer.snapshot().state.as_str()), (None, "ok"));
    // Two commits; that the trouble had begun was told once, before.
    assert_eq!(changes.iter().count(), 2);
}

#[test]
fn an_error_that_stays_ends_the_writing_and_everybody_can_see_it() {
    let faulty = Faulty::default();
    faulty.hold();
    faulty.fail(damage());
    let (writer, changes) = start(&faulty, MonotonicClock::shared());
    writer.submit(batch(1));
    faulty.wait_for_attempts(1);
    writer.submit(batch(2));
    faulty.let_go();
    wait_for_change(&changes);
    let trouble = writer.trouble().unwrap();
    assert!(trouble.is_fatal && trouble.text.contains("is damaged"), "{trouble:?}");
    writer.submit(batch(3));
    assert_eq!((writer.snapshot().backlog, writer.committed()), (3, 0));
    assert!(matches!(writer.stop(), Err(StoreError::Damaged { .. })));
    assert_eq!((faulty.commits(), faulty.attempts()), (vec![], 1));
}

#[test]
fn a_writer_that_panics_ends_the_writing_like_one_that_fails() {
    let faulty = Faulty::default();
    faulty.panic();
    let (writer, changes) = start(&faulty, MonotonicClock::shared());
    writer.submit(batch(1));
    wait_for_change(&changes);
    assert!(writer.trouble().unwrap().is_fatal);
    assert!(matches!(writer.stop(), Err(StoreError::WriterFailed { reason }) if reason == "as the test wants it"));
}

#[test]
fn a_stop_commits_what_was_handed_over() {
    let faulty = Faulty::default();
    faulty.hold();
    let (writer, _changes) = start(&faulty, MonotonicClock::shared());
    for number in 1..=3 {
        writer.submit(batch(number));
    }
    let stopping = writer.clone();
    let stopped = thread::spawn(move || stopping.stop());
    faulty.let_go();
    stopped.join().unwrap().unwrap();
    assert_eq!(faulty.commits().concat(), [1, 2, 3]);
    assert!(matches!(writer.stop(), Err(StoreError::Closed)));
}

#[test]
fn a_stop_interrupts_a_pause_and_gives_up_on_a_full_disk_after_a_few_attempts() {
    let faulty = Faulty::default();
    for _ in 0..100 {
        faulty.fail(full_disk());
    }
    let (mut pauses, clock) = Pauses::new();
    let (writer, _changes) = start(&faulty, clock);
    writer.submit(batch(1));
    for _ in 0..6 {
        pauses.wait();
        pauses.end();
    }
    assert_eq!(pauses.wait().as_millis(), 2000);
    let stopping = writer.clone();
    let stopped = thread::spawn(move || stopping.stop());
    let mut lengths_ms = Vec::new();
    while lengths_ms.len() + 1 < ATTEMPTS_AT_STOP as usize {
        lengths_ms.push(pauses.wait().as_millis());
        pauses.end();
    }
    assert_eq!(lengths_ms, [50, 100, 200, 400], "the pause of two seconds is cut short");
    assert!(matches!(stopped.join().unwrap(), Err(StoreError::Unwritable { .. })));
    assert_eq!(faulty.attempts(), 7 + ATTEMPTS_AT_STOP as usize);
    assert!(writer.trouble().unwrap().is_fatal);
    assert_eq!((writer.snapshot().backlog, faulty.is_closed()), (1, false));
}

#[test]
fn the_thread_has_ended_when_nobody_holds_its_handle() {
    let faulty = Faulty::default();
    let (writer, changes) = start(&faulty, MonotonicClock::shared());
    writer.submit(batch(1));
    drop(writer);
    // All this has happened when the drop returns: the thread has dropped its end of the channel.
    assert_eq!((changes.try_recv(), changes.try_recv()), (Ok(()), Err(mpsc::TryRecvError::Disconnected)));
    assert!(faulty.is_closed());
}

#[test]
fn the_last_handle_may_be_dropped_by_the_thread_itself() {
    let faulty = Faulty::default();
    faulty.hold();
    let own: Arc<Mutex<Option<Writer>>> = Arc::default();
    let (held, (ended, has_ended)) = (Arc::clone(&own), mpsc::channel::<()>());
    let on_change = move || {
        let _ends_with_the_thread = &ended;
        drop(held.lock().unwrap().take());
    };
    let writer = Writer::start(faulty.writer(), MonotonicClock::shared(), Box::new(on_change)).unwrap();
    writer.submit(batch(1));
    *own.lock().unwrap() = Some(writer);
    faulty.let_go();
    assert_eq!(has_ended.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected));
    assert!(faulty.is_closed());
}

#[test]
fn the_figures_tell_of_commits_and_are_readable_as_json() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path()).unwrap();
    let (sender, changes) = mpsc::channel();
    let on_change = move || sender.send(()).unwrap_or_default();
    let writer = Writer::start(store.writer(vec![]).unwrap(), MonotonicClock::shared(), Box::new(on_change)).unwrap();
    let events = vec![EventChange::Removed { sequence: 1 }, EventChange::Removed { sequence: 2 }];
    writer.submit(Batch { events, ..batch(1) });
    wait_for_change(&changes);
    let snapshot = writer.snapshot();
    assert_eq!((snapshot.commits, snapshot.batch_events, snapshot.backlog), (1, 2, 0));
    assert!(snapshot.commit_us.max > 0 && snapshot.commit_us.p50 <= snapshot.commit_us.p99);
    let json = serde_json::to_value(&snapshot).unwrap();
    assert_eq!((&json["state"], &json["commits"]), (&"ok".into(), &1.into()));
    writer.stop().unwrap();
}
