//! The rooms wired into one running host: [`Host::start`] takes a [`Config`] and gives a world that answers clients and
//! operators until it is stopped. The [`Simulation`](crate::sim::Simulation) that the loop runs is here too; it decides
//! the order of things and holds no rules of the game.
//!
//! The way of a packet through the files: the gate hands it to [`router`], which knows to whom its connection is bound (a
//! [`route`]) and posts an [`Item`](simulation::Item) for a game; `simulation` takes it on the loop and calls the game
//! (`handlers`); what the handler did beyond the world is carried out by `effects`. A timer comes back as a
//! [`Timer`](simulation::Timer), to a handler or to `thinking`; a task lives in `tasks`. What a handler has changed is
//! handed to the store by `committing`, which then lets the packets go that wait in `outbox` and the `letters` to
//! services; what services tell games comes to their `inboxes` and is handled in `messages`. Events come back from the
//! store through `event_pages` and run in `events`.

mod asked;
mod assembly;
mod bell;
mod board;
mod checkpoints;
mod committing;
pub mod config;
mod effects;
mod event_orders;
mod event_pages;
mod events;
mod generations;
mod guests;
mod handlers;
mod held_timers;
mod host;
mod inboxes;
mod letters;
mod messages;
mod operator;
mod outbox;
mod route;
mod router;
mod service_view;
mod services;
mod set_aside;
mod simulation;
mod swapper;
mod swaps;
mod tasks;
mod thinking;

pub use board::HostStatus;
pub use config::Config;
pub use host::{Host, StartError, StopError};
