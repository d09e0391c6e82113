//! What the tests of this room share: sinks that stand in for the loop, a gate on ports of the system's choice and the
//! ways into it, and waiting on conditions under a limit.

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{
    BoundGate, Client, ClientError, CloseReason, ConnectionId, Connections, Door, Gate, GateOptions, GateSink,
    SinkClosed, Trust, lock,
};

/// Waits for `done`, and fails the test if that takes longer than any healthy machine needs.
pub async fn within<T>(done: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(30), done).await.expect("the condition was not met within 30 s")
}

/// Waits until `condition` holds, looking again whenever the runtime has had its turn.
pub async fn until(mut condition: impl FnMut() -> bool) {
    within(async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Keeps the runtime busy, so that the paused clock moves only when the test moves it.
pub fn keep_the_clock_still() -> tokio::task::JoinHandle<()> {
    tokio::spawn(async {
        loop {
            tokio::task::yield_now().await;
        }
    })
}

/// Gives the runtime so many turns that it has looked at its sockets, several times. While the clock is kept still nothing
/// else makes it look.
pub async fn let_bytes_arrive() {
    for _ in 0..500 {
        tokio::task::yield_now().await;
    }
}

/// Options with the listener on a free port.
pub fn options() -> GateOptions {
    GateOptions { listen: "127.0.0.1:0".parse().unwrap(), ..GateOptions::default() }
}

/// A running gate over an [`EchoSink`].
pub async fn open(options: GateOptions) -> (Gate, Connections, Arc<EchoSink>) {
    let connections = Connections::new(&options, 1);
    let sink = EchoSink::shared(&connections);
    let gate = BoundGate::bind(&options).await.unwrap().open(connections.clone(), Arc::clone(&sink));
    (gate, connections, sink)
}

/// A certificate for this machine that vouches for itself, and its key.
pub struct Certificate {
    folder: TempDir,
}

impl Certificate {
    pub fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let certificate = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::write(certificate.file(), made.cert.pem()).unwrap();
        std::fs::write(certificate.key(), made.signing_key.serialize_pem()).unwrap();
        certificate
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self) -> PathBuf {
        self.folder.path().join("gate.crt")
    }

    pub fn key(&self) -> PathBuf {
        self.folder.path().join("gate.key")
    }
}

/// One of the ways into a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    pub tls: bool,
    pub websocket: bool,
}

impl Way {
    pub const ALL: [Self; 4] = [
        Self { tls: false, websocket: false },
        Self { tls: false, websocket: true },
        Self { tls: true, websocket: false },
        Self { tls: true, websocket: true },
    ];
}

/// A running gate over an [`EchoSink`] with both ports, and one of the ways into it.
pub struct GateBy {
    pub way: Way,
    pub gate: Gate,
    pub connections: Connections,
    pub sink: Arc<EchoSink>,
    door: Door,
}

impl GateBy {
    pub async fn open(way: Way, limits: GateOptions) -> Self {
        let mut gate_options =
            GateOptions { listen: options().listen, websocket_listen: Some(options().listen), ..limits };
        let mut door = Door { tls: None, websocket: way.websocket };
        if way.tls {
            let certificate = Certificate::new();
            gate_options.tls_certificate = Some(certificate.file());
            gate_options.tls_key = Some(certificate.key());
            door.tls = Some(Trust::authorities(&certificate.file()).unwrap());
            let (gate, connections, sink) = open(gate_options).await;
            return Self { way, gate, connections, sink, door };
        }
        let (gate, connections, sink) = open(gate_options).await;
        Self { way, gate, connections, sink, door }
    }

    pub fn address(&self) -> SocketAddr {
        if self.way.websocket { self.gate.websocket_address().unwrap() } else { self.gate.local_address() }
    }

    /// A client that is let in.
    pub async fn client(&self) -> Client {
        within(Client::connect_by(&self.door, &self.address().to_string())).await.unwrap()
    }

    /// A client that has been answered.
    pub async fn good_client(&self) -> Client {
        let mut good = self.client().await;
        assert!(echo(&mut good, b"hello").await.unwrap().is_some());
        good
    }

