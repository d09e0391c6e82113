//! A step task of Meadow: counts what is on a map while it parses the map's JSON, so many bytes a step.
//!
//! Arguments: the JSON file's bytes, an object of which these keys matter, in any order; others are skipped:
//!
//! ```json
//! {
//!   "legend": { "~": "water", ".": "grass" },
//!   "rows": ["~~..", "~..."],
//!   "features": [{ "kind": "well", "x": 2, "y": 1 }]
//! }
//! ```
//!
//! Result: JSON with how many tiles there are of each kind and features of each kind:
//! `{"tiles":{"grass":5,"water":3},"features":{"well":1}}`.

mod count;
mod tokens;

use std::time::Duration;

use count::Count;
use serde::{Deserialize, Serialize};
use tokens::{Token, Tokens};
use wheelhouse_guest::prelude::*;

/// How many bytes one step reads: a small part of a millisecond's work, so that a step fits any frame.
const BYTES_PER_STEP: usize = 4_096;

/// The census.
#[derive(Serialize, Deserialize)]
struct Census {
    tokens: Tokens,
    count: Count,
}

impl StepTask for Census {
    fn start(arguments: Vec<u8>) -> Result<Self, Refusal> {
        if arguments.is_empty() {
            refuse!("the census needs a map: the arguments are empty");
        }
        Ok(Self { tokens: Tokens::new(arguments), count: Count::default() })
    }

    fn step(&mut self, _timeslice: Duration) -> StepResult {
        match self.read(BYTES_PER_STEP) {
            Ok(None) => StepResult::InProgress,
            Ok(Some(result)) => StepResult::Finished(result.into_bytes()),
            Err(message) => StepResult::Failed(message),
        }
    }
}

impl Census {
    /// Reads on until `bytes` more are read; the result when the end was reached.
    fn read(&mut self, bytes: usize) -> Result<Option<String>, String> {
        let stop = self.tokens.position() + bytes;
        while self.tokens.position() < stop {
            match self.tokens.next() {
                Ok(Some(token)) => self.take(token)?,
                Ok(None) => return self.count.result().map(Some),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(None)
    }

    fn take(&mut self, token: Token) -> Result<(), String> {
        self.count.take(token).map_err(|what| format!("byte {}: {what}", self.tokens.position()))
    }
}

wheelhouse_guest::step_task!(Census);

#[cfg(test)]
mod tests;
