//! One client's link: a task that reads payloads into the sink and writes what the loop has queued, under the limits of
//! the gate. The gate starts one for each client it accepts, by whichever port it came; a connection knows nothing of
//! the others.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::{Bytes, BytesMut};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use super::connections::Registered;
use super::counters::Counters;
use super::framing::{Decoder, Incoming};
use super::handshake::{Welcome, reason_of, welcome};
use super::link::{Call, Link};
use super::rate::FrameAllowance;
use super::stream::{Stream, read_chunk};
use super::{CloseReason, GateOptions, GateSink};

/// A write buffer that grew beyond this is not kept for the next write: one burst must not cost memory for ever.
const KEEP_BUFFER_BYTES: usize = 4 * 1024;

/// What is read and thrown away of a client that is told good-bye and goes on sending.
const MAX_DISCARDED_BYTES: usize = 4 * 1024 * 1024;

/// What all connections of a gate have in common.
pub(super) struct Terms<S> {
    pub options: GateOptions,
    pub tls: Option<TlsAcceptor>,
    pub sink: Arc<S>,
}

/// Serves one client from its first to its last byte.
pub(super) async fn serve<S: GateSink>(
    socket: TcpStream,
    peer: SocketAddr,
    registered: Registered,
    terms: &Terms<S>,
    counters: &Counters,
) {
    let Terms { options, tls, sink } = terms;
    let link = &registered.link;
    tracing::debug!(connection = link.id, %peer, "client connected");
    // Game frames are small and must not wait for each other. A socket on which this fails is about to fail entirely.
    let _ = socket.set_nodelay(true);
    if let Some(reason) = gone_already(&socket) {
        // Whoever comes only to go costs the loop nothing, or coming and going would be a way to fill its queue.
        let _ = link.close(reason);
        return;
    }
    let welcomed = tokio::select! {
        biased;
        welcomed = welcome(socket, link.framing, tls.as_ref(), options) => welcomed,
        reason = link.until_closed() => Err(reason),
    };
    let Welcome { stream, early } = match welcomed {
        Ok(welcomed) => welcomed,
        Err(reason) => {
            // The drop of `registered` counts it. The sink has not heard of it and need not hear of its end.
            let _ = link.close(reason);
            tracing::debug!(connection = link.id, %peer, reason = reason.name(), "client gone within its handshake");
            return;
        }
    };
    if sink.connected(link.id, peer).await.is_err() {
        // The drop of `registered` counts it as ended by the stop.
        return;
    }
    let (read_half, write_half) = split(stream);
    let mut reader = Reader::new(read_half, link, options, counters);
    reader.decoder.append(&early);
    drop(early);
    let mut writer = Writer::new(write_half, link);
    let ended = tokio::select! {
        reason = reader.run(&**sink) => reason,
        reason = writer.run() => reason,
    };
    let _ = link.close(ended);
    // The loop may have closed it first, for another reason.
    let reason = link.closed().unwrap_or(ended);
    // Clients are strangers: they must not be able to fill the log. The counters tell how many, and why.
    tracing::debug!(connection = link.id, %peer, reason = reason.name(), "client gone");
    let farewell = async {
        let words = reader.decoder.farewell(reason);
        if words.is_some() || !(reason.is_limit() || reason == CloseReason::ConnectionLost) {
            // Out of time: the client gets what the system has taken, which is all that can be done.
            let _ = timeout(options.drain_timeout(), writer.drain_then_end(words, &mut reader)).await;
        }
        drop((reader, writer));
    };
    tokio::join!(farewell, sink.disconnected(link.id, reason));
}

/// How a client that has just come has left again, if it has.
fn gone_already(socket: &TcpStream) -> Option<CloseReason> {
    match recv(socket, &mut [0_u8], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((_, 0)) => Some(CloseReason::ClientLeft),
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => None,
        Err(_) => Some(CloseReason::ConnectionLost),
    }
}

/// The reading half: bytes in, packets to the sink.
struct Reader<'a> {
    half: ReadHalf<Stream>,
    link: &'a Link,
    options: &'a GateOptions,
    counters: &'a Counters,
    decoder: Decoder,
    allowance: FrameAllowance,
    /// When the client last completed a frame, or the sink last let us read on.
    active_at: Instant,
}

impl<'a> Reader<'a> {
    fn new(half: ReadHalf<Stream>, link: &'a Link, options: &'a GateOptions, counters: &'a Counters) -> Self {
        let now = Instant::now();
        Self {
            half,
            link,
            options,
            counters,
            decoder: link.framing.decoder(options.max_frame_bytes),
            allowance: FrameAllowance::new(options.max_frames_per_second, options.frame_burst, now),
            active_at: now,
        }
    }

