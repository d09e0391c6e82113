//! Wheelhouse: a game simulation host that runs game logic as sandboxed WebAssembly guests.
//!
//! The rooms of this crate stand one above the other; each uses only those declared before it.

pub mod admin;
pub mod cli;
pub mod clock;
pub mod guest;
pub mod net;
pub mod server;
pub mod sim;
pub mod world;
