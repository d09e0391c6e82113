//! The interface `groups`, for a service.

use bytes::Bytes;

use crate::guest::contract::sim::groups;
use crate::service::message::ServiceError;
use crate::service::state::ServiceState;

impl groups::Host for ServiceState {
    fn publish(&mut self, channel: String, payload: Vec<u8>) -> wasmtime::Result<Result<u32, ServiceError>> {
        Ok(self.services.publish(self.handle(), &channel, &Bytes::from(payload)))
    }

    fn subscribe(&mut self, channel: String) -> wasmtime::Result<Result<u64, ServiceError>> {
        let id = self.services.new_number();
        Ok(self.services.subscribe(id, self.handle(), &channel).map(|()| id))
    }

    fn unsubscribe(&mut self, id: u64) -> wasmtime::Result<bool> {
        Ok(self.services.unsubscribe(id, self.handle()))
    }
}
