//! The framing of WebSocket against a naive reader, and the gate against a WebSocket client that is not ours.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Control, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{Frame, FrameHeader};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocket};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::framing::{Incoming, Unreadable};
use super::test_world::{GateBy, Happening, Way, echo, keep_the_clock_still, let_bytes_arrive, options, until, within};
use super::websocket::{Decoder, encode, encode_pong, encoded_bytes};
use super::{CloseReason, GateOptions};

const MASK: [u8; 4] = [0xA1, 0, 0x5C, 0xFF];

/// A frame as a client sends it.
fn masked(opcode: OpCode, is_final: bool, payload: &[u8]) -> BytesMut {
    let header = FrameHeader { opcode, is_final, mask: Some(MASK), ..FrameHeader::default() };
    let mut bytes = BytesMut::new();
    Frame::from_payload(header, Bytes::copy_from_slice(payload)).format(&mut (&mut bytes).writer()).unwrap();
    bytes
}

fn data(opcode: Data, is_final: bool, payload: &[u8]) -> BytesMut {
    masked(OpCode::Data(opcode), is_final, payload)
}

fn read_in_chunks(stream: &[u8], limit: usize, chunk_lengths: &[usize]) -> (Vec<Incoming>, Option<Unreadable>) {
    let mut decoder = Decoder::new(limit);
    let mut heard = Vec::new();
    let mut rest = stream;
    let mut lengths = chunk_lengths.iter().cycle();
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at((*lengths.next().unwrap()).min(rest.len()));
        rest = after;
        decoder.append(chunk);
        loop {
            match decoder.next() {
                Ok(Some(incoming)) => heard.push(incoming),
                Ok(None) => break,
                Err(unreadable) => {
                    assert_eq!(decoder.next(), Err(unreadable), "an error stays one");
                    return (heard, Some(unreadable));
                }
            }
        }
    }
    (heard, None)
}

fn read(stream: &[u8], limit: usize) -> (Vec<Incoming>, Option<Unreadable>) {
    read_in_chunks(stream, limit, &[stream.len().max(1)])
}

proptest! {
    #[test]
    fn messages_in_any_parts_and_any_chunking_are_put_together(
        messages in vec(vec(vec(any::<u8>(), 0..200), 1..5), 0..10),
        pings in any::<bool>(),
        chunk_lengths in vec(1..300_usize, 1..10),
    ) {
        let mut stream = BytesMut::new();
        for parts in &messages {
            for (at, part) in parts.iter().enumerate() {
                let opcode = if at == 0 { Data::Binary } else { Data::Continue };
                stream.extend_from_slice(&data(opcode, at + 1 == parts.len(), part));
                if pings {
                    stream.extend_from_slice(&masked(OpCode::Control(Control::Ping), true, b"between"));
                }
            }
        }
        let (heard, unreadable) = read_in_chunks(&stream, 1000, &chunk_lengths);
        prop_assert_eq!(unreadable, None);
        let payloads: Vec<_> = heard
            .into_iter()
            .filter_map(|incoming| match incoming {
                Incoming::Payload(payload) => Some(payload.to_vec()),
                _ => None,
            })
            .collect();
        prop_assert_eq!(payloads, messages.iter().map(|parts| parts.concat()).collect::<Vec<_>>());
    }

    #[test]
    fn random_bytes_read_the_same_in_any_chunking(
        stream in vec(prop_oneof![Just(0x82_u8), Just(0x02), Just(0x80), Just(0x89), 0x80..0x90_u8, any::<u8>()], 0..2000),
        chunk_lengths in vec(1..300_usize, 1..10),
    ) {
        prop_assert_eq!(read_in_chunks(&stream, 100, &chunk_lengths), read(&stream, 100));
    }

    #[test]
    fn what_the_host_sends_a_foreign_reader_understands(payloads in vec(vec(any::<u8>(), 0..400), 0..10), long in any::<bool>()) {
        let mut stream = BytesMut::new();
        let mut expected = Vec::new();
        for payload in payloads.into_iter().chain(long.then(|| vec![7; 65_535])) {
            let before = stream.len();
            encode(&payload, &mut stream).unwrap();
            prop_assert_eq!(stream.len() - before, encoded_bytes(&payload));
            expected.push(Message::binary(payload));
        }
        encode_pong(b"here", &mut stream);
        expected.push(Message::Pong(Bytes::from_static(b"here")));
        let mut reader = WebSocket::from_raw_socket(std::io::Cursor::new(stream.to_vec()), Role::Client, None);
        for message in expected {
            prop_assert_eq!(reader.read().unwrap(), message);
        }
    }
}