    /// Reads until the connection ends, and says why.
    async fn run<S: GateSink>(&mut self, sink: &S) -> CloseReason {
        let idle_timeout = self.options.idle_timeout();
        // Set anew only when it fires: an active client does not touch the timer at every frame.
        let mut idle = pin!(sleep_until(self.active_at + idle_timeout));
        loop {
            if let Err(reason) = self.hand_on(sink).await {
                return reason;
            }
            tokio::select! {
                biased;
                reason = self.link.until_closed() => return reason,
                read = read_chunk(&mut self.half, |bytes| self.decoder.append(bytes)) => match read {
                    Ok(0) if self.decoder.is_between_payloads() => return CloseReason::ClientLeft,
                    Ok(0) => return CloseReason::ConnectionLost,
                    Ok(_) => {}
                    Err(error) => return reason_of(&error),
                },
                () = &mut idle => {
                    let deadline = self.active_at + idle_timeout;
                    if deadline <= Instant::now() {
                        return CloseReason::Idle;
                    }
                    idle.as_mut().reset(deadline);
                }
            }
        }
    }

    /// Does what the bytes read so far say, as far as they say whole things.
    async fn hand_on<S: GateSink>(&mut self, sink: &S) -> Result<(), CloseReason> {
        while let Some(incoming) = self.decoder.next()? {
            let arrived_at = Instant::now();
            // Parts and pings count too, or they would be the way around the limit.
            if !self.allowance.take(arrived_at) {
                return Err(CloseReason::FrameRate);
            }
            match incoming {
                Incoming::Payload(payload) => self.hand_on_payload(payload, arrived_at, sink).await?,
                Incoming::Ping(payload) => {
                    self.active_at = arrived_at;
                    if self.link.push_pong(&payload) == Call::Needed {
                        self.link.call();
                    }
                }
                Incoming::Pong => self.active_at = arrived_at,
                // It completes nothing, and so is no sign of life.
                Incoming::Part => {}
                Incoming::Leaving => return Err(CloseReason::ClientLeft),
            }
        }
        Ok(())
    }

    /// Gives a payload to the sink, and waits until it is taken.
    async fn hand_on_payload<S: GateSink>(
        &mut self,
        payload: Bytes,
        arrived_at: Instant,
        sink: &S,
    ) -> Result<(), CloseReason> {
        self.counters.frames_in.fetch_add(1, Relaxed);
        self.counters.bytes_in.fetch_add(payload.len() as u64, Relaxed);
        tokio::select! {
            biased;
            admitted = sink.packet(self.link.id, payload) => admitted.map_err(|_| CloseReason::Stopping)?,
            reason = self.link.until_closed() => return Err(reason),
        }
        self.active_at = Instant::now();
        self.allowance.forgive(self.active_at - arrived_at, self.active_at);
        Ok(())
    }

    /// Throws away what still comes until the client ends its stream, or has sent more than one may who is leaving.
    async fn discard(&mut self) {
        let mut discarded_bytes = 0;
        while discarded_bytes < MAX_DISCARDED_BYTES {
            match read_chunk(&mut self.half, |_| {}).await {
                Ok(0) | Err(_) => return,
                Ok(bytes) => discarded_bytes += bytes,
            }
        }
    }
}

/// The writing half: what the loop has queued, as many frames in one write as there are.
struct Writer<'a> {
    half: WriteHalf<Stream>,
    link: &'a Link,
    /// Taken from the link and not yet written. Kept here so that a write that is dropped half-way can be continued.
    taken: BytesMut,
    taken_is_large: bool,
}

impl<'a> Writer<'a> {
    fn new(half: WriteHalf<Stream>, link: &'a Link) -> Self {
        Self { half, link, taken: BytesMut::new(), taken_is_large: false }
    }

    /// Writes whatever is queued, until the connection breaks.
    async fn run(&mut self) -> CloseReason {
        loop {
            if self.write_all_queued().await.is_err() {
                return CloseReason::ConnectionLost;
            }
            self.link.until_called().await;
        }
    }

    async fn write_all_queued(&mut self) -> io::Result<()> {
        while !self.taken.is_empty() || self.take() {
            if self.half.write_buf(&mut self.taken).await? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.link.wrote_all_but(self.taken.len());
        }
        // TLS may have taken bytes that the socket has not.
        self.half.flush().await
    }

    fn take(&mut self) -> bool {
        if self.taken_is_large {
            self.taken = BytesMut::new();
        }
        let any = self.link.take(&mut self.taken);
        self.taken_is_large = self.taken.len() > KEEP_BUFFER_BYTES;
        any
    }

    /// Writes what is queued and the last words, ends the stream, and waits for the client to end its own: a socket
    /// closed while bytes from the client lie unread is reset, and a reset may overtake the last frames.
    async fn drain_then_end(&mut self, words: Option<BytesMut>, reader: &mut Reader<'_>) -> io::Result<()> {
        self.write_all_queued().await?;
        if let Some(mut words) = words {
            self.half.write_all_buf(&mut words).await?;
        }
        self.half.shutdown().await?;
        reader.discard().await;
        Ok(())
    }
}
