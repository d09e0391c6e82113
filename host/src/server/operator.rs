//! What operators ask of the running host, carried to where it is known: the control port calls it, the loop and the
//! store answer. It waits for them and decides nothing.

use std::path::PathBuf;

use serde_json::Value;

use super::board::StatusReader;
use super::simulation::Item;
use crate::admin::{ControlError, HostControl};
use crate::sim::LoopHandle;
use crate::store::{Event, EventQuery};

/// Answers the control port.
pub(super) struct Control {
    pub(super) status: StatusReader,
    pub(super) handle: LoopHandle<Item>,
}

impl HostControl for Control {
    async fn status(&self) -> Result<Value, ControlError> {
        serde_json::to_value(self.status.read())
            .map_err(|error| ControlError::Unavailable { reason: error.to_string() })
    }

    async fn cancel_task(&self, task: u64) -> Result<(), ControlError> {
        match self.handle.post_with_reply(|reply| Item::CancelTask { task, reply }).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(ControlError::NoSuchTask { task }),
            Err(error) => Err(ControlError::Unavailable { reason: error.to_string() }),
        }
    }

    async fn events(&self, _query: EventQuery) -> Result<Vec<Event>, ControlError> {
        Err(no_store())
    }

    async fn event(&self, _sequence: u64) -> Result<Event, ControlError> {
        Err(no_store())
    }

    async fn cancel_event(&self, _sequence: u64) -> Result<(), ControlError> {
        Err(no_store())
    }

    async fn retry_event(&self, _sequence: u64) -> Result<(), ControlError> {
        Err(no_store())
    }

    async fn drop_event(&self, _sequence: u64) -> Result<(), ControlError> {
        Err(no_store())
    }

    async fn save(&self) -> Result<(), ControlError> {
        Err(no_store())
    }

    async fn backup(&self, _file: PathBuf) -> Result<(), ControlError> {
        Err(no_store())
    }
}

fn no_store() -> ControlError {
    ControlError::Unavailable { reason: "it keeps its world in a file without a database".to_owned() }
}