#[test]
fn a_payload_that_the_other_framing_cannot_carry_is_refused() {
    let mut stream = BytesMut::new();
    let refused = encode(&vec![7; 65_536], &mut stream).unwrap_err();
    assert_eq!(refused.to_string(), "a frame of 65536 bytes is over the limit of 65535 bytes");
    assert!(stream.is_empty());
}

#[test]
fn a_message_over_the_limit_is_refused_before_any_of_its_payload_arrives() {
    assert_eq!(read(&[0x82, 0x80 | 17], 16), (vec![], None), "its mask is still to come");
    assert_eq!(read(&[0x82, 0x80 | 17, 1, 2, 3, 4], 16), (vec![], Some(Unreadable::TooLarge)));
    let huge = [0x82, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2, 3, 4];
    assert_eq!(read(&huge, 16), (vec![], Some(Unreadable::TooLarge)));
}

#[test]
fn parts_may_together_be_as_long_as_a_message_and_no_longer() {
    let begun = data(Data::Binary, false, &[1; 10]);
    let exactly = [begun.clone(), data(Data::Continue, true, &[2; 6])].concat();
    let whole = Bytes::from([[1; 10].as_slice(), &[2; 6]].concat());
    assert_eq!(read(&exactly, 16), (vec![Incoming::Part, Incoming::Payload(whole)], None));
    let longer = [begun, data(Data::Continue, false, &[2; 7])].concat();
    assert_eq!(read(&longer, 16), (vec![Incoming::Part], Some(Unreadable::TooLarge)));
}

#[test]
fn what_breaks_the_rules_of_websocket_is_told_apart_from_text() {
    let ping = OpCode::Control(Control::Ping);
    let mut reserved_bit = data(Data::Binary, true, b"x");
    reserved_bit[0] |= 0x40;
    let cases = [
        ("unmasked", BytesMut::from([0x82, 1, b'x'].as_slice()), Unreadable::Malformed),
        ("a reserved bit", reserved_bit, Unreadable::Malformed),
        ("a reserved opcode", BytesMut::from([0x83, 0x80, 0, 0, 0, 0].as_slice()), Unreadable::Malformed),
        ("a ping in parts", masked(ping, false, b"x"), Unreadable::Malformed),
        ("a long ping", masked(ping, true, &[0; 126]), Unreadable::Malformed),
        ("a part of nothing", data(Data::Continue, true, b"x"), Unreadable::Malformed),
        ("text", data(Data::Text, true, b"hello"), Unreadable::Text),
        ("the beginning of text", data(Data::Text, false, b"he"), Unreadable::Text),
    ];
    for (what, stream, expected) in cases {
        assert_eq!(read(&stream, 1000), (vec![], Some(expected)), "{what}");
    }
    let within_another = [data(Data::Binary, false, b"x"), data(Data::Binary, true, b"y")].concat();
    assert_eq!(read(&within_another, 1000), (vec![Incoming::Part], Some(Unreadable::Malformed)));
}

#[test]
fn a_stream_may_end_between_messages_only() {
    let mut decoder = Decoder::new(100);
    assert!(decoder.is_between_messages());
    decoder.append(&data(Data::Binary, false, b"be"));
    assert_eq!(decoder.next(), Ok(Some(Incoming::Part)));
    assert!(!decoder.is_between_messages());
    decoder.append(&data(Data::Continue, true, b"gun"));
    assert_eq!(decoder.next(), Ok(Some(Incoming::Payload(Bytes::from_static(b"begun")))));
    assert!(decoder.is_between_messages());
}

