//! The gate with clients that break the rules, over real sockets: each is cut off and counted, while a well-behaved
//! client beside it goes on.

use std::net::SocketAddr;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::test_world::{echo, frames_until_end, keep_the_clock_still, let_bytes_arrive, open, options, until, within};
use super::{Client, CloseReason, Connections, GateOptions, SendError};

/// Waits until exactly one connection ended for `reason`, and then checks that `good` is still served.
async fn cut_off_alone(connections: &Connections, reason: CloseReason, good: &mut Client) {
    until(|| connections.snapshot().closed_for(reason) == 1).await;
    let snapshot = connections.snapshot();
    assert_eq!((snapshot.open, snapshot.closed), (1, 1), "{snapshot:?}");
    assert_eq!(echo(good, b"me too?").await.unwrap().as_deref(), Some(b"me too?".as_slice()));
}

async fn good_client(address: SocketAddr) -> Client {
    let mut good = Client::connect(address).await.unwrap();
    echo(&mut good, b"hello").await.unwrap();
    good
}

#[tokio::test]
async fn a_frame_over_the_size_limit_cuts_its_sender_off() {
    let (gate, connections, sink) = open(GateOptions { max_frame_bytes: 100, ..options() }).await;
    let mut good = good_client(gate.local_address()).await;
    let mut bad = Client::connect(gate.local_address()).await.unwrap();
    echo(&mut bad, &[1; 100]).await.unwrap();
    bad.send(&[1; 101]).await.unwrap();
    assert_eq!(frames_until_end(&mut bad).await, 0);
    cut_off_alone(&connections, CloseReason::FrameTooLarge, &mut good).await;
    assert_eq!(sink.ended(2), Some(CloseReason::FrameTooLarge));
    within(gate.stop()).await;
}

#[tokio::test]
async fn a_flood_of_frames_cuts_its_sender_off_after_the_burst() {
    let options = GateOptions { max_frames_per_second: 1, frame_burst: 20, ..options() };
    let (gate, connections, sink) = open(options).await;
    let mut good = good_client(gate.local_address()).await;
    let (mut sender, _receiver) = Client::connect(gate.local_address()).await.unwrap().into_split();
    // The flood runs into the cut at some point of its own, as a failed write.
    within(async { while sender.send(b"flood").await.is_ok() {} }).await;
    cut_off_alone(&connections, CloseReason::FrameRate, &mut good).await;
    let passed = sink.packets_of(2);
    assert!((20..=22).contains(&passed), "{passed} frames passed a burst of 20");
    within(gate.stop()).await;
}

#[tokio::test(start_paused = true)]
async fn half_a_frame_and_then_silence_is_cut_off_when_idle_for_too_long() {
    let (gate, connections, sink) = open(GateOptions { idle_timeout_s: 30, ..options() }).await;
    let connected_at = tokio::time::Instant::now();
    let (mut sender, mut receiver) = Client::connect(gate.local_address()).await.unwrap().into_split();
    sender.send_raw(&[0, 10, b'h', b'a', b'l', b'f']).await.unwrap();
    assert!(!matches!(receiver.receive().await, Ok(Some(_))));
    assert!(connected_at.elapsed() >= Duration::from_secs(30));
    until(|| connections.snapshot().open == 0).await;
    assert_eq!(sink.ended(1), Some(CloseReason::Idle));
    gate.stop().await;
}

