//! Long work that a player asks for: starts the task, and answers when it has ended. Who asked is in `kv`.

use wheelhouse_guest::prelude::*;
use wheelhouse_guest::tasks::TaskError;

use crate::answer;

/// The map that `census` counts.
const VILLAGE: &[u8] = include_bytes!("../village.json");

const PREFIX: &str = "errand/";

/// How many errands one look into `kv` returns at most.
const PAGE: u32 = 1024;

/// Has a map made by the job.
pub fn terrain(connection: ConnectionId, seed: u64, size: u32) -> Result<(), Refusal> {
    start(connection, "terrain", format!("{seed} {size}").as_bytes())
}

/// Has the village counted by the step task.
pub fn census(connection: ConnectionId) -> Result<(), Refusal> {
    start(connection, "census", VILLAGE)
}

/// Has the weather foretold by the step task, where there is one.
pub fn forecast(connection: ConnectionId, days: u32) -> Result<(), Refusal> {
    start(connection, "forecast", days.to_string().as_bytes())
}

fn start(connection: ConnectionId, guest: &str, arguments: &[u8]) -> Result<(), Refusal> {
    match tasks::start(guest, arguments) {
        Ok(id) => Ok(kv::set(&key(id), &(connection, guest))?),
        Err(TaskError::NoSuchGuest) => answer(connection, format!("{guest}: nobody here can do that")),
        Err(TaskError::TooMany(_)) => answer(connection, format!("{guest}: everybody is busy, ask again later")),
        Err(error @ TaskError::TooLarge(_)) => Err(error.into()),
    }
}

/// Answers who asked.
pub fn ended(id: TaskId, outcome: Result<Vec<u8>, TaskFailure>) -> Result<(), Refusal> {
    let Some((connection, guest)) = kv::get::<(ConnectionId, String)>(&key(id))? else { return Ok(()) };
    kv::delete(&key(id))?;
    match outcome {
        Ok(result) => answer(connection, format!("{guest}: {}", String::from_utf8_lossy(&result))),
        Err(TaskFailure::Failed(message)) => answer(connection, format!("{guest} failed: {message}")),
        Err(TaskFailure::Crashed(_)) => answer(connection, format!("{guest} failed")),
        Err(TaskFailure::Cancelled) => answer(connection, format!("{guest} was cancelled")),
    }
}

/// Forgets what was asked for before the host stopped: no task outlives that.
pub fn clear() -> Result<(), Refusal> {
    loop {
        let page = kv::scan(PREFIX, None, PAGE);
        if page.is_empty() {
            return Ok(());
        }
        for entry in &page {
            kv::delete(&entry.key)?;
        }
    }
}

fn key(id: TaskId) -> String {
    format!("{PREFIX}{id}")
}
