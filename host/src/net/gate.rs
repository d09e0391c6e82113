//! The listeners for clients: bind, accept, refuse what is too many, and stop in good order. The server opens the gate
//! once; each accepted client becomes a connection of its own, wherever it came in.

use std::fmt;
use std::future::{Future, pending};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::arrivals::{Arrivals, Turn};
use super::connection::{self, Terms};
use super::framing::Framing;
use super::tls::{self, TlsError};
use super::{CloseReason, Connections, GateOptionError, GateOptions, GateSink};

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
    /// An address cannot be listened on.
    #[error("cannot listen for clients on {address}: {error}; {}", bind_mend(.key, .error))]
    Bind {
        /// `gate.listen` or `gate.websocket_listen`.
        key: &'static str,
        /// Its value.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

fn bind_mend(key: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => format!("stop the program that uses it, or set `{key}` to another port"),
        io::ErrorKind::AddrNotAvailable => format!("set `{key}` to an address of this machine"),
        io::ErrorKind::PermissionDenied => format!("set `{key}` to a port from 1024 up, or permit this one"),
        _ => format!("set `{key}` to an address that this machine can listen on"),
    }
}

/// A gate that holds its addresses and lets nobody in yet.
pub struct BoundGate {
    listeners: Listeners,
    local_address: SocketAddr,
    websocket_address: Option<SocketAddr>,
    tls: Option<TlsAcceptor>,
    options: GateOptions,
}

impl fmt::Debug for BoundGate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("BoundGate").field("options", &self.options).finish_non_exhaustive()
    }
}

impl BoundGate {
    /// Checks the options, reads the certificate and takes the addresses, so that a port in use shows before anything
    /// else is started.
    pub async fn bind(options: &GateOptions) -> Result<Self, GateError> {
        options.validate()?;
        let tls = tls::acceptor(options)?;
        let (frames, local_address) = listen("gate.listen", options.listen).await?;
        let (websocket, websocket_address) = match options.websocket_listen {
            None => (None, None),
            Some(address) => {
                let (listener, address) = listen("gate.websocket_listen", address).await?;
                (Some(listener), Some(address))
            }
        };
        Ok(Self {
            listeners: Listeners { frames, websocket },
            local_address,
            websocket_address,
            tls,
            options: options.clone(),
        })
    }

    /// Where clients connect to: with port 0 in the options, the port that the system chose.
    pub fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    /// Where clients connect to that speak WebSocket, if there is a port for them.
    pub fn websocket_address(&self) -> Option<SocketAddr> {
        self.websocket_address
    }

    /// Starts to let clients in. Must be called within a tokio runtime.
    pub fn open<S: GateSink>(self, connections: Connections, sink: Arc<S>) -> Gate {
        let (stop, stopped) = oneshot::channel();
        let Self { listeners, local_address, websocket_address, tls, options } = self;
        let terms = Arc::new(Terms { options, tls, sink });
        let acceptor = tokio::spawn(run(listeners, terms, connections, async move {
            // A gate that was dropped without a stop stops as well.
            let _ = stopped.await;
        }));
        Gate { local_address, websocket_address, stop, acceptor }
    }
}

async fn listen(key: &'static str, address: SocketAddr) -> Result<(TcpListener, SocketAddr), GateError> {
    let failed = |error| GateError::Bind { key, address, error };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let local_address = listener.local_addr().map_err(failed)?;
    Ok((listener, local_address))
}

/// A gate that lets clients in, until it is stopped or dropped.
#[derive(Debug)]
pub struct Gate {
    local_address: SocketAddr,
    websocket_address: Option<SocketAddr>,
    stop: oneshot::Sender<()>,
    acceptor: JoinHandle<()>,
}

