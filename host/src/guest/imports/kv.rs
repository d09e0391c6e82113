//! The interface `kv`: the guest's own space of the world's key-value store, by the guest's name.

use std::sync::Arc;

use crate::guest::contract::sim::kv::{Entry, Host, KvError};
use crate::guest::stage::Durable;
use crate::guest::state::InstanceState;
use crate::world::WorldError;

/// Entries of one scan.
const MAX_SCANNED: u32 = 1024;

impl Host for InstanceState {
    fn get(&mut self, key: String) -> wasmtime::Result<Option<Vec<u8>>> {
        let space = Arc::clone(&self.identity.name);
        Ok(self.stage_to_read(Durable::Kv)?.world.kv_get(&space, &key).map(<[u8]>::to_vec))
    }

    fn set(&mut self, key: String, value: Vec<u8>) -> wasmtime::Result<Result<(), KvError>> {
        let space = Arc::clone(&self.identity.name);
        let Some(stage) = self.stage_to_write(Durable::Kv)? else {
            return Ok(Err(KvError::ReadOnly));
        };
        if value.len() > stage.limits.max_payload_bytes {
            return Ok(Err(KvError::TooLarge(stage.limits.max_payload_bytes as u32)));
        }
        match stage.world.kv_set(&space, &key, value) {
            Ok(()) => Ok(Ok(())),
            Err(error) => refuse(error).map(Err),
        }
    }

    fn delete(&mut self, key: String) -> wasmtime::Result<Result<bool, KvError>> {
        let space = Arc::clone(&self.identity.name);
        let Some(stage) = self.stage_to_write(Durable::Kv)? else {
            return Ok(Err(KvError::ReadOnly));
        };
        match stage.world.kv_delete(&space, &key) {
            Ok(was_set) => Ok(Ok(was_set)),
            Err(error) => refuse(error).map(Err),
        }
    }

    /// Ends early when the answer would be larger than one payload; the next page begins behind its last key.
    fn scan(&mut self, prefix: String, after: Option<String>, limit: u32) -> wasmtime::Result<Vec<Entry>> {
        let space = Arc::clone(&self.identity.name);
        let stage = self.stage_to_read(Durable::Kv)?;
        let mut room = stage.limits.max_payload_bytes;
        let found = stage.world.kv_scan(&space, &prefix, after.as_deref(), limit.min(MAX_SCANNED) as usize);
        let mut entries = Vec::new();
        for (key, value) in found {
            let bytes = key.len() + value.len();
            if bytes > room && !entries.is_empty() {
                break;
            }
            room = room.saturating_sub(bytes);
            entries.push(Entry { key: key.to_owned(), value: value.to_vec() });
        }
        Ok(entries)
    }
}

/// What the world refused, as the guest is told; what the contract has no word for ends the call.
fn refuse(error: WorldError) -> wasmtime::Result<KvError> {
    match error {
        WorldError::KeyTooLong { limit_bytes, .. } => Ok(KvError::TooLarge(limit_bytes as u32)),
        WorldError::KvFull { limit_bytes, .. } => Ok(KvError::Full(limit_bytes as u64)),
        other => Err(wasmtime::Error::new(other)),
    }
}
