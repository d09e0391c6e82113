//! How a host keeps what its clients do: a real [`wheelhouse::server::Host`] in this process, with the ledger for a game
//! and clients on real sockets, on a clock that is moved by hand and a database that does as the test says. A module for
//! each thing that can get in the way.
//!
//! Nothing here sleeps to let things settle: whoever waits, waits for a condition and gives up after [`PATIENCE`].

mod answers;
mod clock_steps;
mod disk;
mod losing_guests;
mod operators;
mod pages;
mod player;
mod saving;
mod services;
mod stops;
mod trouble;
mod world;

use std::time::Duration;

/// How long anything is waited for. Far more than it takes, since other programs want the machine too.
pub const PATIENCE: Duration = Duration::from_secs(20);
