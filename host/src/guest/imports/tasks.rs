//! The interface `tasks`: noted on the stage, started when the handler has returned.

use crate::guest::contract::sim::tasks::{Host, TaskError};
use crate::guest::state::InstanceState;

impl Host for InstanceState {
    fn start(&mut self, guest: String, arguments: Vec<u8>) -> wasmtime::Result<Result<u64, TaskError>> {
        let owner = self.identity.id;
        let stage = self.stage()?;
        if arguments.len() > stage.limits.max_payload_bytes {
            return Ok(Err(TaskError::TooLarge(stage.limits.max_payload_bytes as u32)));
        }
        let Some(guest) = stage.task_guests.get(&guest).copied() else {
            return Ok(Err(TaskError::NoSuchGuest));
        };
        let limit = stage.limits.max_tasks as u32;
        Ok(stage.note_task(owner, guest, arguments).ok_or(TaskError::TooMany(limit)))
    }

    fn cancel(&mut self, id: u64) -> wasmtime::Result<bool> {
        let owner = self.identity.id;
        Ok(self.stage()?.note_cancelled_task(owner, id))
    }
}
