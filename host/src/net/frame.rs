//! The framing of the client protocol: a two-byte big-endian length, then that many bytes of payload. Connections and
//! the client use it on bytes they have read or are about to write; it does no I/O and never looks at a payload.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use thiserror::Error;

/// Length of the prefix, in bytes.
pub const HEADER_BYTES: usize = 2;

/// The longest payload that the prefix can announce, in bytes.
pub const MAX_PAYLOAD_BYTES: usize = u16::MAX as usize;

/// A payload longer than the limit, announced by a peer or given to [`encode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a frame of {payload_bytes} bytes is over the limit of {limit_bytes} bytes")]
pub struct FrameTooLarge {
    /// Length of the refused payload.
    pub payload_bytes: usize,
    /// The limit it broke.
    pub limit_bytes: usize,
}

/// Appends `payload` as one frame, or appends nothing if it is too long for the prefix.
pub fn encode(payload: &[u8], into: &mut BytesMut) -> Result<(), FrameTooLarge> {
    let Ok(length) = u16::try_from(payload.len()) else {
        return Err(FrameTooLarge { payload_bytes: payload.len(), limit_bytes: MAX_PAYLOAD_BYTES });
    };
    into.reserve(HEADER_BYTES + payload.len());
    into.put_u16(length);
    into.put_slice(payload);
    Ok(())
}

/// Adds to bytes that wait to be decoded. Where none wait, the old memory is left to the payloads that were cut from it.
pub(super) fn append(arrived: &mut BytesMut, bytes: &[u8]) {
    if arrived.is_empty() {
        *arrived = BytesMut::from(bytes);
    } else {
        arrived.extend_from_slice(bytes);
    }
}

/// Gives back the memory of bytes that are all decoded: a connection that is quiet holds none.
pub(super) fn release(arrived: &mut BytesMut) {
    if arrived.is_empty() {
        *arrived = BytesMut::new();
    }
}

/// Cuts a stream of bytes, arriving in pieces of any size, into payloads.
#[derive(Debug)]
pub struct Decoder {
    arrived: BytesMut,
    max_payload_bytes: usize,
}

impl Decoder {
    /// A decoder that refuses payloads longer than `max_payload_bytes`.
    pub fn new(max_payload_bytes: usize) -> Self {
        Self { arrived: BytesMut::new(), max_payload_bytes }
    }

    /// Takes the next bytes of the stream. Memory follows what arrived, not what a header announced.
    pub fn append(&mut self, bytes: &[u8]) {
        append(&mut self.arrived, bytes);
    }

    /// The next whole payload, or `None` until more bytes arrive. A length over the limit is an error as soon as the
    /// prefix is there, and stays one: the stream cannot be followed beyond it.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, FrameTooLarge> {
        let Some(&[high, low]) = self.arrived.first_chunk::<HEADER_BYTES>() else {
            release(&mut self.arrived);
            return Ok(None);
        };
        let payload_bytes = usize::from(u16::from_be_bytes([high, low]));
        if payload_bytes > self.max_payload_bytes {
            return Err(FrameTooLarge { payload_bytes, limit_bytes: self.max_payload_bytes });
        }
        if self.arrived.len() < HEADER_BYTES + payload_bytes {
            return Ok(None);
        }
        self.arrived.advance(HEADER_BYTES);
        Ok(Some(self.arrived.split_to(payload_bytes).freeze()))
    }

    /// True when no part of an unfinished frame is held, so that the stream may end here.
    pub fn is_between_frames(&self) -> bool {
        self.arrived.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// The stream read in one piece by hand: its whole frames, and whether it then hits one over the limit.
    fn naive(stream: &[u8], limit: usize) -> (Vec<Vec<u8>>, bool) {
        let mut frames = Vec::new();
        let mut at = 0;
        while at + 2 <= stream.len() {
            let length = stream[at] as usize * 256 + stream[at + 1] as usize;
            if length > limit {
                return (frames, true);
            }
            if at + 2 + length > stream.len() {
                break;
            }
            frames.push(stream[at + 2..at + 2 + length].to_vec());
            at += 2 + length;
        }
        (frames, false)
    }

    fn decoded(stream: &[u8], limit: usize, chunk_lengths: &[usize]) -> (Vec<Vec<u8>>, bool) {
        let mut decoder = Decoder::new(limit);
        let mut frames = Vec::new();
        let mut rest = stream;
        let mut lengths = chunk_lengths.iter().cycle();
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at((*lengths.next().unwrap()).min(rest.len()));
            rest = after;
            decoder.append(chunk);
            loop {
                match decoder.next_frame() {
                    Ok(Some(frame)) => frames.push(frame.to_vec()),
                    Ok(None) => break,
                    Err(_) => return (frames, true),
                }
            }
        }
        (frames, false)
    }

    proptest! {
        #[test]
        fn any_chunking_of_well_formed_frames_gives_the_same_frames(
            payloads in vec(vec(any::<u8>(), 0..400), 0..20),
            chunk_lengths in vec(1..700_usize, 1..10),
        ) {
            let mut stream = BytesMut::new();
            for payload in &payloads {
                encode(payload, &mut stream).unwrap();
            }
            prop_assert_eq!(decoded(&stream, 400, &chunk_lengths), (payloads, false));
        }

        #[test]
        fn any_chunking_of_random_bytes_reads_as_the_naive_model_does(
            stream in vec(prop_oneof![Just(0_u8), Just(1), 0..40_u8, any::<u8>()], 0..2000),
            chunk_lengths in vec(1..300_usize, 1..10),
            limit in 0..600_usize,
        ) {
            prop_assert_eq!(decoded(&stream, limit, &chunk_lengths), naive(&stream, limit));
        }
    }

    #[test]
    fn the_longest_payload_survives_and_one_byte_more_is_refused() {
        let mut stream = BytesMut::new();
        encode(&vec![7; MAX_PAYLOAD_BYTES], &mut stream).unwrap();
        let (frames, _) = decoded(&stream, MAX_PAYLOAD_BYTES, &[1000]);
        assert_eq!(frames, vec![vec![7; MAX_PAYLOAD_BYTES]]);

        let before = stream.len();
        let refused = encode(&vec![7; MAX_PAYLOAD_BYTES + 1], &mut stream).unwrap_err();
        assert_eq!(refused.to_string(), "a frame of 65536 bytes is over the limit of 65535 bytes");
        assert_eq!(stream.len(), before);
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_any_of_its_payload_arrives() {
        let mut decoder = Decoder::new(16);
        decoder.append(&[0, 17]);
        assert_eq!(decoder.next_frame(), Err(FrameTooLarge { payload_bytes: 17, limit_bytes: 16 }));
        assert_eq!(decoder.next_frame(), Err(FrameTooLarge { payload_bytes: 17, limit_bytes: 16 }));
    }

    #[test]
    fn a_stream_may_end_between_frames_only() {
        let mut decoder = Decoder::new(16);
        assert!(decoder.is_between_frames());
        decoder.append(&[0, 2, b'h']);
        assert_eq!(decoder.next_frame(), Ok(None));
        assert!(!decoder.is_between_frames());
        decoder.append(b"i");
        assert_eq!(decoder.next_frame(), Ok(Some(Bytes::from_static(b"hi"))));
        assert!(decoder.is_between_frames());
    }
}
