//! Guests: how their files become code, how an instance is called and stopped, what it may import, and what becomes of
//! one that fails. The server lends it the [`Stage`]; this room owns no game state.
//!
//! The way of a guest through the files: [`load`] inspects ([`component`]) and links (`imports`) its file; a game or a
//! thinker lives as a [`Resident`], a step task as a [`StepTaskRun`], a job as a [`JobRun`]; each call goes through an
//! `Instance`, which lends the stage, sets the deadline and measures; a failure ([`CallError`]) is judged by a
//! [`Supervisor`].

mod bulk;
pub mod component;
pub mod contract;
pub mod counters;
pub mod encode;
pub mod engine;
pub(crate) mod epoch;
pub mod event_book;
pub mod failure;
mod function_cache;
pub mod generation;
pub(crate) mod imports;
pub mod instance;
pub mod job;
pub mod kinds;
mod layered;
pub mod letter_book;
pub mod load;
mod log_lines;
mod probation;
pub mod resident;
pub mod service_limits;
pub mod settings;
pub mod shared_reads;
pub mod stage;
pub mod state;
pub mod step_task;
mod succession;
pub mod supervisor;
mod swap_options;
pub mod think_batch;
pub mod timer_book;
pub mod trial;
mod unfinished;

pub use component::LoadError;
pub use counters::{GuestCounters, GuestSnapshot, GuestState};
pub use engine::{EngineError, LoopEngine};
pub use event_book::{EventBook, EventsOnDisk};
pub use failure::CallError;
pub use generation::{Fate, Generation, Swapped};
pub use imports::events::shown_id;
pub use instance::StageSlot;
pub use job::{JobRun, Slice};
pub use letter_book::{Letter, LetterBook, ServiceView};
pub use load::{GuestCode, load, read_file};
pub use log_lines::LogLines;
pub use probation::Probation;
pub use resident::{Blame, Resident};
pub use settings::{Grant, GuestKind, GuestLimits, GuestSettings, RestartPolicy};
pub use stage::{Committed, Effect, GuestId, NewTask, Stage, StageLimits};
pub use state::{Identity, InstanceState};
pub use step_task::StepTaskRun;
pub use succession::{Returned, TakenOver};
pub use supervisor::{Supervisor, Verdict};
pub use swap_options::SwapOptions;
pub use think_batch::ThinkBatch;
pub use timer_book::{GuestTimer, TimerBook};
pub use trial::{Inheritance, Prepared, SwapError, try_out, try_to_instantiate};

/// The code of a game and of a thinker, linked and ready to be instantiated.
pub use contract::game::GamePre;
pub use contract::thinker::ThinkerPre;
