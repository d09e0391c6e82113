//! The framing of WebSocket (RFC 6455) on the host's side: a payload is a binary message. Connections use it on bytes
//! they have read or are about to write; the handshake before it is in `handshake`. It does no I/O and buffers no more
//! than one message within the limit.

use std::io::{Cursor, Write};

use bytes::{Buf, BufMut, BytesMut};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Control, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{Frame, FrameHeader};

use super::CloseReason;
use super::frame::{FrameTooLarge, MAX_PAYLOAD_BYTES, append, release};
use super::framing::{Incoming, Unreadable};

/// The longest payload of a ping, a pong or a close.
const MAX_CONTROL_BYTES: u64 = 125;

/// Appends `payload` as one binary message, or appends nothing if it is longer than a frame may be.
pub(super) fn encode(payload: &[u8], into: &mut BytesMut) -> Result<(), FrameTooLarge> {
    if payload.len() > MAX_PAYLOAD_BYTES {
        return Err(FrameTooLarge { payload_bytes: payload.len(), limit_bytes: MAX_PAYLOAD_BYTES });
    }
    put(OpCode::Data(Data::Binary), payload, into);
    Ok(())
}

/// Appends the answer to a ping.
pub(super) fn encode_pong(ping: &[u8], into: &mut BytesMut) {
    put(OpCode::Control(Control::Pong), ping, into);
}

/// How many bytes a message, or a pong, with that payload is.
pub(super) fn encoded_bytes(payload: &[u8]) -> usize {
    FrameHeader::default().len(payload.len() as u64) + payload.len()
}

fn put(opcode: OpCode, payload: &[u8], into: &mut BytesMut) {
    into.reserve(encoded_bytes(payload));
    let header = FrameHeader { opcode, ..FrameHeader::default() };
    let mut writer = into.writer();
    // Writing into memory cannot fail.
    let _ = header.format(payload.len() as u64, &mut writer);
    let _ = writer.write_all(payload);
}

/// Cuts a client's bytes, arriving in pieces of any size, into messages.
#[derive(Debug)]
pub(super) struct Decoder {
    arrived: BytesMut,
    /// What has come of a message in parts.
    begun: Option<BytesMut>,
    max_payload_bytes: usize,
    /// Set once: the stream cannot be followed beyond it.
    unreadable: Option<Unreadable>,
}

impl Decoder {
    /// A decoder that refuses messages longer than `max_payload_bytes`.
    pub fn new(max_payload_bytes: usize) -> Self {
        Self { arrived: BytesMut::new(), begun: None, max_payload_bytes, unreadable: None }
    }

    /// Takes the next bytes of the stream.
    pub fn append(&mut self, bytes: &[u8]) {
        append(&mut self.arrived, bytes);
    }

    /// True when no part of an unfinished message is held.
    pub fn is_between_messages(&self) -> bool {
        self.arrived.is_empty() && self.begun.is_none()
    }

    /// The next thing said, or `None` until more bytes arrive. A message that is too long, or is text, is an error as
    /// soon as its header is there.
    pub fn next(&mut self) -> Result<Option<Incoming>, Unreadable> {
        if let Some(unreadable) = self.unreadable {
            return Err(unreadable);
        }
        let next = self.next_frame();
        self.unreadable = next.as_ref().err().copied();
        next
    }

    fn next_frame(&mut self) -> Result<Option<Incoming>, Unreadable> {
        let mut cursor = Cursor::new(&self.arrived[..]);
        let parsed = FrameHeader::parse(&mut cursor).map_err(|_| Unreadable::Malformed)?;
        let header_bytes = cursor.position() as usize;
        let Some((header, payload_bytes)) = parsed else {
            release(&mut self.arrived);
            return Ok(None);
        };
        self.check(&header, payload_bytes)?;
        // What clients send is masked, always.
        let mask = header.mask.ok_or(Unreadable::Malformed)?;
        // No longer than the limit: it fits.
        let payload_bytes = payload_bytes as usize;
        if self.arrived.len() - header_bytes < payload_bytes {
            return Ok(None);
        }
        self.arrived.advance(header_bytes);
        let mut payload = self.arrived.split_to(payload_bytes);
        unmask(&mut payload, mask);
        Ok(Some(match header.opcode {
            OpCode::Control(Control::Ping) => Incoming::Ping(payload.freeze()),
            OpCode::Control(Control::Close) => Incoming::Leaving,
            OpCode::Control(_) => Incoming::Pong,
            OpCode::Data(_) => self.put_together(payload, header.is_final),
        }))
    }

