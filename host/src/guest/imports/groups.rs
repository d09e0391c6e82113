//! The interface `groups`: what is published leaves like any letter; subscriptions are the guest's own.

use bytes::Bytes;

use super::ended::{Ended, told};
use crate::guest::contract::sim::groups::Host;
use crate::guest::contract::sim::services::ServiceError;
use crate::guest::letter_book::Letter;
use crate::guest::stage::{GuestId, Stage};
use crate::guest::state::InstanceState;

impl Host for InstanceState {
    fn publish(&mut self, channel: String, payload: Vec<u8>) -> wasmtime::Result<Result<u32, ServiceError>> {
        let (from, stage) = self.for_letters()?;
        told(publish(stage, from, channel, payload))
    }

    fn subscribe(&mut self, channel: String) -> wasmtime::Result<Result<u64, ServiceError>> {
        let (from, stage) = self.for_letters()?;
        told(subscribe(stage, from, channel))
    }

    fn unsubscribe(&mut self, id: u64) -> wasmtime::Result<bool> {
        let (from, stage) = self.for_letters()?;
        let was_subscribed = stage.letters.unsubscribe(from, id);
        if was_subscribed {
            stage.note_letter(from, Letter::Unsubscribe(id))?;
        }
        Ok(was_subscribed)
    }
}

fn publish(stage: &mut Stage, from: GuestId, channel: String, payload: Vec<u8>) -> Result<u32, Ended<ServiceError>> {
    let view = stage.letters.view()?;
    view.check_publication(&channel, payload.len())?;
    let subscribers = view.subscribers(&channel);
    stage.note_letter(from, Letter::Publish { channel, payload: Bytes::from(payload) })?;
    Ok(subscribers)
}

fn subscribe(stage: &mut Stage, from: GuestId, channel: String) -> Result<u64, Ended<ServiceError>> {
    let id = stage.letters.subscribe(from, &channel)??;
    stage.note_letter(from, Letter::Subscribe { id, channel })?;
    Ok(id)
}
