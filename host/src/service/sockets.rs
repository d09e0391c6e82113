//! The connections that one service has opened to other hosts. Nothing here makes the service wait: what comes of a socket
//! arrives in its mailbox as messages from the host, in order, and while the mailbox has no room the socket is not read,
//! so that a slow service slows its peer down. All sockets are closed when this is dropped, which is when the service
//! ends.
//!
//! Grants are compared with the host as the service writes it, before any name is looked up.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rustc_hash::FxHashMap;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::handle::Handle;
use super::member::Member;
use super::message::{Message, Place, Subject};
use super::services::Services;
use crate::guest::contract::sim::sockets::SocketError;

/// Sockets of one service, those included that it has closed and that still have something to send.
const MAX_SOCKETS: usize = 64;

/// Bytes that may wait to be sent to one peer.
const MAX_WAITING_BYTES: usize = 1024 * 1024;

/// How long a connection may take to come about.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How long a socket that the service has closed may take to send what waits.
const LINGER_LIMIT: Duration = Duration::from_secs(10);

/// The most bytes of one message.
const MAX_READ_BYTES: usize = 16 * 1024;

/// Messages of one socket that the service has not handled. Beyond that the socket is not read, however much room the
/// mailbox has, so that one peer cannot fill it alone.
const MAX_UNHANDLED: u32 = 64;

/// The sockets of one service.
pub struct Sockets {
    services: Services,
    member: Arc<Member>,
    /// `HOST:PORT`, or `HOST:*` for all ports.
    grants: Vec<String>,
    places: Arc<Semaphore>,
    open: FxHashMap<u64, Socket>,
}

/// A socket as the service has it.
struct Socket {
    outgoing: Arc<Outgoing>,
    task: AbortHandle,
    /// The service has heard that it is over, and hears nothing more of it.
    is_end_heard: bool,
}

/// What a service and the task of its socket share.
#[derive(Default)]
struct Outgoing {
    state: Mutex<State>,
    /// Tells the task that there is something to send, or that it is to close.
    changed: Notify,
}

#[derive(Default)]
struct State {
    waiting: BytesMut,
    /// What the task has taken and not written yet: it counts as waiting.
    being_written_bytes: usize,
    /// The service has closed it: what waits is sent, and nothing more is told.
    is_closed: bool,
    /// It has come to its end by itself.
    is_over: bool,
    /// The message that says so is on its way.
    is_end_told: bool,
}

impl Sockets {
    /// None yet, for a service that may connect to `grants`.
    pub fn new(services: &Services, member: &Arc<Member>, grants: &[String]) -> Self {
        Self {
            services: services.clone(),
            member: Arc::clone(member),
            grants: grants.to_vec(),
            places: Arc::new(Semaphore::new(MAX_SOCKETS)),
            open: FxHashMap::default(),
        }
    }

    /// Opens a connection. What comes of it arrives as messages.
    pub fn connect(&mut self, host: &str, port: u16) -> Result<u64, SocketError> {
        let place = format!("{host}:{port}");
        let any_port = format!("{host}:*");
        if !self.grants.iter().any(|grant| *grant == place || *grant == any_port) {
            return Err(SocketError::NotGranted(format!("add {place:?} to the guest's `sockets`")));
        }
        self.open.retain(|_, socket| !socket.is_end_heard);
        let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() else {
            return Err(SocketError::TooMany(MAX_SOCKETS as u32));
        };
        let id = self.services.new_number();
        if self.services.shared.is_trial {
            return Ok(id);
        }
        let outgoing = Arc::new(Outgoing::default());
        let task = Task {
            id,
            member: Arc::clone(&self.member),
            outgoing: Arc::clone(&outgoing),
            places: Arc::new(Semaphore::new(MAX_UNHANDLED as usize)),
            max_read_bytes: MAX_READ_BYTES.min(self.services.max_payload_bytes()),
            _socket: permit,
        };
        let task = self.services.runtime().spawn(task.run(host.to_owned(), port)).abort_handle();
        self.open.insert(id, Socket { outgoing, task, is_end_heard: false });
        Ok(id)
    }

