//! A step task that takes as many milliseconds as its argument says, and answers with its version.

use std::time::Duration;

use changeling::Mark;
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

#[derive(Serialize, Deserialize)]
struct Steps {
    until: Duration,
}

impl StepTask for Steps {
    fn start(arguments: Vec<u8>) -> Result<Self, Refusal> {
        Mark::read().misbehave("start")?;
        let milliseconds = std::str::from_utf8(&arguments)?.parse()?;
        Ok(Self { until: clock::now() + Duration::from_millis(milliseconds) })
    }

    fn step(&mut self, _timeslice: Duration) -> StepResult {
        if clock::now() < self.until {
            return StepResult::Waiting;
        }
        StepResult::Finished(Mark::read().version.clone().into_bytes())
    }
}

wheelhouse_guest::step_task!(Steps);