impl Gate {
    /// Where clients connect to: with port 0 in the options, the port that the system chose.
    pub fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    /// Where clients connect to that speak WebSocket, if there is a port for them.
    pub fn websocket_address(&self) -> Option<SocketAddr> {
        self.websocket_address
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

/// Where clients come from: the listeners, or in a test one that fails.
trait AcceptSource: Send + 'static {
    fn accept(&mut self) -> impl Future<Output = io::Result<Arrival>> + Send;
}

/// A client at the door.
struct Arrival {
    socket: TcpStream,
    peer: SocketAddr,
    framing: Framing,
}

/// The two ports.
struct Listeners {
    frames: TcpListener,
    websocket: Option<TcpListener>,
}

impl AcceptSource for Listeners {
    async fn accept(&mut self) -> io::Result<Arrival> {
        let by_websocket = async {
            match &self.websocket {
                Some(listener) => listener.accept().await,
                None => pending().await,
            }
        };
        // Whichever is looked at first is left to chance, so that a rush at one port does not close the other.
        let ((socket, peer), framing) = tokio::select! {
            accepted = self.frames.accept() => (accepted?, Framing::Lengths),
            accepted = by_websocket => (accepted?, Framing::WebSocket),
        };
        Ok(Arrival { socket, peer, framing })
    }
}

async fn run<S: GateSink>(
    mut source: impl AcceptSource,
    terms: Arc<Terms<S>>,
    connections: Connections,
    stopped: impl Future<Output = ()>,
) {
    let mut tasks = JoinSet::new();
    tasks.spawn(connections.clone().flush_for_ever());
    let GateOptions { max_connects_per_second, max_connections, .. } = terms.options;
    let mut arrivals = Arrivals::new(max_connects_per_second, max_connections);
    let mut stopped = std::pin::pin!(stopped);
    loop {
        tokio::select! {
            biased;
            () = &mut stopped => break,
            // Finished tasks are taken as they end, or their results would pile up.
            Some(ended) = tasks.join_next() => report(ended),
            arrival = arrivals.next() => admit(arrival, &terms, &connections, &mut tasks),
            accepted = source.accept() => match accepted {
                Ok(arrival) => match arrivals.come(arrival.peer.ip(), arrival, Instant::now()) {
                    Turn::Now(arrival) => admit(arrival, &terms, &connections, &mut tasks),
                    Turn::Later => {}
                    Turn::Never => drop(connections.counters().refused.fetch_add(1, Relaxed)),
                },
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
    drop((source, arrivals));
    connections.close_all(CloseReason::Stopping);
    let all_gone = async {
        // The flusher never ends by itself.
        while tasks.len() > 1 {
            if let Some(ended) = tasks.join_next().await {
                report(ended);
            }
        }
    };
    if timeout(terms.options.drain_timeout() + STOP_MARGIN, all_gone).await.is_err() {
        tracing::warn!(connections = tasks.len() - 1, "the gate stopped before all its connections were done");
    }
    tasks.shutdown().await;
}

fn admit<S: GateSink>(arrival: Arrival, terms: &Arc<Terms<S>>, connections: &Connections, tasks: &mut JoinSet<()>) {
    let Arrival { socket, peer, framing } = arrival;
    let (counters, limit) = (connections.counters(), terms.options.max_connections);
    if counters.open.load(Relaxed) >= limit as u64 {
        counters.refused.fetch_add(1, Relaxed);
        tracing::debug!(%peer, limit, "client refused: `gate.max_connections` are open");
        return;
    }
    let registered = connections.register_at(framing);
    let (terms, connections) = (Arc::clone(terms), connections.clone());
    tasks.spawn(async move {
        connection::serve(socket, peer, registered, &terms, connections.counters()).await;
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
        async fn accept(&mut self) -> io::Result<Arrival> {
            if self.failures_left > 0 {
                self.failures_left -= 1;
                return Err(io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error()));
            }
            let (socket, peer) = self.listener.accept().await?;
            Ok(Arrival { socket, peer, framing: Framing::Lengths })
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
        let terms = Arc::new(Terms { options, tls: None, sink });
        let gate = tokio::spawn(run(source, terms, connections.clone(), async move {
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
