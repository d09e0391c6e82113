//! How payloads travel over a stream of bytes: behind a length, or as binary messages of WebSocket. A connection encodes
//! and decodes by the framing of the port that it came by, and is otherwise the same wherever it came in. No I/O here.

use bytes::{Bytes, BytesMut};

use super::frame::{self, FrameTooLarge};
use super::{CloseReason, websocket};

/// What the two ports of the gate differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Two bytes of length, then the payload.
    Lengths,
    /// A binary message for each payload.
    WebSocket,
}

impl Framing {
    /// Appends `payload` as the host sends it, or appends nothing if it is too long: what one port can carry the other
    /// can.
    pub fn encode(self, payload: &[u8], into: &mut BytesMut) -> Result<(), FrameTooLarge> {
        match self {
            Self::Lengths => frame::encode(payload, into),
            Self::WebSocket => websocket::encode(payload, into),
        }
    }

    /// How many bytes `payload` is when encoded.
    pub fn encoded_bytes(self, payload: &[u8]) -> usize {
        match self {
            Self::Lengths => frame::HEADER_BYTES + payload.len(),
            Self::WebSocket => websocket::encoded_bytes(payload),
        }
    }

    /// What cuts a client's bytes into payloads of at most that length.
    pub fn decoder(self, max_payload_bytes: usize) -> Decoder {
        match self {
            Self::Lengths => Decoder::Lengths(frame::Decoder::new(max_payload_bytes)),
            Self::WebSocket => Decoder::WebSocket(websocket::Decoder::new(max_payload_bytes)),
        }
    }
}

/// The next thing that a client's bytes say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    /// A whole payload.
    Payload(Bytes),
    /// A ping of WebSocket, to be answered with the same bytes.
    Ping(Bytes),
    /// A pong that nobody waits for: a sign of life.
    Pong,
    /// A part of a message that is not complete yet.
    Part,
    /// The client says that it leaves.
    Leaving,
}

/// Why a stream cannot be followed any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// A payload over the limit.
    TooLarge,
    /// A text message, which no guest has a use for.
    Text,
    /// Against the rules of WebSocket.
    Malformed,
}

impl From<Unreadable> for CloseReason {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::TooLarge => Self::FrameTooLarge,
            Unreadable::Text | Unreadable::Malformed => Self::Protocol,
        }
    }
}

/// Cuts a client's bytes into what they say.
#[derive(Debug)]
pub(super) enum Decoder {
    Lengths(frame::Decoder),
    WebSocket(websocket::Decoder),
}

impl Decoder {
    /// Takes the next bytes of the stream.
    pub fn append(&mut self, bytes: &[u8]) {
        match self {
            Self::Lengths(decoder) => decoder.append(bytes),
            Self::WebSocket(decoder) => decoder.append(bytes),
        }
    }

    /// The next thing said, or `None` until more bytes arrive. An error stays one.
    pub fn next(&mut self) -> Result<Option<Incoming>, Unreadable> {
        match self {
            Self::Lengths(decoder) => {
                decoder.next_frame().map(|frame| frame.map(Incoming::Payload)).map_err(|_| Unreadable::TooLarge)
            }
            Self::WebSocket(decoder) => decoder.next(),
        }
    }

    /// True when no part of an unfinished payload is held, so that the stream may end here.
    pub fn is_between_payloads(&self) -> bool {
        match self {
            Self::Lengths(decoder) => decoder.is_between_frames(),
            Self::WebSocket(decoder) => decoder.is_between_messages(),
        }
    }

    /// What the client is told at the end of a connection that ends for `reason`; nothing where the framing has no
    /// words for it.
    pub fn farewell(&self, reason: CloseReason) -> Option<BytesMut> {
        match self {
            Self::Lengths(_) => None,
            Self::WebSocket(decoder) => decoder.farewell(reason),
        }
    }
}