    /// Holds a header against the rules, before any of its payload is waited for.
    fn check(&self, header: &FrameHeader, payload_bytes: u64) -> Result<(), Unreadable> {
        if header.rsv1 || header.rsv2 || header.rsv3 {
            return Err(Unreadable::Malformed);
        }
        match (header.opcode, &self.begun) {
            (OpCode::Control(_), _) if payload_bytes > MAX_CONTROL_BYTES || !header.is_final => {
                Err(Unreadable::Malformed)
            }
            (OpCode::Control(_), _) => Ok(()),
            (OpCode::Data(Data::Text), None) => Err(Unreadable::Text),
            (OpCode::Data(Data::Continue), Some(begun)) => self.check_length(begun.len(), payload_bytes),
            (OpCode::Data(Data::Binary), None) => self.check_length(0, payload_bytes),
            (OpCode::Data(_), _) => Err(Unreadable::Malformed),
        }
    }

    fn check_length(&self, begun_bytes: usize, payload_bytes: u64) -> Result<(), Unreadable> {
        let left = self.max_payload_bytes - begun_bytes;
        if payload_bytes > left as u64 { Err(Unreadable::TooLarge) } else { Ok(()) }
    }

    fn put_together(&mut self, part: BytesMut, is_final: bool) -> Incoming {
        let whole = match self.begun.take() {
            None => part,
            Some(mut begun) => {
                begun.extend_from_slice(&part);
                begun
            }
        };
        if is_final {
            return Incoming::Payload(whole.freeze());
        }
        self.begun = Some(whole);
        Incoming::Part
    }

    /// The close frame for a connection that ends for `reason`; none where the client cannot be told any more.
    pub fn farewell(&self, reason: CloseReason) -> Option<BytesMut> {
        let (code, words) = match (reason, self.unreadable) {
            (CloseReason::ConnectionLost | CloseReason::Backlog, _) => return None,
            (CloseReason::ClientLeft | CloseReason::HostClosed, _) => (CloseCode::Normal, ""),
            (CloseReason::Stopping, _) => (CloseCode::Away, "the host stops"),
            (CloseReason::FrameTooLarge, _) => (CloseCode::Size, "the message is over gate.max_frame_bytes"),
            (CloseReason::FrameRate, _) => (CloseCode::Policy, "more frames than gate.max_frames_per_second"),
            (CloseReason::Idle, _) => (CloseCode::Policy, "no message for gate.idle_timeout_s"),
            (CloseReason::Protocol, Some(Unreadable::Text)) => {
                (CloseCode::Unsupported, "text is not taken here: send binary messages")
            }
            (CloseReason::Protocol, _) => (CloseCode::Protocol, "against the rules of WebSocket"),
        };
        let frame = Frame::close(Some(CloseFrame { code, reason: words.into() }));
        let mut bytes = BytesMut::new();
        // Writing into memory cannot fail.
        let _ = frame.format(&mut (&mut bytes).writer());
        Some(bytes)
    }
}

fn unmask(payload: &mut [u8], mask: [u8; 4]) {
    let mut words = payload.chunks_exact_mut(8);
    let wide = u64::from_ne_bytes([mask[0], mask[1], mask[2], mask[3], mask[0], mask[1], mask[2], mask[3]]);
    for word in &mut words {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(word);
        word.copy_from_slice(&(u64::from_ne_bytes(bytes) ^ wide).to_ne_bytes());
    }
    for (at, byte) in words.into_remainder().iter_mut().enumerate() {
        *byte ^= mask[at % 4];
    }
}
