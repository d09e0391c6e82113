//! Sockets against a listener of this machine: what a service hears of one, in which order, and what it cannot have.

use std::collections::VecDeque;
use std::future::poll_fn;

use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::*;
use crate::service::{Handles, MemberKind, ServiceOptions};

const PATIENCE: Duration = Duration::from_secs(20);

struct World {
    sockets: Sockets,
    member: Arc<Member>,
    listener: TcpListener,
    port: u16,
    heard: VecDeque<Message>,
}

impl World {
    /// A service with a mailbox for so many messages, which may connect to a listener of this machine.
    async fn new(mailbox_capacity: usize) -> Self {
        let options = ServiceOptions { mailbox_capacity, ..ServiceOptions::default() };
        let runtime = tokio::runtime::Handle::current();
        let services = Services::new(options, 1 << 20, Vec::new(), Handles::beginning_at(1), runtime);
        let member = services.add_member(MemberKind::Native, "mailer");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let grants = [format!("127.0.0.1:{port}"), "localhost:*".to_owned()];
        let sockets = Sockets::new(&services, &member, &grants);
        Self { sockets, member, listener, port, heard: VecDeque::new() }
    }

    /// Connects; the answer is the socket and the peer's end.
    async fn connect(&mut self) -> (u64, TcpStream) {
        let socket = self.sockets.connect("127.0.0.1", self.port).unwrap();
        let (peer, _) = timeout(PATIENCE, self.listener.accept()).await.unwrap().unwrap();
        (socket, peer)
    }

    /// The next message.
    async fn hear(&mut self) -> Message {
        if self.heard.is_empty() {
            let heard = poll_fn(|context| self.member.mailbox.poll_take(context, &mut self.heard, 1));
            timeout(PATIENCE, heard).await.expect("a message comes in time");
        }
        self.heard.pop_front().expect("the mailbox is open")
    }
}

#[tokio::test]
async fn a_service_hears_that_it_is_connected_then_what_comes_and_then_the_end() {
    let mut world = World::new(100).await;
    let (socket, mut peer) = world.connect().await;
    let connected = world.hear().await;
    assert!(matches!(connected.subject, Subject::SocketConnected(id) if id == socket));
    assert_eq!(connected.source, Handle::HOST);
    peer.write_all(b"hello").await.unwrap();
    let data = world.hear().await;
    assert!(matches!(data.subject, Subject::SocketData(id) if id == socket));
    assert_eq!(&data.payload[..], b"hello");
    drop(peer);
    let closed = world.hear().await;
    assert!(matches!(closed.subject, Subject::SocketClosed(id) if id == socket));
    assert_eq!(&closed.payload[..], b"closed by the other side");
    assert!(world.sockets.wants(&closed.subject));
    assert!(matches!(world.sockets.send(socket, Bytes::new()), Err(SocketError::Closed)));
    assert!(!world.sockets.close(socket));
}

#[tokio::test]
async fn what_is_sent_before_the_connection_is_open_and_before_it_is_closed_arrives() {
    let mut world = World::new(100).await;
    let socket = world.sockets.connect("127.0.0.1", world.port).unwrap();
    world.sockets.send(socket, Bytes::from_static(b"early, ")).unwrap();
    let (mut peer, _) = world.listener.accept().await.unwrap();
    world.hear().await;
    world.sockets.send(socket, Bytes::from_static(b"late")).unwrap();
    assert!(world.sockets.close(socket) && !world.sockets.close(socket));
    let mut received = Vec::new();
    timeout(PATIENCE, peer.read_to_end(&mut received)).await.unwrap().unwrap();
    assert_eq!(received, b"early, late");
    assert_eq!(world.member.mailbox.lengths().0, 0, "nothing more is heard of it");
}

