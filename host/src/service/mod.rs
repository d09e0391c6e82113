//! Services: guests outside the loop, each an actor with a handle and a mailbox, run on threads of their own. [`Services`]
//! is the handle to all of them: it launches, sends and names. The loop's games and the host's own parts are members like
//! any other, and read their mailboxes themselves.
//!
//! The way of a message through the files: [`Services::deliver`] finds its [`Member`] and puts it into the [`Mailbox`];
//! the member's task (`life`) takes it out and calls the guest (`plain` or `concurrent`), on whose behalf requests are
//! kept in `in_hand`; the answer goes back by its [`Request`]. This room never touches the world, and knows of clients no
//! more than [`GatePort`] says.

mod body;
pub mod code;
mod commons;
mod concurrent;
pub mod dead_letters;
pub mod engine;
mod former;
pub mod gate_port;
pub mod groups;
pub mod handle;
mod imports;
mod in_hand;
mod life;
pub mod logger;
pub mod mailbox;
pub mod member;
pub mod message;
pub mod names;
mod native;
pub mod options;
mod orders;
mod plain;
pub mod service_guest;
pub mod services;
pub mod shared_data;
pub mod snapshot;
mod sockets;
mod state;
mod swap;
mod timeouts;

pub use code::ServiceCode;
pub use dead_letters::DeadLetter;
pub use engine::ServiceEngine;
pub use gate_port::{GatePort, PacketRefused};
pub use handle::{Handle, Handles};
pub use mailbox::Mailbox;
pub use member::{Member, MemberKind};
pub use message::{Answer, Message, Place, Request, ServiceError, Subject, answer_of};
pub use options::ServiceOptions;
pub use service_guest::ServiceGuest;
pub use services::{Services, describe};
pub use snapshot::{ServiceEntry, ServicesSnapshot};
pub use swap::{ServiceSwap, ServiceSwapError};

/// The names of the host's own parts among services.
pub const NATIVE_NAMES: [&str; 3] = [logger::NAME, dead_letters::NAME, gate_port::NAME];
