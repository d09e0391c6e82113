//! One client's link: a task that reads frames into the sink and writes what the loop has queued, under the limits of
//! the gate. The gate starts one for each client it accepts; a connection knows nothing of the others.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::BytesMut;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, sleep_until, timeout};

use super::connections::Registered;
use super::counters::Counters;
use super::frame::Decoder;
use super::link::Link;
use super::rate::FrameAllowance;
use super::{CloseReason, GateOptions, GateSink};

/// A write buffer that grew beyond this is not kept for the next write: one burst must not cost memory for ever.
const KEEP_BUFFER_BYTES: usize = 16 * 1024;

/// Serves one client from its first to its last byte.
pub(super) async fn serve<S: GateSink>(
    stream: TcpStream,
    peer: SocketAddr,
    registered: Registered,
    options: Arc<GateOptions>,
    counters: &Counters,
    sink: Arc<S>,
) {
    let link = &registered.link;
    tracing::debug!(connection = link.id, %peer, "client connected");
    if sink.connected(link.id, peer).await.is_err() {
        // The drop of `registered` counts it as ended by the stop.
        return;
    }
    // Game frames are small and must not wait for each other. A socket on which this fails is about to fail entirely.
    let _ = stream.set_nodelay(true);
    let (read_half, write_half) = stream.into_split();
    let mut reader = Reader::new(read_half, link, &options, counters);
    let mut writer = Writer::new(write_half, link);
    let ended = tokio::select! {
        reason = reader.run(&*sink) => reason,
        reason = writer.run() => reason,
    };
    let _ = link.close(ended);
    // The loop may have closed it first, for another reason.
    let reason = link.closed().unwrap_or(ended);
    // Clients are strangers: they must not be able to fill the log. The counters tell how many, and why.
    tracing::debug!(connection = link.id, %peer, reason = reason.name(), "client gone");
    let farewell = async {
        if !reason.is_limit() && reason != CloseReason::ConnectionLost {
            // Out of time: the client gets what the system has taken, which is all that can be done.
            let _ = timeout(options.drain_timeout(), writer.drain_then_end(&mut reader)).await;
        }
        drop((reader, writer));
    };
    tokio::join!(farewell, sink.disconnected(link.id, reason));
}

/// The reading half: bytes in, packets to the sink.
struct Reader<'a> {
    half: OwnedReadHalf,
    link: &'a Link,
    options: &'a GateOptions,
    counters: &'a Counters,
    decoder: Decoder,
    allowance: FrameAllowance,
    /// When the client last completed a frame, or the sink last let us read on.
    active_at: Instant,
}

impl<'a> Reader<'a> {
    fn new(half: OwnedReadHalf, link: &'a Link, options: &'a GateOptions, counters: &'a Counters) -> Self {
        let now = Instant::now();
        Self {
            half,
            link,
            options,
            counters,
            decoder: Decoder::new(options.max_frame_bytes),
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
            if let Err(reason) = self.hand_on_frames(sink).await {
                return reason;
            }
            tokio::select! {
                biased;
                reason = self.link.until_closed() => return reason,
                ready = self.half.readable() => match ready.and_then(|()| self.read_some()) {
                    Ok(Read::Some) => {}
                    Ok(Read::End) if self.decoder.is_between_frames() => return CloseReason::ClientLeft,
                    Ok(Read::End) | Err(_) => return CloseReason::ConnectionLost,
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

    /// Gives every whole frame read so far to the sink, waiting for it each time.
    async fn hand_on_frames<S: GateSink>(&mut self, sink: &S) -> Result<(), CloseReason> {
        while let Some(payload) = self.decoder.next_frame().map_err(|_| CloseReason::FrameTooLarge)? {
            let arrived_at = Instant::now();
            if !self.allowance.take(arrived_at) {
                return Err(CloseReason::FrameRate);
            }
            self.counters.frames_in.fetch_add(1, Relaxed);
            self.counters.bytes_in.fetch_add(payload.len() as u64, Relaxed);
            tokio::select! {
                biased;
                admitted = sink.packet(self.link.id, payload) => admitted.map_err(|_| CloseReason::Stopping)?,
                reason = self.link.until_closed() => return Err(reason),
            }
            self.active_at = Instant::now();
            self.allowance.forgive(self.active_at - arrived_at, self.active_at);
        }
        Ok(())
    }

    fn read_some(&mut self) -> io::Result<Read> {
        match self.half.try_read_buf(self.decoder.space()) {
            Ok(0) => Ok(Read::End),
            Ok(_) => Ok(Read::Some),
            // Readiness may be stale; the next wait corrects that.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Read::Some),
            Err(error) => Err(error),
        }
    }

    /// Throws away what still comes until the client ends its stream.
    async fn discard(&mut self) {
        let mut discarded = BytesMut::new();
        while self.half.readable().await.is_ok() {
            discarded.clear();
            discarded.reserve(KEEP_BUFFER_BYTES);
            match self.half.try_read_buf(&mut discarded) {
                Ok(0) => return,
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return,
                Ok(_) | Err(_) => {}
            }
        }
    }
}

enum Read {
    Some,
    End,
}

/// The writing half: what the loop has queued, as many frames in one write as there are.
struct Writer<'a> {
    half: OwnedWriteHalf,
    link: &'a Link,
    /// Taken from the link and not yet written. Kept here so that a write that is dropped half-way can be continued.
    taken: BytesMut,
    taken_is_large: bool,
}

impl<'a> Writer<'a> {
    fn new(half: OwnedWriteHalf, link: &'a Link) -> Self {
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
        Ok(())
    }

    fn take(&mut self) -> bool {
        if self.taken_is_large {
            self.taken = BytesMut::new();
        }
        let any = self.link.take(&mut self.taken);
        self.taken_is_large = self.taken.len() > KEEP_BUFFER_BYTES;
        any
    }

    /// Writes what is queued, ends the stream, and waits for the client to end its own: a socket closed while bytes
    /// from the client lie unread is reset, and a reset may overtake the last frames.
    async fn drain_then_end(&mut self, reader: &mut Reader<'_>) -> io::Result<()> {
        self.write_all_queued().await?;
        self.half.shutdown().await?;
        reader.discard().await;
        Ok(())
    }
}