#[tokio::test]
async fn of_a_socket_that_is_closed_nothing_that_waits_in_the_mailbox_is_heard() {
    let mut world = World::new(100).await;
    let (socket, mut peer) = world.connect().await;
    let (other, _other_peer) = world.connect().await;
    peer.write_all(b"hello").await.unwrap();
    drop(peer);
    let waiting = [world.hear().await, world.hear().await, world.hear().await, world.hear().await];
    let wants_of = |sockets: &mut Sockets| waiting.iter().filter(|message| sockets.wants(&message.subject)).count();
    assert_eq!(wants_of(&mut world.sockets), 4, "both are connected, and one has data and its end");
    world.sockets.close(socket);
    assert_eq!(wants_of(&mut world.sockets), 1);
    world.sockets.close(other);
    assert_eq!(wants_of(&mut world.sockets), 0);
}

#[tokio::test]
async fn a_socket_that_is_over_is_heard_of_to_its_end_whatever_is_opened_meanwhile() {
    let mut world = World::new(100).await;
    let (socket, peer) = world.connect().await;
    world.hear().await;
    peer.set_zero_linger().unwrap();
    drop(peer);
    let closed = world.hear().await;
    assert!(!world.sockets.close(socket + 1));
    world.connect().await;
    assert!(world.sockets.wants(&closed.subject), "it is heard of although it is over");
    world.connect().await;
    assert!(!world.sockets.wants(&closed.subject), "its end was heard");
}

#[tokio::test]
async fn a_socket_that_is_closed_waits_for_no_room_in_the_mailbox() {
    let mut world = World::new(1).await;
    world.member.mailbox.push(Message::new(Handle::HOST, Subject::Plain, Bytes::new())).unwrap();
    let (socket, mut peer) = world.connect().await;
    world.sockets.send(socket, Bytes::from_static(b"good-bye")).unwrap();
    world.sockets.close(socket);
    let mut received = Vec::new();
    timeout(PATIENCE, peer.read_to_end(&mut received)).await.unwrap().unwrap();
    assert_eq!(received, b"good-bye");
    assert!(matches!(world.hear().await.subject, Subject::Plain));
    assert_eq!(world.member.mailbox.lengths(), (0, 1), "nothing is heard of it");
}

#[tokio::test]
async fn a_peer_that_sends_nothing_more_still_gets_what_waits_and_what_the_service_answers() {
    const BYTES: usize = 1024 * 1024;
    let mut world = World::new(100).await;
    let (socket, mut peer) = world.connect().await;
    world.hear().await;
    // More than the system keeps for a peer that does not read.
    let (mut sent, mut refused) = (0, 0);
    while refused < 1000 {
        match world.sockets.send(socket, Bytes::from(vec![7; BYTES / 4])) {
            Ok(()) => (sent, refused) = (sent + BYTES / 4, 0),
            Err(_) => refused += 1,
        }
        tokio::task::yield_now().await;
    }
    peer.write_all(b"question").await.unwrap();
    peer.shutdown().await.unwrap();
    let (question, closed) = (world.hear().await, world.hear().await);
    assert!(matches!(closed.subject, Subject::SocketClosed(_)));
    while world.sockets.send(socket, Bytes::from_static(b"answer")).is_err() {
        let mut piece = vec![0; BYTES];
        let read = peer.read(&mut piece).await.unwrap();
        assert!(read > 0, "what waits is sent");
        sent -= read;
    }
    assert!(world.sockets.wants(&question.subject) && world.sockets.wants(&closed.subject));
    assert!(world.sockets.send(socket, Bytes::new()).is_err(), "its end was heard");
    drop((question, closed));
    let mut received = Vec::new();
    timeout(PATIENCE, peer.read_to_end(&mut received)).await.unwrap().unwrap();
    assert_eq!(received.len(), sent + b"answer".len());
    assert!(received.ends_with(b"answer"));
}

