//! Wheelhouse: a game simulation host that runs game logic as sandboxed WebAssembly guests.
//!
//! The program `wheelhouse` runs a world from a configuration file; a program of your own runs one like this:
//!
//! ```no_run
//! use wheelhouse::clock::MonotonicClock;
//! use wheelhouse::guest::{Grant, GuestKind, GuestSettings};
//! use wheelhouse::server::{Config, Host};
//!
//! let mut config = Config::default();
//! let mut rules = GuestSettings::new("rules", GuestKind::Game, "guests/build/rules.wasm");
//! rules.grants = vec![Grant::Entities, Grant::Kv, Grant::Events, Grant::Timers, Grant::Tasks, Grant::Gate];
//! config.guests.push(rules);
//!
//! let host = Host::start(&config, MonotonicClock::shared())?;
//! println!("clients connect to {}", host.gate_address());
//! let outcome = host.runtime().block_on(host.loop_ended());
//! println!("the loop failed: {outcome:?}");
//! host.stop()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`sim`] and [`world`] can be used without the rest: they know no Wasm, no sockets and no disk; so can [`store`], which knows the disk alone.
//!
//! The rooms of this crate stand one above the other; each uses only those declared before it.

pub mod clock;

pub mod sim;

pub mod world;

pub mod store;

pub mod guest;

pub mod service;

pub mod net;

pub mod admin;

pub mod server;

pub mod cli;
