//! What the end-to-end tests stand on: the real program in a folder of its own, its log, its status, and clients on real
//! sockets. The tests themselves are in `end_to_end/`, the guests that misbehave in `guests/`.
//!
//! Nothing here sleeps to let things settle: whoever waits, waits for a condition and gives up after [`PATIENCE`].

mod changeling;
mod client;
mod config;
mod echo;
mod host;
mod ledger;
mod log;
mod mount;
mod program;
mod random;

use std::time::Duration;

pub use changeling::version;
pub use client::{Client, PAUSE};
pub use config::{Config, Guest, example, helpful, hostile, ledger, tests_folder, workspace};
pub use echo::Echo;
pub use host::{Host, Starting, Stopped, World, guest};
pub use ledger::{EventId, Ran, assert_no_drift, wait_until_wall, wall_ms};
pub use log::Log;
pub use mount::Mount;
pub use program::{failure_of, python, wheelhouse};
pub use random::Random;

/// How long anything is waited for. Far more than it takes, since other programs want the machine too.
pub const PATIENCE: Duration = Duration::from_secs(60);
