//! What the tests of this room share: sinks that stand in for the loop, a gate on a port of the system's choice, and
//! waiting on conditions under a limit.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{
    BoundGate, Client, ClientError, CloseReason, ConnectionId, Connections, Gate, GateOptions, GateSink, SinkClosed,
    lock,
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
