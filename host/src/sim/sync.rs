//! The synchronisation primitives of this room, in one place: `admission.rs` and `reply.rs` name no others, so that a
//! test can compile the same files against a model checker's primitives.

pub use std::sync::atomic::{AtomicU64, Ordering};
pub use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
