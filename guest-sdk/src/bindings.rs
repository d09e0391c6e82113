//! What `wit-bindgen` makes of the contract in `wit/`: the raw functions and types, one module per interface, and one
//! module per kind of guest with the traits that the kind's exports stand for.
//!
//! The rest of this crate wraps these; a guest calls them directly where it wants no wrapper. Nothing here is written
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
    clock, entities, events, gate, kv, log, metrics, random, services, stepping, tasks, thinking, timers, types,
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
