//! The gate with well-behaved clients, over real sockets: order, delivery, backpressure, limits on numbers, and stop.

use std::time::Duration;

use bytes::Bytes;

use super::test_world::{Happening, echo, frames_until_end, open, options, until, within};
use super::{BoundGate, Client, CloseReason, GateOptions, SendError};

#[tokio::test]
async fn a_client_is_connected_then_heard_in_order_then_gone_once() {
    let (gate, connections, sink) = open(options()).await;
    let mut client = Client::connect(gate.local_address()).await.unwrap();
    for payload in [b"one".as_slice(), b"", b"three"] {
        assert_eq!(echo(&mut client, payload).await.unwrap().as_deref(), Some(payload));
    }
    drop(client);
    until(|| connections.snapshot().open == 0).await;
    assert_eq!(
        sink.of(1),
        [
            Happening::Connected,
            Happening::Packet(Bytes::from_static(b"one")),
            Happening::Packet(Bytes::new()),
            Happening::Packet(Bytes::from_static(b"three")),
            Happening::Disconnected(CloseReason::ClientLeft),
        ]
    );
    assert_eq!(connections.send(1, b"too late"), Err(SendError::Unknown { connection: 1 }));
    within(gate.stop()).await;
}

#[tokio::test]
async fn closing_after_a_send_delivers_what_was_sent_before() {
    let options = GateOptions { max_backlog_kb: 64 * 1024, ..options() };
    let (gate, connections, sink) = open(options).await;
    let mut client = Client::connect(gate.local_address()).await.unwrap();
    echo(&mut client, b"hello").await.unwrap();
    // More than the socket takes at once, and a packet of the client's own left unread by the host.
    let payload = vec![5; 60_000];
    for _ in 0..300 {
        connections.send(1, &payload).unwrap();
    }
    assert!(connections.close(1));
    client.send(b"crossing").await.unwrap();
    assert_eq!(connections.send(1, b"after"), Err(SendError::Closed { connection: 1 }));
    assert_eq!(frames_until_end(&mut client).await, 300);
    drop(client);
    until(|| connections.snapshot().open == 0).await;
    assert_eq!(sink.ended(1), Some(CloseReason::HostClosed));
    within(gate.stop()).await;
}

#[tokio::test]
async fn the_loop_hears_of_a_close_at_once_although_the_client_has_yet_to_read() {
    let options = GateOptions { max_backlog_kb: 64 * 1024, drain_timeout_ms: 20_000, ..options() };
    let (gate, connections, sink) = open(options).await;
    let mut client = Client::connect(gate.local_address()).await.unwrap();
    echo(&mut client, b"hello").await.unwrap();
    for _ in 0..500 {
        connections.send(1, &[5; 60_000]).unwrap();
    }
    connections.close(1);
    until(|| sink.ended(1).is_some()).await;
    assert_eq!(connections.snapshot().open, 1, "its socket is still being written to");
    drop(client);
    until(|| connections.snapshot().open == 0).await;
    within(gate.stop()).await;
}

#[tokio::test]
async fn a_closed_client_that_does_not_read_is_not_waited_for_without_end() {
    let options = GateOptions { max_backlog_kb: 64 * 1024, drain_timeout_ms: 50, ..options() };
    let (gate, connections, _sink) = open(options).await;
    let mut client = Client::connect(gate.local_address()).await.unwrap();
    echo(&mut client, b"hello").await.unwrap();
    for _ in 0..500 {
        connections.send(1, &[5; 60_000]).unwrap();
    }
    connections.close(1);
    until(|| connections.snapshot().open == 0).await;
    drop(client);
    within(gate.stop()).await;
}

#[tokio::test]
async fn a_full_loop_slows_its_clients_and_loses_no_packet() {
    let options =
        GateOptions { max_frames_per_second: 100_000, frame_burst: 100_000, max_backlog_kb: 64 * 1024, ..options() };
    let (gate, connections, sink) = open(options).await;
    sink.room.forget_permits(sink.room.available_permits());
    let client = Client::connect(gate.local_address()).await.unwrap();
    let (mut sender, mut receiver) = client.into_split();
    let sending = tokio::spawn(async move {
        for number in 0..5_000_u32 {
            sender.send(&[number.to_be_bytes().as_slice(), &[0; 4000]].concat()).await.unwrap();
        }
        sender
    });
    sink.room.add_permits(10);
    until(|| sink.packets_of(1) == 10).await;
    until(|| connections.snapshot().frames_in == 11).await;
    assert!(!sending.is_finished(), "20 MB do not fit into the sockets, so the client is held up");
    assert_eq!(sink.packets_of(1), 10);

    sink.room.add_permits(10_000);
    for number in 0..5_000_u32 {
        let echoed = within(receiver.receive()).await.unwrap().unwrap();
        assert_eq!(echoed[..4], number.to_be_bytes());
    }
    drop(within(sending).await.unwrap());
    within(gate.stop()).await;
}

