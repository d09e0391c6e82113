//! Write Wheelhouse guests in Rust: a struct, a trait and one macro.
//!
//! **Guest memory is a cache.** A guest that fails is replaced by a new instance, which begins with what was last
//! saved, perhaps a minute ago, or with nothing. What must not be lost belongs in [`entities`] and [`kv`]: the host
//! keeps them safe, and undoes what a handler did to them when it fails. What a struct's own fields hold must be
//! something that the guest can do without or make again.
//!
//! # A guest
//!
//! A guest is a library crate that depends on this crate and on serde:
//!
//! ```toml
//! [lib]
//! crate-type = ["cdylib"]
//!
//! [dependencies]
//! serde = { version = "1", features = ["derive"] }
//! wheelhouse-guest = { path = "../wheelhouse/guest-sdk" } # where your clone of the project is
//! ```
//!
//! and is built with `cargo build --release --target wasm32-unknown-unknown`, or with `wheelhouse guest build`. Its
//! kind follows from the macro:
//!
//! | kind | a guest of this kind | write | macro |
//! | --- | --- | --- | --- |
//! | `game` | holds the rules and changes the world | [`Game`] | [`game!`] |
//! | `thinker` | decides for NPCs, one at a time | [`Thinker`] | [`thinker!`] |
//! | `thinker` | decides for NPCs, a batch at a time | [`BatchThinker`] | [`batch_thinker!`] |
//! | `step-task` | does long work in steps | [`StepTask`] | [`step_task!`] |
//! | `job` | does long work written straight through | a function | [`job!`] |
//! | `service` | is an actor beside the loop, and handles one message after another | [`Service`] | [`service!`] |
//! | `service` | takes the next message while it waits | [`AsyncService`] | [`async_service!`] |
//!
//! Each of these pages has an example. What a guest may call is in the modules: [`log`], [`clock`] and [`random`] are
//! open to all, the others are granted by the host's configuration. A thinker and a step task read [`entities`] and
//! [`kv`] but cannot change them; a job and a service see neither. What a game wants done later is a [timer](timers),
//! where it may be lost when the host stops, and an [event](events), where it must happen.
//!
//! # Services
//!
//! Games and services find each other by name and send messages with [`services`]. To ask and get an answer:
//!
//! | in | use | which |
//! | --- | --- | --- |
//! | a plain service | [`calls`] | waits, with its mailbox |
//! | an async service | [`async_calls`] | waits, and takes the next message |
//! | a game | [`requests`] | does not wait: the answer comes to [`Game::on_reply`] |
//!
//! [`objects`] are called by their methods' names in all three. **Take the plain service** unless it must go on answering
//! while it waits: it is a few times cheaper, the more so for many small messages, and simpler to get right. Where the
//! one that waits is only one client's, as an agent is, plain is enough. Two plain services that call each other wait for
//! each other; one of them had better be async, or [`send`](services::send).
//!
//! # Saving and restoring
//!
//! A guest's struct is `Serialize + Deserialize`, and is carried to the next instance without further ado: through
//! postcard, behind a version number. When a field is added or changed, raise `STATE_VERSION` and let `migrate` read
//! the older form with [`state`]. A service is carried when its code is swapped; one that is started again begins anew.
//!
//! # Panics
//!
//! A panic's message and place are written to the host's log at the level `error`, then the guest traps.
//!
//! # Tests
//!
//! What does not call the host can be tested as usual with `cargo test`; calls to the host panic there.

#![warn(missing_docs)]

/// `return Err(Refusal)`, before the modules that use it.
#[macro_use]
mod refusal;

pub mod actor;
pub mod async_calls;
pub mod async_service;
pub mod bindings;
pub mod calls;
mod carried;
pub mod clock;
mod config;
mod duration;
pub mod entities;
pub mod events;
pub mod game;
pub mod gate;
pub mod groups;
#[doc(hidden)]
pub mod instance;
#[doc(hidden)]
pub mod job;
pub mod kv;
pub mod log;
mod message;
pub mod objects;
mod panic;
pub mod random;
pub mod requests;
mod sentences;
pub mod service;
pub mod services;
pub mod shared;
pub mod sockets;
pub mod state;
pub mod step_task;
pub mod thinker;
pub mod timers;

/// Numbers of the guest's own, which `wheelhouse status` shows under its name.
pub mod metrics {
    pub use crate::bindings::metrics::{count, gauge};
}

/// Starting and cancelling step tasks and jobs. The outcome comes to [`Game::on_task`].
pub mod tasks {
    pub use crate::bindings::tasks::{TaskError, TaskFailure, cancel, start};
}

pub use postcard;
pub use serde;

pub use async_service::AsyncService;
pub use bindings::events::{DueEvent, EventId};
pub use bindings::services::{Reference, ServiceError};
pub use bindings::stepping::StepResult;
pub use bindings::tasks::TaskFailure;
pub use bindings::thinking::{Action, Intent, Npc, Sighting, Traits};
pub use bindings::types::{
    ConnectionId, EntityId, Handle, ObjectId, Occasion, Position, Session, SocketId, SubscriptionId, TaskId, TimeoutId,
    TimerId,
};
pub use game::{FiredTimer, Game};
pub use message::{Message, Subject};
pub use objects::ObjectError;
pub use refusal::Refusal;
pub use service::Service;
pub use step_task::StepTask;
pub use thinker::{Batch, BatchThinker, Context, Thinker};

/// Everything that a guest usually needs: `use wheelhouse_guest::prelude::*`.
pub mod prelude {
    pub use crate::{
        Action, AsyncService, Batch, BatchThinker, ConnectionId, Context, DueEvent, EntityId, EventId, FiredTimer,
        Game, Handle, Intent, Message, Npc, ObjectError, ObjectId, Occasion, Position, Reference, Refusal, Service,
        ServiceError, Session, Sighting, SocketId, StepResult, StepTask, Subject, SubscriptionId, TaskFailure, TaskId,
        Thinker, TimeoutId, TimerId, Traits,
    };
    pub use crate::{actor, async_calls, calls, groups, objects, requests, services, shared, sockets};
    pub use crate::{clock, entities, events, gate, kv, metrics, random, tasks, timers};
    pub use crate::{debug, error, info, refuse, trace, warn};
}

/// The README's example compiles too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
