//! The interface `shared`: blobs are read as they are now and published like letters. Blobs in pieces are put together in
//! the letter book.

use std::sync::Arc;

use super::ended::{Ended, told};
use crate::guest::contract::sim::shared::{Host, Part, SharedError};
use crate::guest::letter_book::Letter;
use crate::guest::service_limits::MAX_NAME_BYTES;
use crate::guest::shared_reads::{ReadsShared, SharedBlob, SharedPart};
use crate::guest::stage::{GuestId, Stage};
use crate::guest::state::InstanceState;

impl Host for InstanceState {
    fn put(&mut self, name: String, blob: Vec<u8>) -> wasmtime::Result<Result<(), SharedError>> {
        let (from, stage) = self.for_letters()?;
        told(put(stage, from, name, blob))
    }

    fn append(&mut self, name: String, more: Vec<u8>) -> wasmtime::Result<Result<(), SharedError>> {
        let (from, stage) = self.for_letters()?;
        told(append(stage, from, &name, &more))
    }

    fn finish(&mut self, name: String) -> wasmtime::Result<Result<bool, SharedError>> {
        let (from, stage) = self.for_letters()?;
        let Some(blob) = stage.letters.finish(from, &name) else { return Ok(Ok(false)) };
        stage.note_finished(from, name, blob)?;
        Ok(Ok(true))
    }

    fn remove(&mut self, name: String) -> wasmtime::Result<bool> {
        let (from, stage) = self.for_letters()?;
        let was_there = stage.letters.remove(&name)?;
        if was_there {
            stage.note_letter(from, Letter::RemoveShared(name))?;
        }
        Ok(was_there)
    }

    fn version(&mut self, name: String) -> wasmtime::Result<Option<u64>> {
        Ok(self.blob(&name)?.map(|(version, _)| version))
    }

    /// Guests are linked to [`link_read`](crate::guest::shared_reads::link_read) instead, which makes no copy.
    fn read(&mut self, name: String, offset: u64, length: u32) -> wasmtime::Result<Option<Part>> {
        let limit = self.max_part_bytes();
        Ok(self.blob(&name)?.map(|blob| SharedPart::of(blob, offset, length, limit).into()))
    }

    fn watch(&mut self, name: String) -> wasmtime::Result<bool> {
        let (from, stage) = self.for_letters()?;
        if name.len() > MAX_NAME_BYTES {
            return Ok(false);
        }
        let is_new = stage.letters.watch(from, &name);
        if is_new == Some(true) {
            stage.note_letter(from, Letter::Watch(name))?;
        }
        Ok(is_new.is_some())
    }

    fn unwatch(&mut self, name: String) -> wasmtime::Result<bool> {
        let (from, stage) = self.for_letters()?;
        let did_watch = stage.letters.unwatch(from, &name);
        if did_watch {
            stage.note_letter(from, Letter::Unwatch(name))?;
        }
        Ok(did_watch)
    }
}

impl ReadsShared for InstanceState {
    fn blob(&mut self, name: &str) -> wasmtime::Result<Option<SharedBlob>> {
        let (_, stage) = self.for_letters()?;
        Ok(stage.letters.view()?.blob(name))
    }

    fn max_part_bytes(&self) -> usize {
        self.identity.limits.max_payload_bytes()
    }
}

fn put(stage: &mut Stage, from: GuestId, name: String, blob: Vec<u8>) -> Result<(), Ended<SharedError>> {
    check_piece(stage, blob.len())?;
    stage.letters.put(&name, blob.len())??;
    Ok(stage.note_letter(from, Letter::PutShared { name, blob: Arc::from(blob) })?)
}

fn append(stage: &mut Stage, from: GuestId, name: &str, more: &[u8]) -> Result<(), Ended<SharedError>> {
    check_piece(stage, more.len())?;
    stage.count_sent(more.len())?;
    Ok(stage.letters.append(from, name, more)??)
}

/// Whether so much may be handed over in one piece.
fn check_piece(stage: &Stage, bytes: usize) -> Result<(), SharedError> {
    let limit = stage.limits.max_payload_bytes;
    if bytes > limit { Err(SharedError::TooLarge(limit as u64)) } else { Ok(()) }
}
