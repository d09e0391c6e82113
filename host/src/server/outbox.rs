//! Packets that wait until what they tell is on disk. A packet leaves when its batch is committed; one that waits for
//! nothing leaves at once, except behind packets to the same client that do wait: what a client is sent keeps its order.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::net::Connections;

/// Something that waits.
#[derive(Debug)]
enum Waiting {
    Packet(Arc<[u8]>),
    Close,
}

/// What waits for one client, each thing with the batch that it waits for.
#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<(u64, Waiting)>,
    bytes: usize,
}

/// The packets that wait, and the way out for all.
pub struct Outbox {
    connections: Connections,
    waiting: FxHashMap<u64, Queue>,
    waiting_bytes: usize,
    /// What may wait for one client; a client for which more would have to is closed.
    max_bytes_per_client: usize,
    /// The newest batch on disk.
    committed: u64,
}

impl Outbox {
    pub fn new(connections: Connections, max_bytes_per_client: usize) -> Self {
        Self { connections, waiting: FxHashMap::default(), waiting_bytes: 0, max_bytes_per_client, committed: 0 }
    }

    /// Bytes of the packets that wait, once for each client.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Sends a packet once the batch `after` is on disk.
    pub fn send(&mut self, to: &[u64], packet: &Arc<[u8]>, after: u64) {
        for connection in to {
            if self.must_wait(*connection, after) {
                self.wait(*connection, after, Waiting::Packet(Arc::clone(packet)));
            } else {
                // A client that is gone, or too slow, is the gate's to count; `on-disconnect` follows.
                let _ = self.connections.send(*connection, packet);
            }
        }
    }

    /// Closes a connection once the batch `after` is on disk.
    pub fn close(&mut self, connection: u64, after: u64) {
        if self.must_wait(connection, after) {
            self.wait(connection, after, Waiting::Close);
        } else {
            self.connections.close(connection);
        }
    }

    /// The newest batch that anything for this client waits for; 0 where nothing waits.
    pub fn newest_wait(&self, connection: u64) -> u64 {
        let waiting = self.waiting.get(&connection).map(|queue| &queue.waiting);
        waiting.into_iter().flatten().map(|(after, _)| *after).max().unwrap_or(0)
    }

    fn must_wait(&self, connection: u64, after: u64) -> bool {
        after > self.committed || self.waiting.contains_key(&connection)
    }

    fn wait(&mut self, connection: u64, after: u64, what: Waiting) {
        let queue = self.waiting.entry(connection).or_default();
        queue.bytes += what.bytes();
        self.waiting_bytes += what.bytes();
        queue.waiting.push_back((after, what));
        if queue.bytes > self.max_bytes_per_client {
            tracing::debug!(connection, "a client is closed: too much for it waits for the disk");
            self.forget(connection);
            self.connections.close(connection);
        }
    }

    /// The client is gone.
    pub fn forget(&mut self, connection: u64) {
        self.waiting_bytes -= self.waiting.remove(&connection).map_or(0, |queue| queue.bytes);
    }

    /// Everything up to the batch `committed` is on disk.
    pub fn release(&mut self, committed: u64) {
        self.committed = committed;
        let (connections, bytes) = (&self.connections, &mut self.waiting_bytes);
        self.waiting.retain(|connection, queue| {
            while let Some((_, what)) = queue.waiting.pop_front_if(|(after, _)| *after <= committed) {
                *bytes -= what.bytes();
                queue.bytes -= what.bytes();
                match what {
                    Waiting::Packet(packet) => drop(connections.send(*connection, &packet)),
                    Waiting::Close => drop(connections.close(*connection)),
                }
            }
            !queue.waiting.is_empty()
        });
    }
}

impl Waiting {
    fn bytes(&self) -> usize {
        match self {
            Waiting::Packet(packet) => packet.len(),
            Waiting::Close => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::GateOptions;

    /// An outbox, and what it has sent to the connections 1 and 2 so far.
    fn outbox() -> (Outbox, impl Fn() -> (u64, u64)) {
        let connections = Connections::new(&GateOptions::default(), 1);
        let links = connections.clone();
        let held = [links.register(), links.register()];
        let sent = move || {
            let _ = &held;
            (links.snapshot().frames_out, links.snapshot().bytes_out)
        };
        (Outbox::new(connections, 20), sent)
    }

    fn packet(text: &str) -> Arc<[u8]> {
        Arc::from(text.as_bytes())
    }

    #[test]
    fn a_packet_that_waits_for_nothing_leaves_at_once() {
        let (mut outbox, sent) = outbox();
        outbox.send(&[1, 2], &packet("now"), 0);
        assert_eq!(sent(), (2, 6));
    }

    #[test]
    fn a_packet_leaves_when_its_batch_is_on_disk_and_not_before() {
        let (mut outbox, sent) = outbox();
        outbox.send(&[1], &packet("later"), 2);
        outbox.release(1);
        assert_eq!((sent().0, outbox.waiting_bytes()), (0, 5));
        outbox.release(2);
        assert_eq!((sent().0, outbox.waiting_bytes()), (1, 0));
        outbox.send(&[1], &packet("later"), 2);
        assert_eq!(sent().0, 2, "what is on disk already is not waited for");
    }

    #[test]
    fn packets_to_one_client_keep_their_order_and_others_do_not_wait_for_them() {
        let (mut outbox, sent) = outbox();
        outbox.send(&[1], &packet("durable"), 5);
        outbox.send(&[1, 2], &packet("plain"), 0);
        assert_eq!(sent(), (1, 5), "only the other client's");
        assert_eq!((outbox.newest_wait(1), outbox.newest_wait(2)), (5, 0));
        outbox.release(5);
        assert_eq!(sent(), (3, 17));
    }

    #[test]
    fn a_close_waits_for_the_packets_before_it() {
        let (mut outbox, _sent) = outbox();
        let connections = outbox.connections.clone();
        outbox.send(&[1], &packet("bye"), 5);
        outbox.close(1, 0);
        assert!(connections.send(1, b"still open").is_ok());
        outbox.release(5);
        assert!(connections.send(1, b"closed").is_err());
    }

    #[test]
    fn a_client_for_which_too_much_would_have_to_wait_is_closed() {
        let (mut outbox, _sent) = outbox();
        let connections = outbox.connections.clone();
        outbox.send(&[1], &packet("twenty bytes at most"), 5);
        assert!(connections.send(1, b"open").is_ok());
        outbox.send(&[1, 2], &packet("!"), 5);
        assert!(connections.send(1, b"closed").is_err());
        assert!(connections.send(2, b"open").is_ok());
        assert_eq!(outbox.waiting_bytes(), 1);
    }

    #[test]
    fn what_waits_for_a_client_that_is_gone_is_forgotten() {
        let (mut outbox, sent) = outbox();
        outbox.send(&[1], &packet("later"), 2);
        outbox.forget(1);
        assert_eq!(outbox.waiting_bytes(), 0);
        outbox.release(2);
        assert_eq!(sent().0, 0);
    }
}
