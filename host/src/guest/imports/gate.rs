//! The interface `gate`: packets and closings are noted on the stage and leave when the handler has returned.

use std::sync::Arc;

use crate::guest::contract::sim::gate::{GateError, Host};
use crate::guest::stage::Stage;
use crate::guest::state::InstanceState;

impl Host for InstanceState {
    fn send(&mut self, to: u64, packet: Vec<u8>) -> wasmtime::Result<Result<(), GateError>> {
        let stage = self.stage()?;
        if !stage.is_connected(to) {
            return Ok(Err(GateError::Closed));
        }
        Ok(note(stage, vec![to], packet))
    }

    fn send_all(&mut self, mut to: Vec<u64>, packet: Vec<u8>) -> wasmtime::Result<Result<u32, GateError>> {
        let stage = self.stage()?;
        to.retain(|connection| stage.is_connected(*connection));
        let reached = to.len() as u32;
        Ok(note(stage, to, packet).map(|()| reached))
    }

    fn close(&mut self, id: u64) -> wasmtime::Result<bool> {
        Ok(self.stage()?.note_close(id))
    }

    fn bind(&mut self, _id: u64, _to: u64) -> wasmtime::Result<Result<(), GateError>> {
        Ok(Err(GateError::NoSuchService))
    }
}

fn note(stage: &mut Stage, to: Vec<u64>, packet: Vec<u8>) -> Result<(), GateError> {
    let limit = stage.limits.max_packet_bytes;
    if packet.len() > limit {
        return Err(GateError::TooLarge(limit as u32));
    }
    stage.note_packet(to, Arc::from(packet)).map_err(GateError::TooMuch)
}
