//! The hand of the engine's clock: a thread that advances the epoch every millisecond while a guest runs, so that
//! deadlines and slices end. It rests when no guest has run for a while, so that an idle host is idle.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wasmtime::Engine;

/// One epoch.
pub const EPOCH: Duration = Duration::from_millis(1);

/// How many epochs without a call before the thread rests. Waking it costs a system call, so it does not rest between
/// two packets.
const REST_AFTER_EPOCHS: u32 = 50;

/// How many epochs a call may last that is given `limit`: never fewer milliseconds than asked for.
pub fn epochs_in(limit: Duration) -> u64 {
    limit.as_millis().div_ceil(EPOCH.as_millis()) as u64 + 1
}

#[derive(Debug, Default)]
struct Shared {
    /// Calls that are in progress.
    running: AtomicU32,
    /// Calls begun, to see whether there were any lately.
    begun: AtomicU32,
    resting: AtomicBool,
    stopping: AtomicBool,
}

/// Keeps the epoch going. Dropping it ends the thread.
#[derive(Debug)]
pub struct EpochTicker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// While it lives, epochs pass.
#[derive(Debug)]
pub struct Ticking<'a>(&'a Shared);

impl EpochTicker {
    /// Starts the thread for these engines.
    pub fn start(engines: Vec<Engine>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name("wheelhouse-epoch".into()).spawn(move || tick(&engines, &of_thread))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// To be held during a call.
    pub fn tick(&self) -> Ticking<'_> {
        let shared = &*self.shared;
        shared.running.fetch_add(1, Ordering::SeqCst);
        shared.begun.fetch_add(1, Ordering::Relaxed);
        if shared.resting.load(Ordering::SeqCst)
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
        Ticking(shared)
    }
}

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for EpochTicker {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It only counts and sleeps, so it has not panicked.
            let _ = thread.join();
        }
    }
}

fn tick(engines: &[Engine], shared: &Shared) {
    let mut seen = shared.begun.load(Ordering::Relaxed);
    let mut quiet_epochs = 0;
    while !shared.stopping.load(Ordering::SeqCst) {
        thread::sleep(EPOCH);
        engines.iter().for_each(Engine::increment_epoch);
        let begun = shared.begun.load(Ordering::Relaxed);
        if begun != seen || shared.running.load(Ordering::SeqCst) > 0 {
            seen = begun;
            quiet_epochs = 0;
            continue;
        }
        quiet_epochs += 1;
        if quiet_epochs >= REST_AFTER_EPOCHS {
            rest(shared);
            quiet_epochs = 0;
        }
    }
}

/// Sleeps until a call begins. A call that begins meanwhile either sees `resting` and wakes this thread, or is seen
/// here by `running`.
fn rest(shared: &Shared) {
    shared.resting.store(true, Ordering::SeqCst);
    while shared.running.load(Ordering::SeqCst) == 0 && !shared.stopping.load(Ordering::SeqCst) {
        thread::park();
    }
    shared.resting.store(false, Ordering::SeqCst);
}
