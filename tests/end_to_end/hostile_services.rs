//! What a service can do to others and to itself, with the real program: mailboxes that overflow, and sockets that it may
//! have, may not have, and has no more.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use serde_json::Value;
use wheelhouse_tests::{Client, Config, Host, PATIENCE, PAUSE, World, helpful, hostile};

/// How many messages a mailbox holds here.
const MAILBOX: usize = 16;

fn world() -> Host {
    let service = |name: &str| hostile(name, "service").key("start", true);
    let config = Config::new()
        .patient()
        .set("service.mailbox_capacity", MAILBOX)
        .guest(service("one"))
        .guest(service("other"))
        .guest(helpful("postman", "game").set("name", "\"postman\""));
    let host = World::new(&config).serve();
    host.wait_until("the services run", |status| status["services"]["running"] == 2);
    host
}

/// Has the game ask a service.
fn ask(client: &mut Client, name: &str, order: &str) -> String {
    let answer = client.ask(format!("request 10000 {name} {order}"));
    answer.strip_prefix("reply ").unwrap_or_else(|| panic!("{name} does not answer {order:?}: {answer}")).to_owned()
}

/// What the service `one` has heard, once it is such that `condition`.
fn heard_by_one(client: &mut Client, what: &str, condition: impl Fn(&str) -> bool) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        let heard = ask(client, "one", "heard");
        if condition(&heard) {
            return heard;
        }
        assert!(Instant::now() < until, "{what} was not heard, but {heard:?}");
        thread::sleep(PAUSE);
    }
}

/// How many messages lie in the mailbox of the service with that name.
fn mailbox_of(host: &Host, name: &str) -> u64 {
    let list = host.command(&["services"])["list"].take();
    let mut entries = list.as_array().expect("a list").iter();
    let entry = entries.find(|entry| entry["guest"] == name).expect("it is listed");
    entry["mailbox"].as_u64().expect("a number")
}

/// Has a service sleep; while it does, its mailbox waits too. What comes from here on stays in it.
fn put_to_sleep(host: &Host, client: &mut Client, name: &str, ms: u32) {
    let messages = |status: &Value| status["services"]["messages"].as_u64();
    let before = messages(&host.status());
    client.send(format!("tell {name} sleep {ms}"));
    host.wait_until("it is told to sleep", |status| messages(status) > before);
    host.wait_until("it sleeps", |_| mailbox_of(host, name) == 0);
}

/// Lets the service `one` open a socket to a listener of this test: its number, and the other end.
fn connected(client: &mut Client) -> (String, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = listener.local_addr().expect("it listens").port();
    let answer = ask(client, "one", &format!("connect 127.0.0.1 {port}"));
    let number = answer.strip_prefix("Ok(").and_then(|number| number.strip_suffix(')'));
    let number = number.unwrap_or_else(|| panic!("it may connect: {answer}")).to_owned();
    let (peer, _) = listener.accept().expect("it connects");
    peer.set_read_timeout(Some(PATIENCE)).expect("the limit is positive");
    let opened = format!("SocketConnected({number})");
    heard_by_one(client, "that it is connected", |heard| heard.contains(&opened));
    (number, peer)
}

#[test]
fn who_floods_a_mailbox_hears_that_it_is_full_and_its_owner_reads_on() {
    let host = world();
    let mut client = host.connect();
    let found = client.ask("find other");
    let other = found.strip_prefix("found ").expect("it has its name").to_owned();
    put_to_sleep(&host, &mut client, "other", 2000);
    let answer = ask(&mut client, "one", &format!("flood 1000 {other}"));
    assert_eq!(answer, format!("{MAILBOX} then ServiceError::MailboxFull({MAILBOX})"));
    assert_eq!(ask(&mut client, "one", "echo as before"), "as before");
    host.wait_until("all are handled", |_| mailbox_of(&host, "other") == 0);
    assert_eq!(ask(&mut client, "other", "echo awake"), "awake");
    let status = host.status();
    assert_eq!(status["services"]["mailbox_max"], MAILBOX);
    assert_eq!((&status["services"]["running"], &status["services"]["failed"]), (&2.into(), &0.into()));
    host.stop();
}

#[test]
fn a_socket_that_is_granted_carries_bytes_both_ways_until_the_peer_closes() {
    let host = world();
    let mut client = host.connect();
    let (number, mut peer) = connected(&mut client);
    assert_eq!(ask(&mut client, "one", &format!("socket-send {number} question")), "Ok(())");
    let mut question = [0; 8];
    peer.read_exact(&mut question).expect("it arrives");
    assert_eq!(&question, b"question");
    peer.write_all(b"answer").expect("it is open");
    drop(peer);
    let closed = format!("SocketClosed({number}) closed by the other side");
    let heard = heard_by_one(&mut client, "the end", |heard| heard.ends_with(&closed));
    assert!(heard.contains(&format!("SocketData({number}) answer\n")), "{heard}");
    assert_eq!(ask(&mut client, "one", &format!("socket-send {number} more")), "Err(SocketError::Closed)");
    assert_eq!(ask(&mut client, "one", &format!("socket-close {number}")), "false");
    host.stop();
}

#[test]
fn a_socket_that_is_not_granted_is_refused_with_what_would_grant_it() {
    let host = world();
    let mut client = host.connect();
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = listener.local_addr().expect("it listens").port();
    let answer = ask(&mut client, "one", &format!("connect localhost {port}"));
    assert!(answer.starts_with("Err(SocketError::NotGranted("), "{answer}");
    assert!(answer.contains(&format!("localhost:{port}")) && answer.contains("sockets"), "{answer}");
    listener.set_nonblocking(true).expect("it listens");
    assert!(listener.accept().is_err(), "nobody has connected");
    assert_eq!(ask(&mut client, "one", "heard"), "");
    host.stop();
}

#[test]
fn nothing_that_waits_is_heard_of_a_socket_once_it_is_closed() {
    let host = world();
    let mut client = host.connect();
    let (number, mut peer) = connected(&mut client);
    put_to_sleep(&host, &mut client, "one", 3000);
    client.send(format!("request 10000 one socket-close {number}"));
    host.wait_until("it is told to close", |_| mailbox_of(&host, "one") == 1);
    peer.write_all(b"too late").expect("it is open");
    host.wait_until("the bytes wait as well", |_| mailbox_of(&host, "one") == 2);
    assert_eq!(client.receive(), "reply true");
    let mut rest = Vec::new();
    peer.read_to_end(&mut rest).expect("it is closed");
    let heard = ask(&mut client, "one", "heard");
    assert!(!heard.contains("SocketData") && !heard.contains("SocketClosed"), "{heard}");
    host.stop();
}
