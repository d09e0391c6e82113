//! The interface `shared`, for a service.

use crate::guest::contract::sim::shared::{Host, Part};
use crate::service::shared_data::SharedError;
use crate::service::state::ServiceState;

impl Host for ServiceState {
    fn put(&mut self, name: String, blob: Vec<u8>) -> wasmtime::Result<Result<(), SharedError>> {
        Ok(self.services.put(self.handle(), &name, &blob))
    }

    fn append(&mut self, name: String, more: Vec<u8>) -> wasmtime::Result<Result<(), SharedError>> {
        Ok(self.services.data().append(self.handle(), &name, &more))
    }

    fn finish(&mut self, name: String) -> wasmtime::Result<Result<bool, SharedError>> {
        Ok(Ok(self.services.finish(self.handle(), &name)))
    }

    fn remove(&mut self, name: String) -> wasmtime::Result<bool> {
        Ok(self.services.data().remove(&name))
    }

    fn version(&mut self, name: String) -> wasmtime::Result<Option<u64>> {
        Ok(self.services.data().get(&name).map(|blob| blob.version))
    }

    fn read(&mut self, name: String, offset: u64, length: u32) -> wasmtime::Result<Option<Part>> {
        let limit = self.services.max_payload_bytes();
        Ok(self.services.data().get(&name).map(|blob| {
            let total = blob.bytes.len();
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(total);
            let until = from.saturating_add((length as usize).min(limit)).min(total);
            Part { version: blob.version, total: total as u64, bytes: blob.bytes[from..until].to_vec() }
        }))
    }

    fn watch(&mut self, name: String) -> wasmtime::Result<bool> {
        Ok(self.services.data().watch(self.handle(), &name))
    }

    fn unwatch(&mut self, name: String) -> wasmtime::Result<bool> {
        Ok(self.services.data().unwatch(self.handle(), &name))
    }
}
