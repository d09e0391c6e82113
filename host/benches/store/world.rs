//! What the tables share: folders on disk, the configuration of a host with the benchmark's guest, the events that are
//! scheduled, and a client.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;
use wheelhouse::guest::{Grant, GuestKind, GuestSettings};
use wheelhouse::server::Config;
use wheelhouse::store::agenda::NewEvent;

/// The guest: see `tests/guests/clockwork`.
pub const GUEST: &str = "clockwork";
const GUEST_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/guests/build/clockwork.wasm");

/// What a client waits for an answer at most.
const PATIENCE: Duration = Duration::from_secs(60);

const DAY_MS: u64 = 86_400_000;

/// A folder that is gone when it is dropped.
pub fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the target folder has room for another")
}

pub fn wall_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970").as_millis() as u64
}

/// The defaults, with the guest, free ports, and clients that may send as much as they like.
pub fn config(data_dir: &Path) -> Config {
    assert!(Path::new(GUEST_FILE).is_file(), "`just bench` builds {GUEST_FILE} before it runs this");
    let mut config = Config { data_dir: data_dir.to_owned(), ..Config::default() };
    config.gate.options.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    config.gate.options.max_frames_per_second = 1_000_000;
    config.gate.options.frame_burst = 1_000_000;
    let mut guest = GuestSettings::new(GUEST, GuestKind::Game, GUEST_FILE);
    guest.grants = vec![Grant::Events, Grant::Kv, Grant::Gate];
    config.guests.push(guest);
    config
}

/// Events with so many bytes each, due at random times of a day, but not within `first` from now.
pub fn scattered(count: usize, payload_bytes: usize, first: Duration) -> Vec<NewEvent> {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let from_ms = wall_ms() + first.as_millis() as u64;
    let (kind, payload): (Arc<str>, Arc<[u8]>) = ("tick".into(), vec![7; payload_bytes].into());
    let event = |due_ms| NewEvent { kind: Arc::clone(&kind), payload: Arc::clone(&payload), due_ms, repeat: None };
    (0..count).map(|_| event(from_ms + random.random_range(0..DAY_MS))).collect()
}

/// A client, which speaks in frames of two bytes of length, the high one first, and a text.
pub struct Client {
    socket: TcpStream,
}

impl Client {
    pub fn connect(gate: SocketAddr) -> Self {
        let socket = TcpStream::connect(gate).expect("the gate takes connections");
        socket.set_read_timeout(Some(PATIENCE)).expect("the limit is positive");
        socket.set_nodelay(true).expect("a connected socket takes options");
        Self { socket }
    }

    pub fn send(&mut self, packet: &str) {
        let mut frame = (packet.len() as u16).to_be_bytes().to_vec();
        frame.extend_from_slice(packet.as_bytes());
        self.socket.write_all(&frame).expect("the host takes what is sent");
    }

    pub fn receive(&mut self) -> String {
        let mut length = [0; 2];
        self.socket.read_exact(&mut length).expect("the host answers");
        let mut packet = vec![0; usize::from(u16::from_be_bytes(length))];
        self.socket.read_exact(&mut packet).expect("the host answers");
        String::from_utf8(packet).expect("the guest answers with text")
    }

    pub fn ask(&mut self, packet: &str) -> String {
        self.send(packet);
        self.receive()
    }
}
