//! The interface `services`: noted in the letter book and on the stage, carried out when the handler has returned.

use bytes::Bytes;

use super::ended::{Ended, told};
use crate::guest::contract::sim::services::{Host, ServiceError};
use crate::guest::letter_book::Letter;
use crate::guest::stage::{GuestId, Stage};
use crate::guest::state::InstanceState;

impl Host for InstanceState {
    fn launch(&mut self, guest: String, arguments: Vec<u8>) -> wasmtime::Result<Result<u64, ServiceError>> {
        let (from, stage) = self.for_letters()?;
        told(launch(stage, from, guest, arguments))
    }

    fn kill(&mut self, service: u64) -> wasmtime::Result<bool> {
        let (from, stage) = self.for_letters()?;
        let is_ended = stage.letters.kill(service)?;
        if is_ended {
            stage.note_letter(from, Letter::Kill(service))?;
        }
        Ok(is_ended)
    }

    fn send(&mut self, to: u64, payload: Vec<u8>) -> wasmtime::Result<Result<(), ServiceError>> {
        let (from, stage) = self.for_letters()?;
        told(send(stage, from, to, payload))
    }

    fn register(&mut self, name: String, service: u64) -> wasmtime::Result<Result<(), ServiceError>> {
        let (from, stage) = self.for_letters()?;
        told(register(stage, from, name, service))
    }

    fn query(&mut self, name: String) -> wasmtime::Result<Option<u64>> {
        let (_, stage) = self.for_letters()?;
        stage.letters.query(&name)
    }

    fn unregister(&mut self, name: String) -> wasmtime::Result<bool> {
        let (from, stage) = self.for_letters()?;
        let was_given = stage.letters.unregister(&name)?;
        if was_given {
            stage.note_letter(from, Letter::Unregister(name))?;
        }
        Ok(was_given)
    }
}

impl InstanceState {
    /// The guest whose handler runs, and the stage, for what it asks of services.
    pub(super) fn for_letters(&mut self) -> wasmtime::Result<(GuestId, &mut Stage)> {
        let guest = self.identity.id;
        let stage = self.stage()?;
        stage.note_look_at_services();
        Ok((guest, stage))
    }
}

fn launch(stage: &mut Stage, from: GuestId, guest: String, arguments: Vec<u8>) -> Result<u64, Ended<ServiceError>> {
    check_payload(stage, arguments.len())?;
    let handle = stage.letters.launch(&guest)??;
    stage.note_letter(from, Letter::Launch { handle, guest, arguments: Bytes::from(arguments) })?;
    Ok(handle)
}

fn send(stage: &mut Stage, from: GuestId, to: u64, payload: Vec<u8>) -> Result<(), Ended<ServiceError>> {
    check_payload(stage, payload.len())?;
    stage.letters.check_receiver(to)??;
    Ok(stage.note_letter(from, Letter::Send { to, payload: Bytes::from(payload) })?)
}

fn register(stage: &mut Stage, from: GuestId, name: String, service: u64) -> Result<(), Ended<ServiceError>> {
    if stage.letters.register(&name, service)?? {
        stage.note_letter(from, Letter::Register { name, service })?;
    }
    Ok(())
}

/// Whether so much may be handed over in one piece.
pub(super) fn check_payload(stage: &Stage, bytes: usize) -> Result<(), ServiceError> {
    let limit = stage.limits.max_payload_bytes;
    if bytes > limit { Err(ServiceError::TooLarge(limit as u32)) } else { Ok(()) }
}
