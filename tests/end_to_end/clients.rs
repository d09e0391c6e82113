//! Clients that misbehave: each is cut off and counted for what it did; the others are served.

use std::thread;

use wheelhouse_tests::{Config, Host, PAUSE, World, hostile};

fn world(config: Config) -> Host {
    World::new(&config.guest(hostile("game", "game"))).serve()
}

/// Waits until as many connections were closed for that reason.
fn wait_for_closed(host: &Host, reason: &str, count: u64) {
    host.wait_until(&format!("closed_by.{reason} = {count}"), |status| {
        status["connections"]["closed_by"][reason] == count
    });
}

#[test]
fn a_frame_longer_than_the_limit_ends_its_connection() {
    let host = world(Config::new().set("gate.max_frame_bytes", 100));
    let echo = host.echo();
    let mut client = host.connect();
    client.send_raw(&[0xFF, 0xFF]);
    client.wait_for_end();
    wait_for_closed(&host, "frame_too_large", 1);
    echo.finish("a frame that is too long");
    host.stop();
}

#[test]
fn half_a_frame_and_then_nothing_ends_its_connection_when_its_time_is_up() {
    let host = world(Config::new().set("gate.idle_timeout_s", 1));
    let echo = host.echo();
    let mut client = host.connect();
    client.send_raw(&[0, 10, b'h', b'a', b'l', b'f']);
    client.wait_for_end();
    wait_for_closed(&host, "idle", 1);
    echo.finish("half a frame and then nothing");
    host.stop();
}

#[test]
fn a_stream_that_ends_within_a_frame_is_a_lost_connection() {
    let host = world(Config::new());
    let mut client = host.connect();
    client.send_raw(&[0, 10, b'h', b'a', b'l', b'f']);
    client.end_sending();
    wait_for_closed(&host, "connection_lost", 1);
    host.stop();
}

#[test]
fn a_flood_of_frames_ends_its_connection() {
    let host = world(Config::new());
    let echo = host.echo();
    let mut client = host.connect();
    let frames = [0, 6, b'p', b'i', b'n', b'g', b' ', b'x'].repeat(1000);
    while client.try_send_raw(&frames) {}
    wait_for_closed(&host, "frame_rate", 1);
    echo.finish("a flood of frames");
    host.stop();
}

#[test]
fn a_client_that_does_not_read_ends_its_connection() {
    let host = world(Config::new().set("gate.max_backlog_kb", 16));
    let echo = host.echo();
    let mut client = host.connect();
    let mut ping = vec![0x3E, 0x80];
    ping.extend_from_slice(b"ping ");
    ping.resize(2 + 0x3E80, b'x');
    // The system's own buffers have to be full before the host's backlog grows.
    while client.try_send_raw(&ping) {
        thread::sleep(PAUSE);
    }
    wait_for_closed(&host, "backlog", 1);
    echo.finish("a client that does not read");
    host.stop();
}

#[test]
fn random_bytes_harm_nobody() {
    let host = world(Config::new());
    let echo = host.echo();
    // A generator of the kind of Marsaglia's xorshift: the same bytes in every run.
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    for _ in 0..50 {
        let bytes: Vec<u8> = (0..2000).map(|_| random()).collect();
        let mut client = host.connect();
        client.try_send_raw(&bytes);
        // And packets that are whole, but no text.
        let mut client = host.connect();
        client.send(&bytes[..64]);
    }
    host.wait_until("only the well-behaved client is left", |status| status["connections"]["open"] == 1);
    echo.finish("random bytes from 100 clients");
    assert_eq!(host.status()["loop"]["faults"], 0);
    host.stop();
}

#[test]
fn a_client_too_many_is_refused_and_counted() {
    let host = world(Config::new().set("gate.max_connections", 2));
    let mut first = host.connect();
    let mut second = host.connect();
    assert_eq!((first.ask("ping 1"), second.ask("ping 2")), ("pong 1".into(), "pong 2".into()));
    host.connect().wait_for_end();
    let status = host.wait_until("it is counted", |status| status["connections"]["refused"] == 1);
    assert_eq!(status["connections"]["open"], 2);
    assert_eq!(first.ask("ping again"), "pong again");
    host.stop();
}
