//! The gate by each of its doors, over real sockets: what holds at the plain port holds at all of them.

use std::time::Duration;

use bytes::Bytes;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::test_world::{GateBy, Happening, Way, echo, frames_until_end, options, until, within};
use super::{CloseReason, GateOptions, SendError};

#[tokio::test]
async fn by_every_door_a_client_is_connected_then_heard_in_order_then_gone_once() {
    for way in Way::ALL {
        let gate = GateBy::open(way, options()).await;
        let mut client = gate.client().await;
        let long = vec![3; 16 * 1024];
        for payload in [b"one".as_slice(), b"", &[2; 126], &long] {
            assert_eq!(echo(&mut client, payload).await.unwrap().as_deref(), Some(payload), "by {way:?}");
        }
        assert_eq!(gate.connections.snapshot().websocket, u64::from(way.websocket));
        drop(client);
        until(|| gate.connections.snapshot().open == 0).await;
        assert_eq!(
            gate.sink.of(1),
            [
                Happening::Connected,
                Happening::Packet(Bytes::from_static(b"one")),
                Happening::Packet(Bytes::new()),
                Happening::Packet(vec![2; 126].into()),
                Happening::Packet(long.into()),
                Happening::Disconnected(CloseReason::ClientLeft),
            ],
            "by {way:?}"
        );
        gate.stop().await;
    }
}

#[tokio::test]
async fn by_every_door_closing_after_a_send_delivers_what_was_sent_before() {
    for way in Way::ALL {
        let gate = GateBy::open(way, GateOptions { max_backlog_kb: 64 * 1024, ..options() }).await;
        let mut client = gate.good_client().await;
        // More than the socket takes at once, and a packet of the client's own left unread by the host.
        for _ in 0..200 {
            gate.connections.send(1, &[5; 60_000]).unwrap();
        }
        assert!(gate.connections.close(1));
        client.send(b"crossing").await.unwrap();
        assert_eq!(frames_until_end(&mut client).await, 200, "by {way:?}");
        drop(client);
        until(|| gate.connections.snapshot().open == 0).await;
        assert_eq!(gate.sink.ended(1), Some(CloseReason::HostClosed));
        gate.stop().await;
    }
}

#[tokio::test]
async fn by_every_door_a_stop_delivers_what_was_sent_and_then_ends_in_good_order() {
    for way in Way::ALL {
        let gate = GateBy::open(way, options()).await;
        let mut client = gate.good_client().await;
        gate.connections.send(1, b"last words").unwrap();
        let stopping = tokio::spawn(gate.gate.stop());
        assert_eq!(within(client.receive()).await.unwrap().as_deref(), Some(b"last words".as_slice()), "by {way:?}");
        assert_eq!(within(client.receive()).await.unwrap(), None, "by {way:?}");
        drop(client);
        within(stopping).await.unwrap();
        assert_eq!(gate.sink.ended(1), Some(CloseReason::Stopping));
    }
}

#[tokio::test]
async fn by_every_door_a_frame_over_the_size_limit_cuts_its_sender_off() {
    for way in Way::ALL {
        let gate = GateBy::open(way, GateOptions { max_frame_bytes: 100, ..options() }).await;
        let mut good = gate.good_client().await;
        let mut bad = gate.client().await;
        echo(&mut bad, &[1; 100]).await.unwrap();
        bad.send(&[1; 101]).await.unwrap();
        assert_eq!(frames_until_end(&mut bad).await, 0, "by {way:?}");
        drop(bad);
        gate.cut_off_alone(CloseReason::FrameTooLarge, &mut good).await;
        gate.stop().await;
    }
}

#[tokio::test]
async fn by_every_door_a_flood_of_frames_cuts_its_sender_off_after_the_burst() {
    for way in Way::ALL {
        let limits = GateOptions { max_frames_per_second: 1, frame_burst: 20, drain_timeout_ms: 100, ..options() };
        let gate = GateBy::open(way, limits).await;
        let mut good = gate.good_client().await;
        let (mut sender, receiver) = gate.client().await.into_split();
        // The flood runs into the cut at some point of its own, as a failed write.
        within(async { while sender.send(b"flood").await.is_ok() {} }).await;
        drop((sender, receiver));
        gate.cut_off_alone(CloseReason::FrameRate, &mut good).await;
        let passed = gate.sink.packets_of(2);
        assert!((20..=22).contains(&passed), "by {way:?}: {passed} frames passed a burst of 20");
        gate.stop().await;
    }
}

