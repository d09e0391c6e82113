//! WASI preview 2, for guests whose language runtime needs it: an empty one, without files, network, environment or
//! arguments. Its output goes to the log, its clocks and random numbers are the host's, and what would make the loop
//! wait ends the call instead.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use tokio::io::AsyncWrite;
use tracing::Level;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::bindings::{io::poll as waiting, sync::io::poll as polling};
use wasmtime_wasi::p2::{DynPollable, OutputStream, Pollable, StreamResult};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxBuilder, WasiView};

use crate::clock::SharedClock;
use crate::guest::log_lines::{LogLines, MAX_LINE_BYTES};
use crate::guest::state::{Identity, InstanceState};

/// The context of an instance.
pub(in crate::guest) fn context(identity: &Identity, random: ChaCha8Rng) -> WasiCtx {
    let clock = || HostClock(Arc::clone(&identity.clock));
    let output = |level| Output { lines: Arc::clone(&identity.log), level };
    WasiCtxBuilder::new()
        .stdout(output(Level::INFO))
        .stderr(output(Level::WARN))
        .wall_clock(clock())
        .monotonic_clock(clock())
        .insecure_random_seed(u128::from(identity.seed))
        .insecure_random(random.clone())
        .secure_random(random)
        .max_random_size(identity.limits.max_payload_bytes() as u64)
        .allow_tcp(false)
        .allow_udp(false)
        .build()
}

/// Links WASI.
pub(in crate::guest) fn add(linker: &mut Linker<InstanceState>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_sync(linker)?;
    // WASI's own `poll` blocks the thread until something is ready.
    linker.allow_shadowing(true);
    polling::add_to_linker::<_, OnlyNow>(linker, |state| PollNow(state.ctx().table))?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Links WASI for guests that may wait: their calls are suspended meanwhile.
pub(crate) fn add_waiting<T: WasiView + 'static>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)
}

struct HostClock(SharedClock);

impl HostMonotonicClock for HostClock {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        self.0.now().as_nanos() as u64
    }
}

impl HostWallClock for HostClock {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.0.wall_ms())
    }
}

struct OnlyNow;

impl HasData for OnlyNow {
    type Data<'a> = PollNow<'a>;
}

/// Answers what is ready now.
struct PollNow<'a>(&'a mut ResourceTable);

impl polling::Host for PollNow<'_> {
    fn poll(&mut self, pollables: Vec<Resource<DynPollable>>) -> wasmtime::Result<Vec<u32>> {
        now(waiting::Host::poll(self.0, pollables))
    }
}

impl polling::HostPollable for PollNow<'_> {
    fn ready(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<bool> {
        now(waiting::HostPollable::ready(self.0, pollable))
    }

    fn block(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        now(waiting::HostPollable::block(self.0, pollable))
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        waiting::HostPollable::drop(self.0, pollable)
    }
}

/// The future's answer if it has one without waiting.
fn now<T>(future: impl Future<Output = wasmtime::Result<T>>) -> wasmtime::Result<T> {
    let polled = wasmtime_wasi::runtime::with_ambient_tokio_runtime(|| {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    });
    match polled {
        Poll::Ready(answer) => answer,
        Poll::Pending => Err(wasmtime::format_err!("a guest cannot sleep or wait on the loop; set a timer instead")),
    }
}

/// What a guest writes to standard output or standard error, in the log line by line.
struct Output {
    lines: Arc<LogLines>,
    level: Level,
}

impl IsTerminal for Output {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Output {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.stream())
    }

    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.stream())
    }
}

impl Output {
    fn stream(&self) -> Lines {
        Lines { lines: Arc::clone(&self.lines), level: self.level, unfinished: Vec::new() }
    }
}

struct Lines {
    lines: Arc<LogLines>,
    level: Level,
    /// What was written since the last line break, never more than one line may have.
    unfinished: Vec<u8>,
}

impl Lines {
    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' {
                self.finish();
                continue;
            }
            self.unfinished.push(*byte);
            if self.unfinished.len() == MAX_LINE_BYTES {
                self.finish();
            }
        }
    }

    fn finish(&mut self) {
        if !self.unfinished.is_empty() {
            self.lines.write(self.level, &String::from_utf8_lossy(&self.unfinished));
            self.unfinished.clear();
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Pollable for Lines {
    fn ready<'a, 'b>(&'a mut self) -> Pin<Box<dyn Future<Output = ()> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(std::future::ready(()))
    }
}

impl OutputStream for Lines {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(16 * MAX_LINE_BYTES)
    }
}

impl AsyncWrite for Lines {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.get_mut().take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
