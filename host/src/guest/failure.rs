//! How a call of a guest can end other than well, told so that the log line and whoever waits for an answer say the
//! same.

use std::time::Duration;

use wasmtime::{Trap, WasmBacktrace};

use super::encode::one_line;
use super::event_book::DiskLate;

/// A call that did not return ok.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The guest answered with an error of its own. Its instance stays.
    #[error("refused: {0}")]
    Refused(String),
    /// The guest ran longer than it may.
    #[error("stopped after its deadline of {limit_ms} ms")]
    Deadline {
        limit_ms: u64,
        /// Where it was, one frame a line.
        backtrace: String,
    },
    /// The guest trapped, or broke a limit.
    #[error("{message}")]
    Trapped {
        message: String,
        /// Where it was, one frame a line.
        backtrace: String,
    },
    /// The handler has changed something durable, and the disk takes no changes now. It has done nothing, and is to be
    /// called again once the disk does.
    #[error("the disk takes no changes now")]
    Unkept,
    /// The disk did not answer in time while the guest looked something up. Its instance is gone, though not by its
    /// fault.
    #[error("the disk was too slow: {0}")]
    DiskLate(String),
    /// The guest is not running: it failed too often, or its code was refused.
    #[error("the guest is not running")]
    NotRunning,
}

/// What is kept of a guest's own words, which may be long.
const MAX_REASON_CHARACTERS: usize = 500;

impl CallError {
    /// A guest's refusal, in one line that is not too long for a log.
    pub(crate) fn refused(reason: String) -> Self {
        CallError::Refused(one_line(&reason).chars().take(MAX_REASON_CHARACTERS).collect())
    }

    /// What wasmtime says, for a call that had `limit` to finish.
    pub(crate) fn from_wasmtime(error: wasmtime::Error, limit: Duration) -> Self {
        if let Some(DiskLate(reason)) = error.downcast_ref() {
            return CallError::DiskLate(reason.clone());
        }
        let backtrace = error.downcast_ref::<WasmBacktrace>().map(ToString::to_string).unwrap_or_default();
        match error.downcast_ref::<Trap>() {
            Some(Trap::Interrupt) => CallError::Deadline { limit_ms: limit.as_millis() as u64, backtrace },
            Some(trap) => CallError::Trapped { message: trap.to_string(), backtrace },
            None => CallError::Trapped { message: causes(&error), backtrace },
        }
    }

    /// Whether the instance can be called again: nothing has gone wrong in it.
    pub fn keeps_instance(&self) -> bool {
        matches!(self, CallError::Refused(_) | CallError::Unkept)
    }

    /// Whether the call is only to be made again later.
    pub fn is_unkept(&self) -> bool {
        matches!(self, CallError::Unkept)
    }

    /// Where the guest was, one frame a line; empty when that is not known.
    pub fn backtrace(&self) -> &str {
        match self {
            CallError::Deadline { backtrace, .. } | CallError::Trapped { backtrace, .. } => backtrace,
            CallError::Refused(_) | CallError::Unkept | CallError::DiskLate(_) | CallError::NotRunning => "",
        }
    }
}

/// The chain of causes on one line, without the backtrace that wasmtime puts in front.
fn causes(error: &wasmtime::Error) -> String {
    let chain: Vec<String> = error
        .chain()
        .map(ToString::to_string)
        .filter(|cause| !cause.starts_with("error while executing"))
        .map(|cause| one_line(&cause))
        .collect();
    chain.join(": ")
}