#[tokio::test]
async fn by_every_door_a_client_that_never_reads_is_cut_off_while_the_echo_of_others_goes_on() {
    for way in Way::ALL {
        let gate = GateBy::open(way, GateOptions { max_backlog_kb: 64, ..options() }).await;
        let mut good = gate.good_client().await;
        let bad = gate.good_client().await;
        let mut echoes = 0;
        within(async {
            loop {
                match gate.connections.send(2, &[9; 16_000]) {
                    Ok(()) => {}
                    Err(SendError::Backlog { connection: 2, backlog_bytes }) => {
                        assert!((48_000..=65_536).contains(&backlog_bytes), "by {way:?}: {backlog_bytes}");
                        break;
                    }
                    Err(other) => panic!("{other}"),
                }
                if gate.connections.snapshot().frames_out.is_multiple_of(8) {
                    assert!(echo(&mut good, b"echo").await.unwrap().is_some());
                    echoes += 1;
                }
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert!(echoes > 0);
        gate.cut_off_alone(CloseReason::Backlog, &mut good).await;
        drop(bad);
        gate.stop().await;
    }
}

#[tokio::test]
async fn by_every_door_random_bytes_hurt_nobody_and_reach_no_sink_where_a_handshake_comes_first() {
    for way in Way::ALL {
        let limits = GateOptions { handshake_timeout_ms: 200, drain_timeout_ms: 100, ..options() };
        let gate = GateBy::open(way, limits).await;
        let mut good = gate.good_client().await;
        let mut random = ChaCha8Rng::seed_from_u64(7);
        for _ in 0..50 {
            let mut stranger = gate.stranger().await;
            let mut noise = vec![0; 20_000];
            random.fill_bytes(&mut noise);
            // The gate may cut the connection before it has read all.
            let _ = within(stranger.write_all(&noise)).await;
        }
        until(|| gate.connections.snapshot().closed == 50).await;
        if way != Way::ALL[0] {
            assert!((2..=51).all(|stranger| gate.sink.of(stranger).is_empty()), "by {way:?}");
            // A stranger whose noise was cut off by its own going counts as lost.
            let snapshot = gate.connections.snapshot();
            let known = snapshot.closed_for(CloseReason::Protocol) + snapshot.closed_for(CloseReason::ConnectionLost);
            assert_eq!(known, 50, "by {way:?}: {snapshot:?}");
        }
        assert!(echo(&mut good, b"unhurt").await.unwrap().is_some());
        drop(good);
        gate.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn silence_and_half_a_handshake_are_cut_off_when_their_time_is_up() {
    // The beginnings of a request for a WebSocket, and of a hello of TLS.
    let beginnings =
        [b"".as_slice(), b"GET / HTTP/1.1\r\nhost: x\r\nupgrade: web", &[0x16, 3, 1, 0x02, 0, 1, 0, 1, 0xFC]];
    for (way, beginnings) in [(Way::ALL[1], [0, 1]), (Way::ALL[2], [0, 2]), (Way::ALL[3], [0, 2])]
        .map(|(way, which)| (way, which.map(|at| beginnings[at])))
    {
        let gate = GateBy::open(way, options()).await;
        for (before, beginning) in beginnings.into_iter().enumerate() {
            let begun = tokio::time::Instant::now();
            let mut stranger = gate.stranger().await;
            stranger.write_all(beginning).await.unwrap();
            assert!(matches!(stranger.read(&mut [0; 16]).await, Ok(0) | Err(_)), "by {way:?}");
            let waited = begun.elapsed();
            assert!((5000..6000).contains(&waited.as_millis()), "by {way:?} it was cut off after {waited:?}");
            until(|| gate.connections.snapshot().closed_for(CloseReason::Idle) == before as u64 + 1).await;
        }
        assert!(gate.sink.of(1).is_empty(), "the loop hears of nobody who has not shaken hands");
        gate.gate.stop().await;
    }
}

#[tokio::test]
async fn clients_within_their_handshake_count_among_those_that_are_open() {
    for way in [Way::ALL[1], Way::ALL[2]] {
        let gate = GateBy::open(way, GateOptions { max_connections: 2, ..options() }).await;
        let mut good = gate.good_client().await;
        let silent = gate.stranger().await;
        until(|| gate.connections.snapshot().open == 2).await;
        let mut refused = gate.stranger().await;
        assert!(matches!(within(refused.read(&mut [0; 16])).await, Ok(0) | Err(_)));
        assert_eq!(gate.connections.snapshot().refused, 1);
        drop(silent);
        until(|| gate.connections.snapshot().open == 1).await;
        assert!(echo(&mut good, b"still in").await.unwrap().is_some());
        drop(good);
        gate.stop().await;
    }
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_handshake() {
    for way in [Way::ALL[1], Way::ALL[2]] {
        let gate = GateBy::open(way, GateOptions { handshake_timeout_ms: 600_000, ..options() }).await;
        let silent = gate.stranger().await;
        until(|| gate.connections.snapshot().open == 1).await;
        let begun = tokio::time::Instant::now();
        let connections = gate.connections.clone();
        gate.stop().await;
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert_eq!(connections.snapshot().closed_for(CloseReason::Stopping), 1);
        drop(silent);
    }
}

#[tokio::test]
async fn both_ports_share_their_limits_and_their_ids() {
    let gate = GateBy::open(Way::ALL[1], GateOptions { max_connections: 2, ..options() }).await;
    let mut by_websocket = gate.good_client().await;
    let mut by_frames = super::Client::connect(gate.gate.local_address()).await.unwrap();
    echo(&mut by_frames, b"hello").await.unwrap();
    let snapshot = gate.connections.snapshot();
    assert_eq!((snapshot.open, snapshot.websocket), (2, 1));
    gate.connections.send(1, b"to one").unwrap();
    gate.connections.send(2, b"to the other").unwrap();
    assert_eq!(within(by_websocket.receive()).await.unwrap().as_deref(), Some(b"to one".as_slice()));
    assert_eq!(within(by_frames.receive()).await.unwrap().as_deref(), Some(b"to the other".as_slice()));
    for address in [gate.gate.local_address(), gate.address()] {
        let mut third = tokio::net::TcpStream::connect(address).await.unwrap();
        assert!(matches!(within(third.read(&mut [0; 16])).await, Ok(0) | Err(_)));
    }
    assert_eq!(gate.connections.snapshot().refused, 2);
    drop((by_websocket, by_frames));
    gate.stop().await;
}