    /// Sends bytes, once the connection is open.
    pub fn send(&mut self, socket: u64, bytes: Bytes) -> Result<(), SocketError> {
        let socket = self.open.get(&socket).ok_or(SocketError::Closed)?;
        let mut state = socket.outgoing.lock();
        if state.is_over {
            return Err(SocketError::Closed);
        }
        if state.waiting.len() + state.being_written_bytes + bytes.len() > MAX_WAITING_BYTES {
            return Err(SocketError::TooMuch(MAX_WAITING_BYTES as u32));
        }
        state.waiting.extend_from_slice(&bytes);
        drop(state);
        socket.outgoing.changed.notify_one();
        Ok(())
    }

    /// Closes a socket after what was sent before. False when it is closed already.
    pub fn close(&mut self, socket: u64) -> bool {
        let Some(socket) = self.open.remove(&socket) else { return false };
        let mut state = socket.outgoing.lock();
        state.is_closed = true;
        let was_open = !state.is_over;
        drop(state);
        socket.outgoing.changed.notify_one();
        was_open
    }

    /// Whether the service still hears of a socket: messages about one that it has closed may lie in its mailbox. From
    /// the one on that says that it is over, nothing can be sent.
    pub(super) fn wants(&mut self, subject: &Subject) -> bool {
        match subject {
            Subject::SocketConnected(id) | Subject::SocketData(id) => self.open.contains_key(id),
            Subject::SocketClosed(id) => {
                let Some(socket) = self.open.get_mut(id) else { return false };
                socket.is_end_heard = true;
                socket.outgoing.lock().is_over = true;
                true
            }
            _ => true,
        }
    }
}

/// A socket that the service has closed before it ended still sends what waits.
impl Drop for Sockets {
    fn drop(&mut self) {
        self.open.values().for_each(|socket| socket.task.abort());
    }
}

impl Outgoing {
    fn lock(&self) -> MutexGuard<'_, State> {
        // What it guards is whole between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves what waits into `into`, which must be empty; false if nothing does. What was taken before counts as written.
    fn take(&self, into: &mut BytesMut) -> bool {
        let mut state = self.lock();
        std::mem::swap(&mut state.waiting, into);
        state.being_written_bytes = into.len();
        !into.is_empty()
    }
}

/// The life of one socket.
struct Task {
    id: u64,
    member: Arc<Member>,
    outgoing: Arc<Outgoing>,
    /// A message takes one, and gives it back when it has been handled.
    places: Arc<Semaphore>,
    max_read_bytes: usize,
    /// Given back when it is over.
    _socket: OwnedSemaphorePermit,
}

/// The service takes nothing more: it has closed the socket, or has ended.
struct Unheard;

/// What ends the time in which the service hears of a socket.
enum Ended {
    /// The network, for this reason.
    Itself(String),
    /// The peer sends nothing more, and the service has taken that in.
    Peer,
    Service,
}

impl Task {
    async fn run(self, host: String, port: u16) {
        let connected = timeout(CONNECT_LIMIT, TcpStream::connect((host.as_str(), port))).await;
        let failed = match connected {
            Ok(Ok(stream)) => match self.tell_unless_closed(Subject::SocketConnected(self.id), Bytes::new()).await {
                Ok(()) => return self.converse(stream).await,
                Err(Unheard) => return self.send_the_rest(stream.into_split().1, BytesMut::new()).await,
            },
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", CONNECT_LIMIT.as_secs()),
        };
        self.end(failed).await;
    }

    /// Reads and writes until one side has enough.
    async fn converse(self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let (mut reader, mut writer) = stream.into_split();
        // Here, so that what was taken is not lost when the writing is broken off for the end.
        let mut taken = BytesMut::new();
        let ended = tokio::select! {
            ended = self.read(&mut reader) => ended,
            ended = self.write(&mut writer, &mut taken) => ended,
        };
        match ended {
            Ended::Itself(reason) => self.end(reason).await,
            Ended::Peer | Ended::Service => self.send_the_rest(writer, taken).await,
        }
    }

