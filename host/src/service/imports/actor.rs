//! The interface `actor`: what a service does with the messages that it has in hand, and with its own mailbox.

use std::time::Duration;

use bytes::Bytes;

use crate::guest::contract::sim::actor;
use crate::guest::contract::sim::services::Message as Forwarded;
use crate::service::handle::Handle;
use crate::service::message::{Message, ServiceError};
use crate::service::state::ServiceState;
use crate::service::timeouts::{MAX_TIMEOUTS, Whose};

impl actor::Host for ServiceState {
    fn self_(&mut self) -> wasmtime::Result<u64> {
        Ok(self.handle().0)
    }

    fn exit(&mut self) -> wasmtime::Result<()> {
        self.exits = true;
        Ok(())
    }

    fn defer(&mut self, session: u64) -> wasmtime::Result<bool> {
        Ok(self.in_hand.defer(session))
    }

    fn reply(&mut self, session: u64, answer: Result<Vec<u8>, String>) -> wasmtime::Result<bool> {
        let Some(request) = self.in_hand.take(session) else { return Ok(false) };
        self.answer(request, answer);
        Ok(true)
    }

    fn forward(&mut self, to: u64, message: Forwarded) -> wasmtime::Result<Result<(), ServiceError>> {
        let Forwarded { source, session, subject, payload } = message;
        let source = Handle(source);
        if !self.in_hand.has(source, subject, session) {
            return Ok(Err(ServiceError::NotYours));
        }
        let receiver = match self.services.find(Handle(to), payload.len()) {
            Ok(receiver) => receiver,
            Err(error) => return Ok(Err(error)),
        };
        let place = self.in_hand.pass_on_place(source, subject);
        Ok(self.in_hand.hand_on(session, |request| {
            let message = Message { request, place, ..Message::new(source, subject, Bytes::from(payload)) };
            receiver.push(message).map_err(|refused| (refused.why(&receiver), refused.into_message().request))
        }))
    }

    fn timeout(&mut self, delay_ms: u32, payload: Vec<u8>) -> wasmtime::Result<Result<u64, ServiceError>> {
        if let Err(error) = self.services.check_payload(payload.len()) {
            return Ok(Err(error));
        }
        let id = self.services.new_number();
        let delay = Duration::from_millis(delay_ms.into());
        let max_bytes = self.services.options().max_mailbox_bytes();
        let whose = Whose { member: &self.member, runtime: self.services.runtime() };
        let is_set = self.timeouts.set(id, delay, Bytes::from(payload), max_bytes, whose);
        Ok(if is_set { Ok(id) } else { Err(ServiceError::TooMany(MAX_TIMEOUTS as u32)) })
    }

    fn cancel_timeout(&mut self, id: u64) -> wasmtime::Result<bool> {
        Ok(self.timeouts.cancel(id))
    }
}