const PLAIN: Way = Way::ALL[1];

/// A foreign client, and what it is connected to.
async fn foreign(limits: GateOptions) -> (GateBy, WebSocketStream<TcpStream>) {
    let gate = GateBy::open(PLAIN, limits).await;
    let url = format!("ws://{}/any/path?at=all", gate.address());
    let (client, _) = within(client_async(url, gate.stranger().await)).await.unwrap();
    (gate, client)
}

/// What the gate says at the end, as code and words.
async fn farewell(client: &mut WebSocketStream<TcpStream>) -> (CloseCode, String) {
    within(async {
        loop {
            match client.next().await.expect("the gate says good-bye").expect("the gate says good-bye") {
                Message::Close(Some(frame)) => {
                    // The look after that sends the answer.
                    assert!(client.next().await.is_none());
                    return (frame.code, frame.reason.to_string());
                }
                Message::Close(None) => panic!("it says why"),
                _ => {}
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_text_message_is_refused_with_a_word_about_it() {
    let (gate, mut client) = foreign(options()).await;
    client.send(Message::text("hello")).await.unwrap();
    let (code, words) = farewell(&mut client).await;
    assert_eq!((code, words.as_str()), (CloseCode::Unsupported, "text is not taken here: send binary messages"));
    drop(client);
    until(|| gate.connections.snapshot().open == 0).await;
    assert_eq!(gate.sink.of(1), [Happening::Connected, Happening::Disconnected(CloseReason::Protocol)]);
    gate.stop().await;
}

#[tokio::test]
async fn a_huge_message_is_refused_with_a_word_about_it_although_all_of_it_is_on_its_way() {
    let (gate, mut client) = foreign(options()).await;
    let (mut sender, receiver) = client.split();
    let sending = tokio::spawn(async move {
        // It may be cut off before all is sent.
        let _ = sender.send(Message::binary(vec![7; 2_000_000])).await;
        sender
    });
    client = receiver.reunite(within(sending).await.unwrap()).unwrap();
    assert_eq!(farewell(&mut client).await.0, CloseCode::Size);
    drop(client);
    until(|| gate.connections.snapshot().open == 0).await;
    assert_eq!(gate.sink.ended(1), Some(CloseReason::FrameTooLarge));
    gate.stop().await;
}

#[tokio::test]
async fn a_message_in_parts_is_one_packet_and_pings_between_them_are_answered() {
    let (gate, mut client) = foreign(options()).await;
    let part = |text: &'static str, opcode, is_final| {
        Message::Frame(Frame::message(Bytes::from_static(text.as_bytes()), OpCode::Data(opcode), is_final))
    };
    client.send(part("in ", Data::Binary, false)).await.unwrap();
    client.send(Message::Ping(Bytes::from_static(b"there?"))).await.unwrap();
    assert_eq!(within(client.next()).await.unwrap().unwrap(), Message::Pong(Bytes::from_static(b"there?")));
    client.send(part("three ", Data::Continue, false)).await.unwrap();
    client.send(part("parts", Data::Continue, true)).await.unwrap();
    assert_eq!(within(client.next()).await.unwrap().unwrap(), Message::binary(b"in three parts".as_slice()));
    assert_eq!((gate.sink.packets_of(1), gate.connections.snapshot().frames_in), (1, 1));
    drop(client);
    gate.stop().await;
}

#[tokio::test]
async fn a_good_bye_is_answered_and_counts_as_leaving() {
    let (gate, mut client) = foreign(options()).await;
    client.close(None).await.unwrap();
    assert_eq!(farewell(&mut client).await.0, CloseCode::Normal);
    drop(client);
    until(|| gate.connections.snapshot().open == 0).await;
    assert_eq!(gate.sink.ended(1), Some(CloseReason::ClientLeft));
    gate.stop().await;
}

#[tokio::test]
async fn a_close_and_a_stop_of_the_host_have_their_own_words() {
    let (gate, mut client) = foreign(options()).await;
    until(|| gate.connections.close(1)).await;
    assert_eq!(farewell(&mut client).await.0, CloseCode::Normal);
    let (mut stopping, _) =
        within(client_async(format!("ws://{}", gate.address()), gate.stranger().await)).await.unwrap();
    until(|| !gate.sink.of(2).is_empty()).await;
    let stop = tokio::spawn(gate.stop());
    assert_eq!(farewell(&mut stopping).await, (CloseCode::Away, "the host stops".to_owned()));
    within(stop).await.unwrap();
}

#[tokio::test]
async fn pings_and_parts_count_as_frames_so_that_a_flood_of_them_is_one() {
    let ping = masked(OpCode::Control(Control::Ping), true, b"");
    let part = data(Data::Continue, false, b"");
    for flood in [ping, part] {
        let limits = GateOptions { max_frames_per_second: 1, frame_burst: 20, drain_timeout_ms: 100, ..options() };
        let (gate, mut client) = foreign(limits).await;
        client.get_mut().write_all(&data(Data::Binary, false, b"begun")).await.unwrap();
        let flood = flood.repeat(100);
        while client.get_mut().write_all(&flood).await.is_ok() {}
        until(|| gate.connections.snapshot().open == 0).await;
        assert_eq!(gate.sink.ended(1), Some(CloseReason::FrameRate));
        gate.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn parts_without_end_are_no_sign_of_life_and_pings_are() {
    let (gate, mut client) = foreign(GateOptions { idle_timeout_s: 30, ..options() }).await;
    let still = keep_the_clock_still();
    for _ in 0..10 {
        tokio::time::advance(Duration::from_secs(20)).await;
        client.get_mut().write_all(&masked(OpCode::Control(Control::Ping), true, b"")).await.unwrap();
        let_bytes_arrive().await;
    }
    assert_eq!(gate.connections.snapshot().closed, 0);
    let began = tokio::time::Instant::now();
    client.get_mut().write_all(&data(Data::Binary, false, b"x")).await.unwrap();
    while gate.sink.ended(1).is_none() && began.elapsed() < Duration::from_secs(100) {
        let _ = client.get_mut().write_all(&data(Data::Continue, false, b"x")).await;
        let_bytes_arrive().await;
        tokio::time::advance(Duration::from_secs(5)).await;
    }
    assert!(began.elapsed() < Duration::from_secs(60), "they went on for {:?}", began.elapsed());
    assert_eq!(gate.sink.ended(1), Some(CloseReason::Idle));
    still.abort();
    gate.gate.stop().await;
}

#[tokio::test]
async fn a_client_that_pings_and_never_reads_is_a_slow_reader() {
    let limits =
        GateOptions { max_backlog_kb: 16, max_frames_per_second: 1_000_000, frame_burst: 1_000_000, ..options() };
    let (gate, mut client) = foreign(limits).await;
    let pings = masked(OpCode::Control(Control::Ping), true, &[7; 125]).repeat(100);
    within(async { while client.get_mut().write_all(&pings).await.is_ok() {} }).await;
    until(|| gate.connections.snapshot().open == 0).await;
    assert_eq!(gate.sink.ended(1), Some(CloseReason::Backlog));
    gate.stop().await;
}

#[tokio::test]
async fn whoever_asks_for_no_websocket_is_told_what_this_port_takes() {
    let requests = [
        "GET / HTTP/1.1\r\nhost: x\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 8\r\n\r\n",
        "GET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\r\n",
    ];
    let gate = GateBy::open(PLAIN, options()).await;
    for request in requests {
        let mut browser = gate.stranger().await;
        browser.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        within(browser.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 426 "), "{request:?} is answered with {answer:?}");
        assert!(answer.ends_with("This port takes WebSocket clients alone\n"), "{answer:?}");
    }
    until(|| gate.connections.snapshot().closed_for(CloseReason::Protocol) == 4).await;
    gate.stop().await;
}

#[tokio::test]
async fn a_request_without_end_is_cut_off() {
    let gate = GateBy::open(PLAIN, GateOptions { handshake_timeout_ms: 600_000, ..options() }).await;
    let mut stranger = gate.stranger().await;
    stranger.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let header = format!("x: {}\r\n", "y".repeat(1000));
    within(async { while stranger.write_all(header.as_bytes()).await.is_ok() {} }).await;
    until(|| gate.connections.snapshot().closed_for(CloseReason::Protocol) == 1).await;
    gate.stop().await;
}

/// A request with so many bytes, the blank line included.
fn request_of(bytes: usize) -> String {
    let head = "GET / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
                sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\ncookie: ";
    let tail = "\r\n\r\n";
    format!("{head}{}{tail}", "c".repeat(bytes - head.len() - tail.len()))
}

#[tokio::test]
async fn a_request_may_be_as_long_as_it_may_be_and_not_a_byte_longer() {
    let gate = GateBy::open(PLAIN, options()).await;
    for (bytes, answers) in [(16 * 1024, "HTTP/1.1 101 "), (16 * 1024 + 1, "HTTP/1.1 426 ")] {
        let mut browser = gate.stranger().await;
        // All of it at once, so that a limit which is looked at behind a chunk does not see it.
        browser.write_all(request_of(bytes).as_bytes()).await.unwrap();
        let mut answer = vec![0; answers.len()];
        within(browser.read_exact(&mut answer)).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), answers, "for {bytes} bytes");
    }
    gate.stop().await;
}

#[tokio::test]
async fn a_request_that_comes_byte_for_byte_is_granted() {
    let gate = GateBy::open(PLAIN, options()).await;
    let mut browser = gate.stranger().await;
    browser.set_nodelay(true).unwrap();
    for byte in request_of(300).into_bytes() {
        browser.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut answer = [0; 13];
    within(browser.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 101 ");
    gate.stop().await;
}

#[tokio::test]
async fn what_cannot_become_a_request_is_refused_before_it_ends() {
    let gate = GateBy::open(PLAIN, GateOptions { handshake_timeout_ms: 600_000, ..options() }).await;
    for beginning in [&b"\x16\x03\x01"[..], b"\x00\x05hello", b"POST", b"GEX"] {
        let mut stranger = gate.stranger().await;
        stranger.write_all(beginning).await.unwrap();
        let mut answer = String::new();
        within(stranger.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 426 "), "{beginning:?} is answered with {answer:?}");
    }
    gate.stop().await;
}

#[tokio::test]
async fn what_is_sent_right_behind_the_request_is_not_lost() {
    let gate = GateBy::open(PLAIN, options()).await;
    let mut hasty = gate.stranger().await;
    let request = "GET / HTTP/1.1\r\nhost: x\r\nconnection: keep-alive, Upgrade\r\nupgrade: WebSocket\r\n\
                   sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    hasty.write_all(&[request.as_bytes(), &data(Data::Binary, true, b"hello")].concat()).await.unwrap();
    let mut answer = Vec::new();
    within(async {
        while !answer.ends_with(b"\x82\x05hello") {
            assert!(hasty.read_buf(&mut answer).await.unwrap() > 0, "{answer:?}");
        }
    })
    .await;
    let text = String::from_utf8_lossy(&answer).to_lowercase();
    // The example of RFC 6455.
    assert!(text.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{text}");
    drop(hasty);
    gate.stop().await;
}

#[tokio::test]
async fn a_client_of_this_room_is_a_websocket_client_like_others() {
    let gate = GateBy::open(PLAIN, options()).await;
    let mut client = gate.client().await;
    assert_eq!(echo(&mut client, &[1; 16_384]).await.unwrap().unwrap().len(), 16_384);
    client.send(&[1; 16_385]).await.unwrap();
    let refused = within(client.receive()).await.unwrap_err().to_string();
    assert_eq!(refused, "the gate closed the connection: the message is over gate.max_frame_bytes (1009)");
    drop(client);
    gate.stop().await;
}
