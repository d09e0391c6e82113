//! What services need of the gate, which this room knows nothing else of: the server puts the two together.

use std::sync::Arc;

use bytes::Bytes;

use super::handle::Handle;
use super::member::Member;

/// The name that the gate is registered under.
pub const NAME: &str = "gate";

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketRefused {
    /// The connection is closed.
    Closed,
    /// It is longer than a frame may be; the limit in bytes.
    TooLarge(usize),
}

/// The clients' connections, as services see them. Nothing here waits.
pub trait GatePort: Send + Sync {
    /// Sends a packet to a client.
    fn send(&self, connection: u64, packet: &[u8]) -> Result<(), PacketRefused>;

    /// Closes a connection after what was sent before; false when it is closed already.
    fn close(&self, connection: u64) -> bool;

    /// Hands a connection to a member: who has it now hears that it is gone, the new one that it has come. False when
    /// the connection is closed.
    fn bind(&self, connection: u64, to: &Arc<Member>) -> bool;

    /// A packet has come to its turn in the mailbox of a member: where its connection was bound elsewhere meanwhile it is
    /// taken back, and goes there. False when the member is to handle it.
    fn give_back(&self, connection: u64, from: Handle, packet: &Bytes) -> bool;

    /// A member has ended: the connections that were bound to it are closed.
    fn member_ended(&self, member: Handle);
}
