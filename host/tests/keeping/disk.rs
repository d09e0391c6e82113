//! A database that does as the test says: SQLite behind a door that holds commits or lets so many through, a disk that
//! can be full, and reads that fail.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use wheelhouse::store::{
    Batch, Claim, Event, EventQuery, Interrupter, ListedEvent, Loaded, Page, Place, SqliteStore, Store, StoreError,
    StoreReader, StoreWriter,
};
use wheelhouse::world::ThinkerId;

use crate::PATIENCE;

/// The test's end.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    shared: Arc<(Mutex<Script>, Condvar)>,
}

#[derive(Debug, Default)]
struct Script {
    /// Commits that are let through before those that are held; all of them where there is no number.
    through: Option<usize>,
    is_full: bool,
    /// Attempts at a commit that failed.
    failed: usize,
    /// Whether a commit is held just now.
    holds_commit: bool,
    /// Reads that fail, and then reads that panic, before those that are right.
    failing_reads: usize,
    panicking_reads: usize,
    holds_reads: bool,
    /// Reads that are held just now.
    held_reads: usize,
    holds_backups: bool,
    held_backups: usize,
    interrupts_backups: bool,
}

impl Disk {
    /// Opens the database in a data directory behind this door.
    pub fn open(&self, data_dir: &Path) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(Behind { store: SqliteStore::open(data_dir)?, disk: self.clone() }))
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.lock());
        self.shared.1.notify_all();
    }

    /// Waits for as long as the test wants something to be held.
    fn wait_while(&self, is_held: impl Fn(&Script) -> bool) -> MutexGuard<'_, Script> {
        let waited = self.shared.1.wait_while(self.lock(), |script| is_held(script));
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for(&self, what: &str, is_there: impl Fn(&Script) -> bool) {
        let waited = self.shared.1.wait_timeout_while(self.lock(), PATIENCE, |script| !is_there(script));
        let (script, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "{what} did not come about: {script:?}");
    }

    /// Holds commits from now on.
    pub fn hold(&self) {
        self.let_through(0);
    }

    /// Lets so many more commits through, and holds those after.
    pub fn let_through(&self, commits: usize) {
        self.change(|script| script.through = Some(commits));
    }

    /// Waits until a commit is held.
    pub fn wait_for_held_commit(&self) {
        self.wait_for("a commit that is held", |script| script.holds_commit);
    }

    /// Lets commits through.
    pub fn let_go(&self) {
        self.change(|script| script.through = None);
    }

    /// Has commits fail for want of room.
    pub fn fill(&self) {
        self.change(|script| script.is_full = true);
    }

    /// Has it take commits again.
    pub fn make_room(&self) {
        self.change(|script| script.is_full = false);
    }

    /// Attempts at a commit that failed.
    pub fn failed_commits(&self) -> usize {
        self.lock().failed
    }

    /// Has the next reads fail.
    pub fn fail_reads(&self, reads: usize) {
        self.change(|script| script.failing_reads = reads);
    }

    /// Reads that are still to fail or to panic.
    pub fn bad_reads(&self) -> usize {
        let script = self.lock();
        script.failing_reads + script.panicking_reads
    }

    /// Has the next reads panic.
    pub fn panic_in_reads(&self, reads: usize) {
        self.change(|script| script.panicking_reads = reads);
    }

    /// Holds reads from now on.
    pub fn hold_reads(&self) {
        self.change(|script| script.holds_reads = true);
    }

    /// Waits until a read is held.
    pub fn wait_for_held_read(&self) {
        self.wait_for("a read that is held", |script| script.held_reads > 0);
    }

    /// Lets reads through.
    pub fn let_reads_go(&self) {
        self.change(|script| script.holds_reads = false);
    }

    /// Holds backups from now on.
    pub fn hold_backups(&self) {
        self.change(|script| script.holds_backups = true);
    }

    /// Waits until a backup is held.
    pub fn wait_for_held_backup(&self) {
        self.wait_for("a backup that is held", |script| script.held_backups > 0);
    }

    /// Lets everything through that is held, and has nothing fail any more.
    pub fn be_good(&self) {
        self.change(|script| *script = Script { failed: script.failed, ..Script::default() });
    }

    /// What comes of a read before it reads.
    fn begin_read(&self) -> Result<(), StoreError> {
        self.change(|script| script.held_reads += 1);
        let mut script = self.wait_while(|script| script.holds_reads);
        script.held_reads = script.held_reads.saturating_sub(1);
        if script.failing_reads > 0 {
            script.failing_reads -= 1;
            self.shared.1.notify_all();
            return Err(StoreError::Unreadable { file: file(), reason: "the test wants it so".to_owned() });
        }
        if script.panicking_reads > 0 {
            script.panicking_reads -= 1;
            self.shared.1.notify_all();
            drop(script);
            panic!("this read panics, as the test wants it");
        }
        Ok(())
    }
}

fn file() -> PathBuf {
    PathBuf::from("data/world.db")
}

/// The host's end.
struct Behind<S> {
    store: S,
    disk: Disk,
}

impl Store for Behind<SqliteStore> {
    fn load(&self) -> Result<Loaded, StoreError> {
        self.store.load()
    }

    fn writer(&self, thinkers: Vec<(ThinkerId, Arc<str>)>) -> Result<Box<dyn StoreWriter>, StoreError> {
        Ok(Box::new(Behind { store: self.store.writer(thinkers)?, disk: self.disk.clone() }))
    }

    fn reader(&self) -> Result<Box<dyn StoreReader>, StoreError> {
        Ok(Box::new(Behind { store: self.store.reader()?, disk: self.disk.clone() }))
    }
}

impl StoreWriter for Behind<Box<dyn StoreWriter>> {
    fn commit(&mut self, batches: &[Batch]) -> Result<(), StoreError> {
        self.disk.change(|script| script.holds_commit = script.through == Some(0));
        let mut script = self.disk.wait_while(|script| script.through == Some(0));
        script.holds_commit = false;
        if script.is_full {
            script.failed += 1;
            return Err(StoreError::Unwritable { file: file(), reason: "the disk is full".to_owned() });
        }
        script.through = script.through.map(|commits| commits - 1);
        drop(script);
        self.store.commit(batches)
    }

    fn upkeep(&mut self, others_wait: bool) -> Result<(), StoreError> {
        self.store.upkeep(others_wait)
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        self.store.close()
    }
}

impl StoreReader for Behind<Box<dyn StoreReader>> {
    fn claim(&mut self, claim: &Claim) -> Result<Page, StoreError> {
        self.disk.begin_read()?;
        self.store.claim(claim)
    }

    fn release(&mut self, guest: &str, from: Place) -> Result<(), StoreError> {
        self.store.release(guest, from)
    }

    fn event(&mut self, sequence: u64) -> Result<Option<Event>, StoreError> {
        self.disk.begin_read()?;
        self.store.event(sequence)
    }

    fn events(&mut self, query: &EventQuery) -> Result<Page<ListedEvent>, StoreError> {
        self.disk.begin_read()?;
        self.store.events(query)
    }

    fn backup(&mut self, file: &Path) -> Result<(), StoreError> {
        self.disk.change(|script| script.held_backups += 1);
        let script = self.disk.wait_while(|script| script.holds_backups && !script.interrupts_backups);
        if script.interrupts_backups {
            return Err(StoreError::Closed);
        }
        drop(script);
        self.store.backup(file)
    }

    fn interrupter(&self) -> Option<Interrupter> {
        let disk = self.disk.clone();
        Some(Box::new(move || disk.change(|script| script.interrupts_backups = true)))
    }
}
