//! The listener for clients: binds, accepts, refuses what is too many, and stops in good order. The server opens it
//! once; each accepted client becomes a connection of its own.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::{CloseReason, Connections, GateOptionError, GateOptions, GateSink, connection};

/// How long accepting rests after an error that has not to do with one client, such as too many open files: trying
/// again at once would only burn the processor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a stop allows the sinks beyond `gate.drain_timeout_ms`, so that a drain that takes all its time can still
/// report its disconnection.
const STOP_MARGIN: Duration = Duration::from_millis(500);

/// Why a gate did not open.
#[derive(Debug, Error)]
pub enum GateError {
    /// An option cannot be used.
    #[error(transparent)]
    Option(#[from] GateOptionError),
    /// The address cannot be listened on.
    #[error("cannot listen for clients on {address}: {error}; {mend}", mend = bind_mend(.error))]
    Bind {
        /// `gate.listen`.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
}

fn bind_mend(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "stop the program that uses it, or set `gate.listen` to another port",
        io::ErrorKind::AddrNotAvailable => "set `gate.listen` to an address of this machine",
        io::ErrorKind::PermissionDenied => "set `gate.listen` to a port from 1024 up, or permit this one",
        _ => "set `gate.listen` to an address that this machine can listen on",
    }
}

/// A gate that holds its address and lets nobody in yet.
#[derive(Debug)]
pub struct BoundGate {
    listener: TcpListener,
    local_address: SocketAddr,
    options: GateOptions,
}

impl BoundGate {
    /// Checks the options and takes the address, so that a port in use shows before anything else is started.
    pub async fn bind(options: &GateOptions) -> Result<Self, GateError> {
        options.validate()?;
        let failed = |error| GateError::Bind { address: options.listen, error };
        let listener = TcpListener::bind(options.listen).await.map_err(failed)?;
        let local_address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, local_address, options: options.clone() })
    }

    /// Where clients connect to: with port 0 in the options, the port that the system chose.
    pub fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    /// Starts to let clients in. Must be called within a tokio runtime.
    pub fn open<S: GateSink>(self, connections: Connections, sink: Arc<S>) -> Gate {
        let (stop, stopped) = oneshot::channel();
        let local_address = self.local_address;
        let acceptor = tokio::spawn(run(self.listener, Arc::new(self.options), connections, sink, async move {
            // A gate that was dropped without a stop stops as well.
            let _ = stopped.await;
        }));
        Gate { local_address, stop, acceptor }
    }
}

/// A gate that lets clients in, until it is stopped or dropped.
#[derive(Debug)]
pub struct Gate {
    local_address: SocketAddr,
    stop: oneshot::Sender<()>,
    acceptor: JoinHandle<()>,
}

impl Gate {
    /// Where clients connect to.
    pub fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    /// Lets nobody in any more, writes what was sent, closes all connections, and returns when all are gone: after
    /// `gate.drain_timeout_ms` and a small margin at the latest. The sink must still take disconnections meanwhile.
    pub async fn stop(self) {
        let _ = self.stop.send(());
        if let Err(failure) = self.acceptor.await {
            tracing::error!(%failure, "the gate had failed before it was stopped");
        }
    }
}

/// Where clients come from: the listener, or in a test one that fails.
trait AcceptSource: Send + 'static {
    fn accept(&mut self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send;
}

impl AcceptSource for TcpListener {
    async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        TcpListener::accept(self).await
    }
}

async fn run<S: GateSink>(
    mut source: impl AcceptSource,
    options: Arc<GateOptions>,
    connections: Connections,
    sink: Arc<S>,
    stopped: impl Future<Output = ()>,
) {
    let mut tasks = JoinSet::new();
    tasks.spawn(connections.clone().flush_for_ever());
    let mut stopped = std::pin::pin!(stopped);
    loop {
        tokio::select! {
            biased;
            () = &mut stopped => break,
            // Finished tasks are taken as they end, or their results would pile up.
            Some(ended) = tasks.join_next() => report(ended),
            accepted = source.accept() => match accepted {
                Ok((stream, peer)) => admit(stream, peer, &options, &connections, &sink, &mut tasks),
                Err(error) => {
                    let times = connections.counters().accept_errors.fetch_add(1, Relaxed) + 1;
                    if !is_of_one_client(&error) {
                        // It may go on for long, so it is told at each doubling.
                        if times.is_power_of_two() {
                            tracing::warn!(%error, times, "cannot accept clients for now; raise the limit of open files?");
                        }
                        tokio::select! {
                            () = &mut stopped => break,
                            () = sleep(ACCEPT_PAUSE) => {}
                        }
                    }
                }
            },
        }
    }
    drop(source);
    connections.close_all(CloseReason::Stopping);
    let all_gone = async {
        // The flusher never ends by itself.
        while tasks.len() > 1 {
            if let Some(ended) = tasks.join_next().await {
                report(ended);
            }
        }
    };
    if timeout(options.drain_timeout() + STOP_MARGIN, all_gone).await.is_err() {
        tracing::warn!(connections = tasks.len() - 1, "the gate stopped before all its connections were done");
    }
    tasks.shutdown().await;
}

fn admit<S: GateSink>(
    stream: TcpStream,
    peer: SocketAddr,
    options: &Arc<GateOptions>,
    connections: &Connections,
    sink: &Arc<S>,
    tasks: &mut JoinSet<()>,
) {
    let counters = connections.counters();
    if counters.open.load(Relaxed) >= options.max_connections as u64 {
        counters.refused.fetch_add(1, Relaxed);
        tracing::debug!(%peer, limit = options.max_connections, "client refused: `gate.max_connections` are open");
        return;
    }
    let registered = connections.register();
    let (options, connections, sink) = (Arc::clone(options), connections.clone(), Arc::clone(sink));
    tasks.spawn(async move {
        connection::serve(stream, peer, registered, options, connections.counters(), sink).await;
    });
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(failure) = ended {
        tracing::error!(%failure, "the task of a connection failed");
    }
}

/// True if the error is about a client that gave up while it waited, and says nothing about the next.
fn is_of_one_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

#[cfg(test)]
mod tests {
    use super::super::test_world::{EchoSink, within};
    use super::super::{Client, GateOptions};
    use super::*;

    /// A listener that first fails as it does when the process has no file descriptors left.
    struct Exhausted {
        failures_left: u32,
        listener: TcpListener,
    }

    impl AcceptSource for Exhausted {
        async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
            if self.failures_left > 0 {
                self.failures_left -= 1;
                return Err(io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error()));
            }
            self.listener.accept().await
        }
    }

    #[tokio::test]
    async fn running_out_of_file_descriptors_delays_clients_and_loses_none() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let options = GateOptions::default();
        let connections = Connections::new(&options, 1);
        let sink = EchoSink::shared(&connections);
        let source = Exhausted { failures_left: 3, listener };
        let (stop, stopped) = oneshot::channel::<()>();
        let gate = tokio::spawn(run(source, Arc::new(options), connections.clone(), sink, async move {
            let _ = stopped.await;
        }));

        let mut client = Client::connect(address).await.unwrap();
        client.send(b"still there?").await.unwrap();
        let answer = within(client.receive()).await.unwrap();
        assert_eq!(answer.as_deref(), Some(b"still there?".as_slice()));
        assert_eq!(connections.snapshot().accept_errors, 3);

        drop(client);
        drop(stop);
        within(gate).await.unwrap();
        assert_eq!(connections.snapshot().open, 0);
    }
}