    /// Hands on what comes, as fast as the service has room for it.
    async fn read(&self, reader: &mut OwnedReadHalf) -> Ended {
        loop {
            if let Err(error) = reader.readable().await {
                return Ended::Itself(error.to_string());
            }
            let place = self.place().await;
            // Only now, so that an idle socket has none.
            let mut buffer = BytesMut::with_capacity(self.max_read_bytes);
            match reader.try_read_buf(&mut buffer) {
                Ok(0) => return self.hear_the_end(place).await,
                Ok(_) => {}
                // Readiness may be stale; the next wait corrects that.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Ended::Itself(error.to_string()),
            }
            // A message that waits must not hold many times its length.
            let is_full = buffer.len() > self.max_read_bytes / 2;
            let data = if is_full { buffer.freeze() } else { Bytes::copy_from_slice(&buffer) };
            if self.tell(Subject::SocketData(self.id), data, place).await.is_err() {
                return Ended::Service;
            }
        }
    }

    /// The peer sends nothing more, but may still want answers: it gets what the service sends until it has taken in all
    /// that came, and that it is over.
    async fn hear_the_end(&self, place: Option<Place>) -> Ended {
        let reason = Bytes::from_static(b"closed by the other side");
        if self.tell(Subject::SocketClosed(self.id), reason, place).await.is_err() {
            return Ended::Service;
        }
        self.outgoing.lock().is_end_told = true;
        let _all = self.places.acquire_many(MAX_UNHANDLED).await;
        self.outgoing.lock().is_over = true;
        Ended::Peer
    }

    /// Sends what the service gives, until it closes the socket.
    async fn write(&self, writer: &mut OwnedWriteHalf, taken: &mut BytesMut) -> Ended {
        loop {
            while !taken.is_empty() || self.outgoing.take(taken) {
                if let Err(error) = writer.write_buf(taken).await {
                    return Ended::Itself(error.to_string());
                }
                self.outgoing.lock().being_written_bytes = taken.len();
            }
            if self.outgoing.lock().is_closed {
                return Ended::Service;
            }
            self.outgoing.changed.notified().await;
        }
    }

    async fn send_the_rest(self, mut writer: OwnedWriteHalf, mut taken: BytesMut) {
        let rest = async {
            while !taken.is_empty() || self.outgoing.take(&mut taken) {
                writer.write_buf(&mut taken).await?;
            }
            writer.shutdown().await
        };
        // Nobody hears of it any more.
        let _ = timeout(LINGER_LIMIT, rest).await;
    }

    /// It is over, and the service is told why.
    async fn end(self, reason: String) {
        let is_told = {
            let mut state = self.outgoing.lock();
            state.is_over = true;
            state.is_end_told
        };
        if !is_told {
            let _ = self.tell_unless_closed(Subject::SocketClosed(self.id), Bytes::from(reason)).await;
        }
    }

    /// Tells the service something as soon as there is room for it, and gives up when it closes the socket before.
    async fn tell_unless_closed(&self, subject: Subject, payload: Bytes) -> Result<(), Unheard> {
        tokio::select! {
            biased;
            () = self.until_closed() => Err(Unheard),
            told = async { self.tell(subject, payload, self.place().await).await } => told,
        }
    }

    /// Ends when the service closes the socket. For times in which nothing is written: whoever writes waits for the same
    /// change.
    async fn until_closed(&self) {
        while !self.outgoing.lock().is_closed {
            self.outgoing.changed.notified().await;
        }
    }

    /// A place for one more message. None cannot be: the places are never closed.
    async fn place(&self) -> Option<Place> {
        let permit = Arc::clone(&self.places).acquire_owned().await.ok()?;
        Some(Place { permit, is_passed_on: false })
    }

    /// Tells the service something as soon as its mailbox has room.
    async fn tell(&self, subject: Subject, payload: Bytes, place: Option<Place>) -> Result<(), Unheard> {
        let message = Message { place, ..Message::new(Handle::HOST, subject, payload) };
        self.member.push_when_there_is_room(message).await.map_err(|_| Unheard)
    }
}

#[cfg(test)]
#[path = "sockets_tests.rs"]
mod tests;