#[tokio::test(start_paused = true)]
async fn dripping_bytes_that_never_complete_a_frame_do_not_count_as_life() {
    let (gate, connections, sink) = open(GateOptions { idle_timeout_s: 30, ..options() }).await;
    let still = keep_the_clock_still();
    let (mut sender, _receiver) = Client::connect(gate.local_address()).await.unwrap().into_split();
    let began = tokio::time::Instant::now();
    sender.send_raw(&[1, 0]).await.unwrap();
    while sink.ended(1).is_none() && began.elapsed() < Duration::from_secs(100) {
        let _ = sender.send_raw(&[0]).await;
        let_bytes_arrive().await;
        tokio::time::advance(Duration::from_secs(5)).await;
    }
    assert!(began.elapsed() < Duration::from_secs(60), "it dripped on for {:?}", began.elapsed());
    assert_eq!(sink.ended(1), Some(CloseReason::Idle));
    until(|| connections.snapshot().open == 0).await;
    still.abort();
    gate.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_speaks_now_and_then_is_never_idle() {
    let (gate, connections, _sink) = open(GateOptions { idle_timeout_s: 30, ..options() }).await;
    let still = keep_the_clock_still();
    let mut client = Client::connect(gate.local_address()).await.unwrap();
    for _ in 0..10 {
        assert!(echo(&mut client, b"").await.unwrap().is_some());
        tokio::time::advance(Duration::from_secs(29)).await;
    }
    assert!(echo(&mut client, b"still here").await.unwrap().is_some());
    assert_eq!(connections.snapshot().closed, 0);
    still.abort();
    drop(client);
    gate.stop().await;
}

#[tokio::test(start_paused = true)]
async fn frames_that_piled_up_while_the_loop_was_full_are_not_a_flood() {
    let options = GateOptions { max_frames_per_second: 10, frame_burst: 5, idle_timeout_s: 1, ..options() };
    let (gate, connections, sink) = open(options).await;
    let still = keep_the_clock_still();
    sink.room.forget_permits(sink.room.available_permits());
    let mut client = Client::connect(gate.local_address()).await.unwrap();
    for _ in 0..20 {
        client.send(b"at my usual rate").await.unwrap();
    }
    until(|| connections.snapshot().frames_in == 1).await;
    tokio::time::advance(Duration::from_secs(2)).await;
    sink.room.add_permits(100);
    until(|| sink.packets_of(1) == 20 || sink.ended(1).is_some()).await;
    assert_eq!(sink.ended(1), None);
    still.abort();
    drop(client);
    gate.stop().await;
}

#[tokio::test]
async fn a_client_that_never_reads_is_cut_off_while_the_echo_of_others_goes_on() {
    let (gate, connections, sink) = open(GateOptions { max_backlog_kb: 64, ..options() }).await;
    let mut good = good_client(gate.local_address()).await;
    let bad = good_client(gate.local_address()).await;
    let mut echoes = 0;
    within(async {
        loop {
            match connections.send(2, &[9; 16_000]) {
                Ok(()) => {}
                Err(SendError::Backlog { connection: 2, backlog_bytes }) => {
                    assert!((48_000..=65_536).contains(&backlog_bytes), "{backlog_bytes}");
                    break;
                }
                Err(other) => panic!("{other}"),
            }
            if connections.snapshot().frames_out.is_multiple_of(8) {
                assert!(echo(&mut good, b"echo").await.unwrap().is_some());
                echoes += 1;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(echoes > 0);
    cut_off_alone(&connections, CloseReason::Backlog, &mut good).await;
    assert_eq!(sink.ended(2), Some(CloseReason::Backlog));
    assert_eq!(connections.send(2, b"gone"), Err(SendError::Unknown { connection: 2 }));
    drop(bad);
    within(gate.stop()).await;
}

#[tokio::test]
async fn random_bytes_hurt_nobody() {
    let (gate, connections, _sink) = open(options()).await;
    let mut good = good_client(gate.local_address()).await;
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for _ in 0..50 {
        let (mut sender, receiver) = Client::connect(gate.local_address()).await.unwrap().into_split();
        let mut noise = vec![0; 20_000];
        random.fill_bytes(&mut noise);
        // The gate may cut the connection before it has read all.
        let _ = within(sender.send_raw(&noise)).await;
        drop((sender, receiver));
    }
    until(|| connections.snapshot().closed == 50).await;
    assert!(echo(&mut good, b"unhurt").await.unwrap().is_some());
    drop(good);
    until(|| connections.snapshot().open == 0).await;
    within(gate.stop()).await;
}

#[tokio::test]
async fn a_stream_that_ends_within_a_frame_counts_as_lost() {
    let (gate, connections, sink) = open(options()).await;
    let (mut sender, receiver) = Client::connect(gate.local_address()).await.unwrap().into_split();
    sender.send_raw(&[0, 5, b'h']).await.unwrap();
    drop((sender, receiver));
    until(|| sink.ended(1).is_some()).await;
    assert_eq!(sink.ended(1), Some(CloseReason::ConnectionLost));
    until(|| connections.snapshot().open == 0).await;
    within(gate.stop()).await;
}

#[tokio::test]
async fn whoever_comes_only_to_go_is_counted_and_not_told_of() {
    let (gate, connections, sink) = open(options()).await;
    // In a runtime of one thread the gate accepts only once this waits: by then they have all gone.
    for visit in 0..100 {
        let visitor = std::net::TcpStream::connect(gate.local_address()).unwrap();
        visitor.set_nonblocking(true).unwrap();
        let visitor = TcpStream::from_std(visitor).unwrap();
        if visit % 2 == 0 {
            visitor.set_zero_linger().unwrap();
        }
    }
    until(|| connections.snapshot().open == 0 && connections.snapshot().closed > 0).await;
    within(gate.stop()).await;
    for connection in 1..=100 {
        assert!(sink.of(connection).is_empty(), "{connection}: {:?}", sink.of(connection));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_comings_and_goings_leave_nothing_behind() {
    let (gate, connections, sink) = open(options()).await;
    let address = gate.local_address();
    let mut visitors = tokio::task::JoinSet::new();
    for visitor in 0..10 {
        visitors.spawn(async move {
            for visit in 0..100 {
                match (visitor + visit) % 3 {
                    // Comes, speaks, waits for the answer, goes.
                    0 => assert!(echo(&mut Client::connect(address).await.unwrap(), b"hi").await.unwrap().is_some()),
                    // Speaks and goes without waiting.
                    1 => Client::connect(address).await.unwrap().send(b"bye").await.unwrap(),
                    // Goes at once, with a reset.
                    _ => {
                        let mut stream = TcpStream::connect(address).await.unwrap();
                        stream.set_zero_linger().unwrap();
                        let _ = tokio::time::timeout(Duration::ZERO, stream.read_u8()).await;
                    }
                }
            }
        });
    }
    while let Some(ended) = within(visitors.join_next()).await {
        ended.unwrap();
    }
    // A client that went while it was still in the listener's queue may be accepted later, or never.
    until(|| connections.snapshot().open == 0 && connections.snapshot().accepted >= 667).await;
    within(gate.stop()).await;
    let snapshot = connections.snapshot();
    assert_eq!((snapshot.open, snapshot.accepted), (0, snapshot.closed), "{snapshot:?}");
    for connection in 1..=snapshot.accepted {
        let happened = sink.of(connection);
        let ends = happened.iter().filter(|what| matches!(what, super::test_world::Happening::Disconnected(_)));
        // Nothing was told of one that had gone before anybody looked.
        let expected = usize::from(!happened.is_empty());
        assert_eq!(ends.count(), expected, "connection {connection}: {happened:?}");
    }
}