#[tokio::test]
async fn closing_a_connection_that_waits_for_room_drops_its_packet_and_reports_it_gone() {
    let (gate, connections, sink) = open(options()).await;
    sink.room.forget_permits(sink.room.available_permits());
    let mut client = Client::connect(gate.local_address()).await.unwrap();
    client.send(b"never admitted").await.unwrap();
    until(|| connections.snapshot().frames_in == 1).await;
    assert!(connections.close(1));
    assert_eq!(frames_until_end(&mut client).await, 0);
    drop(client);
    until(|| connections.snapshot().open == 0).await;
    assert_eq!(sink.of(1), [Happening::Connected, Happening::Disconnected(CloseReason::HostClosed)]);
    within(gate.stop()).await;
}

#[tokio::test]
async fn clients_beyond_the_limit_are_refused_and_those_within_it_never_notice() {
    let (gate, connections, _sink) = open(GateOptions { max_connections: 2, ..options() }).await;
    let mut first = Client::connect(gate.local_address()).await.unwrap();
    let mut second = Client::connect(gate.local_address()).await.unwrap();
    echo(&mut first, b"in").await.unwrap();
    echo(&mut second, b"in").await.unwrap();

    let mut third = Client::connect(gate.local_address()).await.unwrap();
    assert_eq!(frames_until_end(&mut third).await, 0);
    let snapshot = connections.snapshot();
    assert_eq!((snapshot.open, snapshot.accepted, snapshot.refused), (2, 2, 1));
    assert_eq!(echo(&mut first, b"still in").await.unwrap().as_deref(), Some(b"still in".as_slice()));

    drop(second);
    until(|| connections.snapshot().open == 1).await;
    let mut fourth = Client::connect(gate.local_address()).await.unwrap();
    assert_eq!(echo(&mut fourth, b"room again").await.unwrap().as_deref(), Some(b"room again".as_slice()));
    drop((first, fourth));
    within(gate.stop()).await;
}

#[tokio::test]
async fn a_stop_delivers_what_was_sent_and_refuses_who_comes_later() {
    let (gate, connections, sink) = open(options()).await;
    let address = gate.local_address();
    let mut client = Client::connect(address).await.unwrap();
    echo(&mut client, b"hello").await.unwrap();
    connections.send(1, b"last words").unwrap();
    let stopping = tokio::spawn(gate.stop());
    assert_eq!(within(client.receive()).await.unwrap().as_deref(), Some(b"last words".as_slice()));
    assert_eq!(within(client.receive()).await.unwrap(), None);
    drop(client);
    within(stopping).await.unwrap();
    assert_eq!(sink.ended(1), Some(CloseReason::Stopping));
    assert_eq!(connections.snapshot().open, 0);
    assert!(Client::connect(address).await.is_err());
}

#[tokio::test]
async fn a_stop_does_not_wait_for_ever_for_clients_that_neither_read_nor_leave() {
    let options = GateOptions { drain_timeout_ms: 50, max_backlog_kb: 64 * 1024, ..options() };
    let (gate, connections, sink) = open(options).await;
    let mut client = Client::connect(gate.local_address()).await.unwrap();
    echo(&mut client, b"hello").await.unwrap();
    for _ in 0..500 {
        connections.send(1, &[5; 60_000]).unwrap();
    }
    let begun = tokio::time::Instant::now();
    within(gate.stop()).await;
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(sink.ended(1), Some(CloseReason::Stopping));
    assert_eq!(connections.snapshot().open, 0);
}

#[tokio::test]
async fn a_stop_abandons_a_sink_that_never_answers() {
    let (gate, connections, sink) = open(GateOptions { drain_timeout_ms: 50, ..options() }).await;
    sink.room.forget_permits(sink.room.available_permits());
    let mut client = Client::connect(gate.local_address()).await.unwrap();
    client.send(b"waits for ever").await.unwrap();
    until(|| connections.snapshot().frames_in == 1).await;
    within(gate.stop()).await;
    assert_eq!(connections.snapshot().open, 0);
    assert_eq!(sink.packets_of(1), 0);
}

#[tokio::test]
async fn a_sink_that_takes_no_more_ends_the_connection() {
    let (gate, connections, sink) = open(options()).await;
    sink.room.close();
    let mut client = Client::connect(gate.local_address()).await.unwrap();
    client.send(b"hello?").await.unwrap();
    assert_eq!(frames_until_end(&mut client).await, 0);
    drop(client);
    until(|| connections.snapshot().open == 0).await;
    assert_eq!(sink.ended(1), Some(CloseReason::Stopping));
    within(gate.stop()).await;
}

#[tokio::test]
async fn a_port_in_use_is_one_line_that_names_it_and_the_mend() {
    let (gate, _connections, _sink) = open(options()).await;
    let taken = gate.local_address();
    let refused = BoundGate::bind(&GateOptions { listen: taken, ..options() }).await.unwrap_err().to_string();
    assert!(refused.starts_with(&format!("cannot listen for clients on {taken}: ")), "{refused}");
    assert!(refused.ends_with("; stop the program that uses it, or set `gate.listen` to another port"), "{refused}");
    assert!(!refused.contains('\n'));
    within(gate.stop()).await;
}

#[tokio::test]
async fn an_address_of_another_machine_is_refused_with_the_mend() {
    let options = GateOptions { listen: "192.0.2.1:7171".parse().unwrap(), ..options() };
    let refused = BoundGate::bind(&options).await.unwrap_err().to_string();
    assert!(refused.ends_with("set `gate.listen` to an address of this machine"), "{refused}");
}
