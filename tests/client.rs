//! A client: frames of two bytes of length, the high one first, and a payload, over a blocking socket.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::PATIENCE;

/// Time between two packets of a client that keeps to `gate.max_frames_per_second`.
pub const PAUSE: Duration = Duration::from_millis(6);

/// A connection to the gate.
pub struct Client {
    socket: TcpStream,
}

impl Client {
    /// Connects.
    pub fn connect(gate: SocketAddr) -> Self {
        let socket = TcpStream::connect(gate).expect("the gate takes connections");
        socket.set_read_timeout(Some(PATIENCE)).expect("the limit is positive");
        socket.set_write_timeout(Some(PATIENCE)).expect("the limit is positive");
        socket.set_nodelay(true).expect("a connected socket takes options");
        Self { socket }
    }

    /// Sends a frame.
    pub fn send(&mut self, packet: impl AsRef<[u8]>) {
        self.send_raw(&frame(packet.as_ref()));
    }

    /// Sends a frame; false once the host has closed the connection.
    pub fn try_send(&mut self, packet: impl AsRef<[u8]>) -> bool {
        self.try_send_raw(&frame(packet.as_ref()))
    }

    /// Sends bytes that need not be a frame.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("the host takes what is sent");
    }

    /// Sends bytes for as long as the host takes them; false once it has closed the connection.
    pub fn try_send_raw(&mut self, bytes: &[u8]) -> bool {
        self.socket.write_all(bytes).is_ok()
    }

    /// The next packet, as text.
    pub fn receive(&mut self) -> String {
        self.try_receive().expect("the host keeps this connection open")
    }

    /// The next packet, as text; none when the host has closed the connection.
    pub fn try_receive(&mut self) -> Option<String> {
        let mut length = [0; 2];
        self.read(&mut length)?;
        let mut packet = vec![0; usize::from(u16::from_be_bytes(length))];
        self.read(&mut packet)?;
        Some(String::from_utf8_lossy(&packet).into_owned())
    }

    fn read(&mut self, bytes: &mut [u8]) -> Option<()> {
        match self.socket.read_exact(bytes) {
            Ok(()) => Some(()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("the host neither answered nor closed the connection within {PATIENCE:?}")
            }
            Err(_) => None,
        }
    }

    /// Whether a packet, or the end of the connection, comes within `limit`. It can be received afterwards.
    pub fn hears_within(&mut self, limit: Duration) -> bool {
        self.socket.set_read_timeout(Some(limit)).expect("the limit is positive");
        let heard = self.socket.peek(&mut [0]);
        self.socket.set_read_timeout(Some(PATIENCE)).expect("the limit is positive");
        !matches!(heard, Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
    }

    /// Sends a packet and answers the next one that comes.
    pub fn ask(&mut self, packet: impl AsRef<[u8]>) -> String {
        self.send(packet);
        self.receive()
    }

    /// Sends a packet and answers the first one that begins with `start`, whatever comes before.
    pub fn ask_for(&mut self, packet: impl AsRef<[u8]>, start: &str) -> String {
        self.send(packet);
        self.receive_until(start)
    }

    /// Asks again and again until that is the answer.
    pub fn ask_until(&mut self, packet: &str, answer: &str) {
        self.ask_until_it(packet, &format!("the answer {answer:?}"), |answered| answered == answer);
    }

    /// Asks again and again until the answer is such that `condition`, and answers it.
    pub fn ask_until_it(&mut self, packet: &str, what: &str, condition: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let answered = self.ask(packet);
            if condition(&answered) {
                return answered;
            }
            assert!(Instant::now() < until, "{what} did not come about; {packet} is answered with {answered:?}");
            thread::sleep(PAUSE);
        }
    }

    /// The first packet that begins with `start`, whatever comes before.
    pub fn receive_until(&mut self, start: &str) -> String {
        loop {
            let packet = self.receive();
            if packet.starts_with(start) {
                return packet;
            }
        }
    }

    /// Waits until the host closes the connection.
    pub fn wait_for_end(&mut self) {
        while self.try_receive().is_some() {}
    }

    /// Says that nothing more will be sent, perhaps in the middle of a frame.
    pub fn end_sending(&mut self) {
        self.socket.shutdown(Shutdown::Write).expect("the connection is open");
    }
}

fn frame(packet: &[u8]) -> Vec<u8> {
    let length = u16::try_from(packet.len()).expect("a frame has at most 65535 bytes");
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend_from_slice(packet);
    frame
}

/// An empty HTTP request to the control port. Answers the status and the body.
pub(crate) fn post(address: &str, path: &str, token: &str) -> (u16, serde_json::Value) {
    let mut socket = TcpStream::connect(address).expect("the control port takes connections");
    socket.set_read_timeout(Some(PATIENCE)).expect("the limit is positive");
    let head = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n");
    socket.write_all(format!("{head}connection: close\r\ncontent-length: 0\r\n\r\n").as_bytes()).expect("it listens");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("the control port answers");
    let status = answer.split_whitespace().nth(1).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status.expect("an answer begins with its status"), serde_json::from_str(body).unwrap_or_default())
}
