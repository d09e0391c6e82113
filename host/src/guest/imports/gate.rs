//! The interface `gate`: packets, closings and bindings are noted on the stage and leave when the handler has returned.

use std::sync::Arc;

use super::ended::{Ended, told};
use crate::guest::contract::sim::gate::{GateError, Host};
use crate::guest::letter_book::Letter;
use crate::guest::stage::{GuestId, Stage};
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

    fn bind(&mut self, id: u64, to: u64) -> wasmtime::Result<Result<(), GateError>> {
        let (from, stage) = self.for_letters()?;
        told(bind(stage, from, id, to))
    }
}

fn bind(stage: &mut Stage, from: GuestId, connection: u64, to: u64) -> Result<(), Ended<GateError>> {
    if !stage.is_connected(connection) {
        return Err(GateError::Closed.into());
    }
    if !stage.letters.takes_connections(to) {
        return Err(GateError::NoSuchService.into());
    }
    Ok(stage.note_letter(from, Letter::Bind { connection, to })?)
}

fn note(stage: &mut Stage, to: Vec<u64>, packet: Vec<u8>) -> Result<(), GateError> {
    let limit = stage.limits.max_packet_bytes;
    if packet.len() > limit {
        return Err(GateError::TooLarge(limit as u32));
    }
    stage.note_packet(to, Arc::from(packet)).map_err(GateError::TooMuch)
}
