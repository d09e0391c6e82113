//! The other end of the gate: a client that connects by any of its doors, sends frames and receives them. The command
//! `client`, the demo's simulated players and the tests use it; the host itself never does.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use thiserror::Error;
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio::time::timeout;
use tokio_rustls::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::frame::{Decoder, FrameTooLarge, MAX_PAYLOAD_BYTES, encode};
use super::stream::{Stream, read_chunk};
use super::tls::Trust;

/// How long the gate may take to answer a good-bye.
const FAREWELL_LIMIT: Duration = Duration::from_secs(1);

/// What a WebSocket client reads into: little, since there may be thousands in one process.
const READ_BUFFER_BYTES: usize = 4 * 1024;

/// Why a client could not connect, send or receive.
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
    /// The gate has closed the connection, and said that something was wrong.
    #[error("the gate closed the connection: {words} ({code})")]
    Refused {
        /// A code of WebSocket.
        code: u16,
        /// What it said.
        words: String,
    },
    /// What came is not WebSocket.
    #[error("this is no WebSocket: {0}")]
    WebSocket(Box<tungstenite::Error>),
    /// The address has no name that a certificate could be for.
    #[error("{0} is no name of a host")]
    NoName(String),
}

impl From<tungstenite::Error> for ClientError {
    fn from(error: tungstenite::Error) -> Self {
        match error {
            tungstenite::Error::Io(error) => Self::Io(error),
            other => Self::WebSocket(Box::new(other)),
        }
    }
}

/// By which of a gate's doors a client comes.
#[derive(Clone, Debug, Default)]
pub struct Door {
    /// Whom it trusts; none for a connection without TLS.
    pub tls: Option<Trust>,
    /// At the port for WebSocket.
    pub websocket: bool,
}

/// A connection to a gate.
#[derive(Debug)]
pub struct Client {
    sender: ClientSender,
    receiver: ClientReceiver,
}

impl Client {
    /// Connects to a gate by its plain door.
    pub async fn connect(address: impl ToSocketAddrs) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self::over_lengths(Stream::Plain(stream)))
    }

    /// Connects to a gate at `HOST:PORT` by the door given.
    pub async fn connect_by(door: &Door, address: &str) -> Result<Self, ClientError> {
        let socket = TcpStream::connect(address).await?;
        Self::connect_over(socket, door, address).await
    }

    /// Goes through the handshakes of a door over a socket that is connected. The gate's certificate must be for the
    /// host of `address`, which is `HOST:PORT`.
    pub async fn connect_over(socket: TcpStream, door: &Door, address: &str) -> Result<Self, ClientError> {
        socket.set_nodelay(true)?;
        let stream = match &door.tls {
            None => Stream::Plain(socket),
            Some(trust) => {
                let secured = trust.connector().connect(name_in(address)?, socket).await?;
                Stream::Tls(Box::new(TlsStream::Client(secured)))
            }
        };
        if !door.websocket {
            return Ok(Self::over_lengths(stream));
        }
        let scheme = if door.tls.is_some() { "wss" } else { "ws" };
        let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER_BYTES).write_buffer_size(0);
        let (socket, _) = client_async_with_config(format!("{scheme}://{address}/"), stream, Some(config)).await?;
        let (sink, source) = socket.split();
        Ok(Self {
            sender: ClientSender { way: SendingWay::WebSocket(sink) },
            receiver: ClientReceiver { way: ReceivingWay::WebSocket(source) },
        })
    }

    fn over_lengths(stream: Stream) -> Self {
        let (read_half, write_half) = split(stream);
        let decoder = Decoder::new(MAX_PAYLOAD_BYTES);
        Self {
            sender: ClientSender { way: SendingWay::Lengths { half: write_half, buffer: BytesMut::new() } },
            receiver: ClientReceiver { way: ReceivingWay::Lengths { half: read_half, decoder } },
        }
    }

    /// See [`ClientSender::send`].
    pub async fn send(&mut self, payload: &[u8]) -> Result<(), ClientError> {
        self.sender.send(payload).await
    }

    /// See [`ClientReceiver::receive`].
    pub async fn receive(&mut self) -> Result<Option<Bytes>, ClientError> {
        self.receiver.receive().await
    }

    /// Both directions apart, for two tasks. The connection ends when both are dropped.
    pub fn into_split(self) -> (ClientSender, ClientReceiver) {
        (self.sender, self.receiver)
    }
}

