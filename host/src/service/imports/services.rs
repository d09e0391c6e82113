//! The interface `services`, for a service: everything takes effect at once.

use bytes::Bytes;

use crate::guest::contract::sim::services;
use crate::service::handle::Handle;
use crate::service::message::{Message, ServiceError, Subject};
use crate::service::state::ServiceState;

impl services::Host for ServiceState {
    fn launch(&mut self, guest: String, arguments: Vec<u8>) -> wasmtime::Result<Result<u64, ServiceError>> {
        Ok(self.services.launch(&guest, Bytes::from(arguments)).map(|handle| handle.0))
    }

    fn kill(&mut self, service: u64) -> wasmtime::Result<bool> {
        Ok(self.services.kill(Handle(service)))
    }

    fn send(&mut self, to: u64, payload: Vec<u8>) -> wasmtime::Result<Result<(), ServiceError>> {
        let message = Message::new(self.handle(), Subject::Plain, Bytes::from(payload));
        Ok(self.send_message(Handle(to), message))
    }

    fn register(&mut self, name: String, service: u64) -> wasmtime::Result<Result<(), ServiceError>> {
        Ok(self.services.register(&name, Handle(service)))
    }

    fn query(&mut self, name: String) -> wasmtime::Result<Option<u64>> {
        Ok(self.services.query(&name).map(|handle| handle.0))
    }

    fn unregister(&mut self, name: String) -> wasmtime::Result<bool> {
        Ok(self.services.unregister(&name))
    }
}