#[tokio::test]
async fn one_peer_does_not_fill_a_mailbox_alone() {
    let mut world = World::new(10_000).await;
    let (_socket, mut peer) = world.connect().await;
    let sending = tokio::spawn(async move { peer.write_all(&vec![7; 64 * 1024 * 1024]).await });
    let mut unhandled = vec![world.hear().await];
    while unhandled.len() < MAX_UNHANDLED as usize {
        unhandled.push(world.hear().await);
    }
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.member.mailbox.lengths().0, 0);
    drop(unhandled);
    world.hear().await;
    sending.abort();
}

#[tokio::test]
async fn a_connection_that_does_not_come_about_is_closed_with_the_reason() {
    let World { mut sockets, member, listener, port, heard } = World::new(100).await;
    drop(listener);
    let socket = sockets.connect("127.0.0.1", port).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut world = World { sockets, member, listener, port, heard };
    let closed = world.hear().await;
    assert!(matches!(closed.subject, Subject::SocketClosed(id) if id == socket));
    assert!(String::from_utf8_lossy(&closed.payload).contains("refused"));
}

#[tokio::test]
async fn only_hosts_and_ports_that_are_granted_are_connected_to() {
    let mut world = World::new(100).await;
    let port = world.port;
    let mut refused = |host: &str, port| matches!(world.sockets.connect(host, port), Err(SocketError::NotGranted(_)));
    assert!(refused("127.0.0.1", port ^ 1));
    assert!(refused("127.0.0.2", port));
    assert!(refused("LOCALHOST", port), "hosts are compared as they are written");
    assert!(!refused("localhost", port) && !refused("localhost", port ^ 1));
}

#[tokio::test]
async fn a_service_that_does_not_read_slows_its_peer_and_loses_nothing() {
    const BYTES: usize = 8 * 1024 * 1024;
    let mut world = World::new(2).await;
    let (_socket, mut peer) = world.connect().await;
    let sending = tokio::spawn(async move {
        peer.write_all(&vec![7; BYTES]).await.unwrap();
        peer
    });
    world.hear().await;
    while world.member.mailbox.lengths().0 < 2 {
        tokio::task::yield_now().await;
    }
    assert!(!sending.is_finished());
    let mut received = 0;
    while received < BYTES {
        received += world.hear().await.payload.len();
    }
    assert_eq!(received, BYTES);
    sending.await.unwrap();
}

#[tokio::test]
async fn a_peer_that_does_not_read_has_only_so_much_waiting_for_it() {
    let mut world = World::new(100).await;
    let (socket, _peer) = world.connect().await;
    let piece = Bytes::from(vec![0; 256 * 1024]);
    let mut taken = 0;
    while world.sockets.send(socket, piece.clone()).is_ok() {
        taken += 1;
        tokio::task::yield_now().await;
        assert!(taken < 1000);
    }
    let refused = world.sockets.send(socket, piece);
    assert!(matches!(refused, Err(SocketError::TooMuch(1_048_576))));
}

#[tokio::test]
async fn a_service_has_only_so_many_sockets_and_those_that_ended_count_no_more() {
    let mut world = World::new(1000).await;
    let mut open = Vec::new();
    for _ in 0..MAX_SOCKETS {
        open.push(world.connect().await);
        world.hear().await;
    }
    let refused = world.sockets.connect("127.0.0.1", world.port);
    assert!(matches!(refused, Err(SocketError::TooMany(64))));
    drop(open.pop());
    assert!(matches!(world.hear().await.subject, Subject::SocketClosed(_)));
    while world.sockets.places.available_permits() == 0 {
        tokio::task::yield_now().await;
    }
    world.connect().await;
}

#[tokio::test]
async fn the_end_of_a_service_closes_its_sockets() {
    let mut world = World::new(100).await;
    let (_socket, mut peer) = world.connect().await;
    world.hear().await;
    drop(world.sockets);
    let mut received = Vec::new();
    timeout(PATIENCE, peer.read_to_end(&mut received)).await.unwrap().unwrap();
    assert!(received.is_empty());
}