/// The name that a certificate must be for, out of `HOST:PORT`.
fn name_in(address: &str) -> Result<ServerName<'static>, ClientError> {
    let named = match address.parse::<SocketAddr>() {
        Ok(address) => Ok(ServerName::from(address.ip())),
        Err(_) => {
            let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
            ServerName::try_from(host.to_owned())
        }
    };
    named.map_err(|_| ClientError::NoName(address.to_owned()))
}

/// The sending direction of a [`Client`].
#[derive(Debug)]
pub struct ClientSender {
    way: SendingWay,
}

#[derive(Debug)]
enum SendingWay {
    Lengths { half: WriteHalf<Stream>, buffer: BytesMut },
    WebSocket(SplitSink<WebSocketStream<Stream>, Message>),
}

impl ClientSender {
    /// Sends one frame. If this is dropped before it completes, part of the frame may have been sent.
    pub async fn send(&mut self, payload: &[u8]) -> Result<(), ClientError> {
        match &mut self.way {
            SendingWay::Lengths { half, buffer } => {
                buffer.clear();
                encode(payload, buffer)?;
                half.write_all(buffer).await?;
                Ok(half.flush().await?)
            }
            SendingWay::WebSocket(sink) => {
                let (payload_bytes, limit_bytes) = (payload.len(), MAX_PAYLOAD_BYTES);
                if payload_bytes > limit_bytes {
                    return Err(FrameTooLarge { payload_bytes, limit_bytes }.into());
                }
                Ok(sink.send(Message::Binary(Bytes::copy_from_slice(payload))).await?)
            }
        }
    }

    /// Sends bytes as they are, framed or not: for tests that play a broken client at the port for frames.
    pub async fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.way {
            SendingWay::Lengths { half, .. } => {
                half.write_all(bytes).await?;
                half.flush().await
            }
            SendingWay::WebSocket(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Says that nothing more will be sent. The gate then ends its side too.
    pub async fn finish(&mut self) -> Result<(), ClientError> {
        match &mut self.way {
            SendingWay::Lengths { half, .. } => Ok(half.shutdown().await?),
            SendingWay::WebSocket(sink) => {
                let farewell = CloseFrame { code: CloseCode::Normal, reason: "".into() };
                Ok(sink.send(Message::Close(Some(farewell))).await?)
            }
        }
    }
}

/// The receiving direction of a [`Client`].
#[derive(Debug)]
pub struct ClientReceiver {
    way: ReceivingWay,
}

#[derive(Debug)]
enum ReceivingWay {
    Lengths { half: ReadHalf<Stream>, decoder: Decoder },
    WebSocket(SplitStream<WebSocketStream<Stream>>),
}

impl ClientReceiver {
    /// The next frame, or `None` when the gate has ended the connection. Dropped before it completes, it loses nothing.
    pub async fn receive(&mut self) -> Result<Option<Bytes>, ClientError> {
        match &mut self.way {
            ReceivingWay::Lengths { half, decoder } => loop {
                if let Some(payload) = decoder.next_frame()? {
                    return Ok(Some(payload));
                }
                if read_chunk(half, |bytes| decoder.append(bytes)).await? == 0 {
                    return if decoder.is_between_frames() { Ok(None) } else { Err(ClientError::CutShort) };
                }
            },
            ReceivingWay::WebSocket(source) => loop {
                match source.next().await {
                    Some(Ok(Message::Binary(payload))) => return Ok(Some(payload)),
                    Some(Ok(Message::Close(farewell))) => {
                        // The next look sends the answer.
                        let _ = timeout(FAREWELL_LIMIT, source.next()).await;
                        return told(farewell);
                    }
                    Some(Ok(_)) => {}
                    Some(Err(tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed)) | None => {
                        return Ok(None);
                    }
                    Some(Err(error)) => return Err(error.into()),
                }
            },
        }
    }
}

/// An end, or an error where the gate said that it is one.
fn told(farewell: Option<CloseFrame>) -> Result<Option<Bytes>, ClientError> {
    match farewell {
        Some(CloseFrame { code, reason }) if !matches!(code, CloseCode::Normal | CloseCode::Away) => {
            Err(ClientError::Refused { code: code.into(), words: reason.as_str().to_owned() })
        }
        _ => Ok(None),
    }
}
