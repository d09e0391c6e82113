//! A step task that takes as many steps as its argument says, and answers with its version.

use std::time::Duration;

use changeling::Mark;
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

#[derive(Serialize, Deserialize)]
struct Steps {
    left: u32,
}

impl StepTask for Steps {
    fn start(arguments: Vec<u8>) -> Result<Self, Refusal> {
        Mark::read().misbehave("start")?;
        Ok(Self { left: std::str::from_utf8(&arguments)?.parse()? })
    }

    fn step(&mut self, _timeslice: Duration) -> StepResult {
        if self.left == 0 {
            return StepResult::Finished(Mark::read().version.clone().into_bytes());
        }
        self.left -= 1;
        StepResult::InProgress
    }
}

wheelhouse_guest::step_task!(Steps);