    /// A client that has said nothing yet, not even of TLS or WebSocket.
    pub async fn stranger(&self) -> TcpStream {
        let stranger = TcpStream::connect(self.address()).await.unwrap();
        // Or what it writes would wait for the system's clock, which no test moves.
        stranger.set_nodelay(true).unwrap();
        stranger
    }

    /// Waits until exactly one connection ended for `reason`, and then checks that `good` is still served.
    pub async fn cut_off_alone(&self, reason: CloseReason, good: &mut Client) {
        until(|| self.connections.snapshot().closed_for(reason) == 1).await;
        let snapshot = self.connections.snapshot();
        assert_eq!((snapshot.open, snapshot.closed), (1, 1), "by {:?}: {snapshot:?}", self.way);
        assert_eq!(snapshot.websocket, u64::from(self.way.websocket));
        assert_eq!(echo(good, b"me too?").await.unwrap().as_deref(), Some(b"me too?".as_slice()));
    }

    pub async fn stop(self) {
        within(self.gate.stop()).await;
        let snapshot = self.connections.snapshot();
        assert_eq!((snapshot.open, snapshot.websocket), (0, 0));
    }
}

/// Reads until the gate ends the connection, however rudely, and returns how many frames came before.
pub async fn frames_until_end(client: &mut Client) -> usize {
    within(async {
        let mut frames = 0;
        while let Ok(Some(_)) = client.receive().await {
            frames += 1;
        }
        frames
    })
    .await
}

/// Sends `payload` and waits for its echo.
pub async fn echo(client: &mut Client, payload: &[u8]) -> Result<Option<Bytes>, ClientError> {
    client.send(payload).await?;
    within(client.receive()).await
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    Connected,
    Packet(Bytes),
    Disconnected(CloseReason),
}

/// Sends every packet back, and remembers what happened to whom.
pub struct EchoSink {
    connections: Connections,
    happenings: Mutex<Vec<(ConnectionId, Happening)>>,
    /// One permit for each packet that may be admitted; plenty unless the test takes them away.
    pub room: Semaphore,
}

impl EchoSink {
    pub fn shared(connections: &Connections) -> Arc<Self> {
        Arc::new(Self {
            connections: connections.clone(),
            happenings: Mutex::default(),
            room: Semaphore::new(Semaphore::MAX_PERMITS / 2),
        })
    }

    /// All that happened to one connection, in order.
    pub fn of(&self, connection: ConnectionId) -> Vec<Happening> {
        let happenings = lock(&self.happenings);
        happenings.iter().filter(|(whose, _)| *whose == connection).map(|(_, what)| what.clone()).collect()
    }

    /// How many packets were admitted from one connection.
    pub fn packets_of(&self, connection: ConnectionId) -> usize {
        self.of(connection).iter().filter(|what| matches!(what, Happening::Packet(_))).count()
    }

    /// The reason for which a connection was reported gone, once it was.
    pub fn ended(&self, connection: ConnectionId) -> Option<CloseReason> {
        self.of(connection).iter().find_map(|what| match what {
            Happening::Disconnected(reason) => Some(*reason),
            _ => None,
        })
    }

    fn note(&self, connection: ConnectionId, what: Happening) {
        lock(&self.happenings).push((connection, what));
    }
}

impl GateSink for EchoSink {
    async fn connected(&self, connection: ConnectionId, _: SocketAddr) -> Result<(), SinkClosed> {
        self.note(connection, Happening::Connected);
        Ok(())
    }

    async fn packet(&self, connection: ConnectionId, payload: Bytes) -> Result<(), SinkClosed> {
        self.room.acquire().await.map_err(|_| SinkClosed)?.forget();
        self.note(connection, Happening::Packet(payload.clone()));
        // The connection may have closed meanwhile; then nobody waits for the echo.
        let _ = self.connections.send(connection, &payload);
        Ok(())
    }

    async fn disconnected(&self, connection: ConnectionId, reason: CloseReason) {
        self.note(connection, Happening::Disconnected(reason));
    }
}
