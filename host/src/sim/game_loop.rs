//! The loop on its thread: it drives a [`LoopCore`] and sleeps between turns, so that an idle loop costs nothing. All
//! rules of the loop are the core's.

use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::Simulation;
use super::loop_core::{LoopCore, Next};
use super::loop_handle::{LoopHandle, thread_number};
use crate::clock::thread_cpu_time;

/// The name of the loop thread.
pub const THREAD_NAME: &str = "wheelhouse-loop";

/// How much time may pass before the loop thread's CPU time is read again, which costs a system call.
const CPU_TIME_EVERY: Duration = Duration::from_millis(1);

/// A running loop. Dropping it stops the loop.
pub struct GameLoop<I: Send + 'static> {
    handle: LoopHandle<I>,
}

impl<I: Send + 'static> GameLoop<I> {
    /// Starts the loop thread.
    pub fn start<S: Simulation<Item = I>>(core: LoopCore<S>) -> io::Result<Self> {
        let handle = core.handle();
        let shared = std::sync::Arc::clone(core.shared());
        // An advance of a clock that is moved by hand is a reason to look around.
        let admission = std::sync::Arc::downgrade(&shared.admission);
        core.clock().on_advance(Box::new(move || match admission.upgrade() {
            Some(admission) => {
                admission.nudge();
                true
            }
            None => false,
        }));
        let thread = thread::Builder::new().name(THREAD_NAME.into()).spawn(move || run(core))?;
        *shared.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(Self { handle })
    }

    /// A handle to the loop.
    pub fn handle(&self) -> &LoopHandle<I> {
        &self.handle
    }
}

impl<I: Send + 'static> Drop for GameLoop<I> {
    fn drop(&mut self) {
        if self.handle.is_on_loop_thread() {
            self.handle.begin_stop();
            return;
        }
        // A failure was logged when it happened, and its completion still tells of it.
        let _ = self.handle.stop();
    }
}

fn run<S: Simulation>(mut core: LoopCore<S>) {
    let shared = std::sync::Arc::clone(core.shared());
    let clock = core.clock().clone();
    shared.loop_thread.store(thread_number(), Ordering::Relaxed);
    let mut cpu_time_read: Option<Duration> = None;
    loop {
        let next = core.turn();
        let now = clock.now();
        if next == Next::Ended || cpu_time_read.is_none_or(|read| now - read >= CPU_TIME_EVERY) {
            shared.metrics.cpu_ns.store(thread_cpu_time().as_nanos() as u64, Ordering::Relaxed);
            cpu_time_read = Some(now);
        }
        match next {
            Next::Now => {}
            Next::At(at) => core.sleep(clock.real_wait(at)),
            Next::WhenPosted => core.sleep(None),
            Next::Ended => return,
        }
    }
}
