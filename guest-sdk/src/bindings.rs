//! What `wit-bindgen` makes of the contract in `wit/`: the raw functions and types, one module per interface, and one
//! module per kind of guest with the traits that the kind's exports stand for.
//!
//! The rest of this crate wraps these; a guest calls them directly where it wants no wrapper, except for two that must go
//! through their wrappers: [`actor::exit`], of which a plain service takes notice itself, and all of [`async_calls`].
//! Nothing here is written
//! by hand: `build.rs` chooses the options.
//!
//! All kinds share one set of types, made with the imports. Each kind's export macro carries the description of its
//! world, so that a guest exports the kind that it names and no other; imports that it does not call are dropped when
//! the component is encoded.
// Generated code is not written to our taste.
#![allow(missing_docs, clippy::all)]

/// Every interface that a guest may import.
pub mod imports {
    include!(concat!(env!("OUT_DIR"), "/imports.rs"));
}

pub use imports::wheelhouse::sim::{
    actor, async_calls, bulk, calls, clock, entities, events, gate, groups, kv, log, metrics, random, requests,
    services, shared, sockets, stepping, tasks, thinking, timers, types,
};

/// The exports of a `game`.
pub mod game {
    include!(concat!(env!("OUT_DIR"), "/game.rs"));
}

/// The exports of a `thinker`.
pub mod thinker {
    include!(concat!(env!("OUT_DIR"), "/thinker.rs"));
}

/// The exports of a `step-task`.
pub mod step_task {
    include!(concat!(env!("OUT_DIR"), "/step_task.rs"));
}

/// The exports of a `job`.
pub mod job {
    include!(concat!(env!("OUT_DIR"), "/job.rs"));
}

/// The exports of a plain `service`, which takes messages several at a time.
pub mod bulk_service {
    include!(concat!(env!("OUT_DIR"), "/bulk_service.rs"));
}

/// The exports of an async `service`.
pub mod async_service {
    include!(concat!(env!("OUT_DIR"), "/async_service.rs"));
}
