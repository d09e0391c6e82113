//! The interface `shared`, for a service. What is read goes into the guest's memory from where all readers share it.

use crate::guest::contract::sim::shared::{Host, Part};
use crate::guest::shared_reads::{ReadsShared, SharedBlob, SharedPart};
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

    /// Guests are linked to [`link_read`](crate::guest::shared_reads::link_read) instead, which makes no copy.
    fn read(&mut self, name: String, offset: u64, length: u32) -> wasmtime::Result<Option<Part>> {
        let limit = self.max_part_bytes();
        Ok(self.blob(&name)?.map(|blob| SharedPart::of(blob, offset, length, limit).into()))
    }

    fn watch(&mut self, name: String) -> wasmtime::Result<bool> {
        Ok(self.services.data().watch(self.handle(), &name))
    }

    fn unwatch(&mut self, name: String) -> wasmtime::Result<bool> {
        Ok(self.services.data().unwatch(self.handle(), &name))
    }
}

impl ReadsShared for ServiceState {
    fn blob(&mut self, name: &str) -> wasmtime::Result<Option<SharedBlob>> {
        Ok(self.services.data().get(name).map(|blob| (blob.version, blob.bytes)))
    }

    fn max_part_bytes(&self) -> usize {
        self.services.max_payload_bytes()
    }
}
