//! A step task that misbehaves. Its arguments are the name of a harm (see `mischief`) or one of those below, which it
//! does in its first step; with `start:` in front, already in its start. `steps N` is the well-behaved one.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

#[derive(Serialize, Deserialize)]
struct Hostile {
    harm: String,
    steps: u64,
}

impl StepTask for Hostile {
    fn start(arguments: Vec<u8>) -> Result<Self, Refusal> {
        let arguments = String::from_utf8(arguments)?;
        if let Some(name) = arguments.strip_prefix("start:") {
            if name == "fail" {
                refuse!("this task refuses to start as it was told");
            }
            mischief::commit(name);
        }
        Ok(Self { harm: arguments, steps: 0 })
    }

    fn step(&mut self, _timeslice: Duration) -> StepResult {
        self.steps += 1;
        match self.harm.split_once(' ').unwrap_or((&self.harm, "")) {
            ("forever", _) => StepResult::InProgress,
            ("waiting", _) => StepResult::Waiting,
            ("fail", _) => StepResult::Failed("this task fails as it was told".into()),
            ("big-result", _) => StepResult::Finished(mischief::too_many_bytes()),
            ("big-error", _) => StepResult::Failed(mischief::too_long_text()),
            ("slow", milliseconds) => slow(milliseconds),
            ("write", _) => self.write(),
            ("steps", number) => self.finish_after(number),
            (name, _) if mischief::commit(name) => StepResult::Finished(format!("survived {name}").into_bytes()),
            (name, _) => StepResult::Failed(format!("this task cannot do {name:?}")),
        }
    }
}

impl Hostile {
    /// Tries to change the world, which a step task may not.
    fn write(&self) -> StepResult {
        let spawned = entities::spawn(1, Position::new(0, 0, 0), None);
        let set = kv::set_bytes("hostile", b"step");
        StepResult::Finished(format!("{spawned:?} {set:?}").into_bytes())
    }

    fn finish_after(&self, steps: &str) -> StepResult {
        match steps.parse::<u64>() {
            Ok(steps) if self.steps < steps => StepResult::InProgress,
            Ok(steps) => StepResult::Finished(format!("{steps} steps").into_bytes()),
            Err(error) => StepResult::Failed(error.to_string()),
        }
    }
}

/// A step of so many milliseconds, then another one.
fn slow(milliseconds: &str) -> StepResult {
    let Ok(length) = milliseconds.parse().map(Duration::from_millis) else {
        return StepResult::Failed(format!("{milliseconds:?} are no milliseconds"));
    };
    let end = clock::now() + length;
    while clock::now() < end {}
    StepResult::InProgress
}

wheelhouse_guest::step_task!(Hostile);
