//! The other end of the gate: a small client that connects, sends frames and receives them. The demo's simulated
//! players and the tests use it; the host itself never does.

use std::io;

use bytes::{Bytes, BytesMut};
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpStream, ToSocketAddrs};

use super::frame::{Decoder, FrameTooLarge, MAX_PAYLOAD_BYTES, encode};

/// Why a client could not send or receive.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The connection failed.
    #[error("the connection to the gate failed: {0}")]
    Io(#[from] io::Error),
    /// The payload does not fit a frame.
    #[error(transparent)]
    TooLarge(#[from] FrameTooLarge),
    /// The stream ended within a frame.
    #[error("the gate ended the connection within a frame")]
    CutShort,
}

/// A connection to a gate.
#[derive(Debug)]
pub struct Client {
    sender: ClientSender,
    receiver: ClientReceiver,
}

impl Client {
    /// Connects to a gate.
    pub async fn connect(address: impl ToSocketAddrs) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (read_half, write_half) = stream.into_split();
        Ok(Self {
            sender: ClientSender { half: write_half, buffer: BytesMut::new() },
            receiver: ClientReceiver { half: read_half, decoder: Decoder::new(MAX_PAYLOAD_BYTES) },
        })
    }

    /// See [`ClientSender::send`].
    pub async fn send(&mut self, payload: &[u8]) -> Result<(), ClientError> {
        self.sender.send(payload).await
    }

    /// See [`ClientReceiver::receive`].
    pub async fn receive(&mut self) -> Result<Option<Bytes>, ClientError> {
        self.receiver.receive().await
    }

    /// Both directions apart, for two tasks.
    pub fn into_split(self) -> (ClientSender, ClientReceiver) {
        (self.sender, self.receiver)
    }
}

/// The sending direction of a [`Client`]. Dropping it ends the stream to the gate.
#[derive(Debug)]
pub struct ClientSender {
    half: OwnedWriteHalf,
    buffer: BytesMut,
}

impl ClientSender {
    /// Sends one frame. If this is dropped before it completes, part of the frame may have been sent.
    pub async fn send(&mut self, payload: &[u8]) -> Result<(), ClientError> {
        self.buffer.clear();
        encode(payload, &mut self.buffer)?;
        Ok(self.half.write_all(&self.buffer).await?)
    }

    /// Sends bytes as they are, framed or not: for tests that play a broken client.
    pub async fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.half.write_all(bytes).await
    }
}

/// The receiving direction of a [`Client`].
#[derive(Debug)]
pub struct ClientReceiver {
    half: OwnedReadHalf,
    decoder: Decoder,
}

impl ClientReceiver {
    /// The next frame, or `None` when the gate has ended the connection. Dropped before it completes, it loses nothing.
    pub async fn receive(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            if let Some(payload) = self.decoder.next_frame()? {
                return Ok(Some(payload));
            }
            if self.half.read_buf(self.decoder.space()).await? == 0 {
                return if self.decoder.is_between_frames() { Ok(None) } else { Err(ClientError::CutShort) };
            }
        }
    }
}
