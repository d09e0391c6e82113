//! A running job: one call that the host suspends when a slice is over and resumes in the next. The call is a future on
//! a stack of its own; a slice polls it, and each time the epoch advances it gives control back. A job that never ends
//! never holds the loop for longer than its slice, and is gone when it is dropped.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::engine::LoopEngine;
use super::failure::CallError;
use super::instance::new_store;
use super::kinds::JobCode;
use super::resident::log_failure;
use super::state::Identity;
use super::trial::SwapError;

type Call = Pin<Box<dyn Future<Output = wasmtime::Result<Result<Vec<u8>, String>>> + Send>>;

/// A job in progress.
pub struct JobRun {
    engine: LoopEngine,
    identity: Arc<Identity>,
    call: Call,
}

/// What came of a slice.
#[derive(Debug)]
pub enum Slice {
    /// There is more to do.
    Suspended,
    /// `run` has returned, or failed.
    Ended(Result<Vec<u8>, CallError>),
}

impl JobRun {
    /// Prepares the call; nothing runs before the first slice. The `number` seeds its random numbers.
    pub fn start(
        engine: &LoopEngine,
        code: &Arc<JobCode>,
        identity: &Arc<Identity>,
        number: u64,
        arguments: Vec<u8>,
    ) -> Self {
        let mut store = new_store(engine, identity, number);
        store.epoch_deadline_async_yield_and_update(1);
        store.set_epoch_deadline(1);
        let code = Arc::clone(code);
        let call: Call = Box::pin(async move {
            let bindings = code.instantiate_async(&mut store).await?;
            bindings.call_run(&mut store, &arguments).await
        });
        identity.counters.calls.fetch_add(1, Ordering::Relaxed);
        Self { engine: engine.clone(), identity: Arc::clone(identity), call }
    }

    /// Looks whether an instance can be made of a job's code. Never called on the loop.
    pub fn try_to_instantiate(
        engine: &LoopEngine,
        identity: &Arc<Identity>,
        code: &Arc<JobCode>,
    ) -> Result<(), SwapError> {
        let mut store = new_store(engine, identity, 0);
        store.epoch_deadline_async_yield_and_update(1);
        store.set_epoch_deadline(1);
        let limit = identity.limits.init_deadline();
        let _ticking = engine.tick();
        let until = engine.clock().now() + limit;
        let failed = |error| SwapError::Trial { call: "its start", error };
        let mut start = pin!(code.instantiate_async(&mut store));
        loop {
            match start.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(started) => {
                    return started.map(drop).map_err(|error| failed(CallError::from_wasmtime(error, limit)));
                }
                Poll::Pending if engine.clock().now() >= until => {
                    let (limit_ms, backtrace) = (limit.as_millis() as u64, String::new());
                    return Err(failed(CallError::Deadline { limit_ms, backtrace }));
                }
                Poll::Pending => {}
            }
        }
    }

    /// Runs it for about `budget`: to the end of the epoch in which that is spent. A failure has been logged and
    /// counted when this returns.
    pub fn slice(&mut self, budget: Duration) -> Slice {
        let clock = self.engine.clock();
        let _ticking = self.engine.tick();
        let until = clock.now() + budget;
        loop {
            // It is polled again in any case, so nobody has to be woken.
            match self.call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(result) => return Slice::Ended(self.end(result)),
                Poll::Pending if clock.now() >= until => return Slice::Suspended,
                Poll::Pending => {}
            }
        }
    }

    fn end(&self, result: wasmtime::Result<Result<Vec<u8>, String>>) -> Result<Vec<u8>, CallError> {
        // A job has no deadline of its own.
        let result = match result {
            Ok(answer) => answer.map_err(CallError::Refused),
            Err(error) => Err(CallError::from_wasmtime(error, Duration::ZERO)),
        };
        result.inspect_err(|error| {
            if !error.keeps_instance() {
                log_failure(&self.identity, "run", error);
            }
        })
    }
}
