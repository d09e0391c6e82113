//! The interface `requests`: a request leaves like any letter; its answer comes to `on-reply`.

use bytes::Bytes;

use super::ended::{Ended, told};
use super::services::check_payload;
use crate::guest::contract::sim::requests::Host;
use crate::guest::contract::sim::services::{Reference, ServiceError};
use crate::guest::letter_book::Letter;
use crate::guest::service_limits::invocation;
use crate::guest::stage::{GuestId, Stage};
use crate::guest::state::InstanceState;

impl Host for InstanceState {
    fn request(
        &mut self,
        to: u64,
        payload: Vec<u8>,
        limit_ms: Option<u32>,
    ) -> wasmtime::Result<Result<u64, ServiceError>> {
        let (from, stage) = self.for_letters()?;
        told(request(stage, from, to, None, Bytes::from(payload), limit_ms))
    }

    fn invoke(
        &mut self,
        to: Reference,
        method: String,
        arguments: Vec<u8>,
        limit_ms: Option<u32>,
    ) -> wasmtime::Result<Result<u64, ServiceError>> {
        let payload = match invocation(&method, &arguments) {
            Ok(payload) => payload,
            Err(error) => return Ok(Err(error)),
        };
        let (from, stage) = self.for_letters()?;
        told(request(stage, from, to.service, Some(to.object), payload, limit_ms))
    }
}

fn request(
    stage: &mut Stage,
    from: GuestId,
    to: u64,
    object: Option<u64>,
    payload: Bytes,
    limit_ms: Option<u32>,
) -> Result<u64, Ended<ServiceError>> {
    check_payload(stage, payload.len())?;
    stage.letters.check_receiver(to)??;
    let session = stage.letters.begin_request(from)??;
    stage.note_letter(from, Letter::Request { to, session, object, payload, limit_ms })?;
    Ok(session)
}
