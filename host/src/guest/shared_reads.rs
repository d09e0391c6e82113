//! Reading shared data without a copy on the host's side: a part of a blob goes from where all readers share it straight
//! into the guest's memory. The linkers of loop guests and of services use it; who has the blobs, the store's data says.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

use wasmtime::StoreContextMut;
use wasmtime::component::__internal::{CanonicalAbiInfo, InstanceType, InterfaceType, LowerContext};
use wasmtime::component::{ComponentType, Linker, Lower};

use super::contract::sim::shared::Part;

/// The interface, as it is linked.
const INTERFACE: &str = "wheelhouse:sim/shared@0.1.0";

/// A blob as it is shared: its version and its bytes.
pub type SharedBlob = (u64, Arc<[u8]>);

/// The data of a store whose guest may read shared blobs.
pub trait ReadsShared: 'static {
    /// The blob with that name, if there is one.
    fn blob(&mut self, name: &str) -> wasmtime::Result<Option<SharedBlob>>;

    /// The most bytes of one part.
    fn max_part_bytes(&self) -> usize;
}

/// Part of a blob, in the layout of the contract's record `part`.
#[derive(ComponentType, Lower)]
#[component(record)]
pub struct SharedPart {
    version: u64,
    total: u64,
    bytes: Stretch,
}

/// Bytes of a blob that others have as well.
pub struct Stretch {
    blob: Arc<[u8]>,
    range: Range<usize>,
}

impl Stretch {
    fn as_slice(&self) -> &[u8] {
        // It was cut to the blob when it was made.
        &self.blob[self.range.clone()]
    }
}

// SAFETY: it is a list of bytes in every respect.
unsafe impl ComponentType for Stretch {
    type Lower = <[u8] as ComponentType>::Lower;
    const ABI: CanonicalAbiInfo = <[u8] as ComponentType>::ABI;

    fn typecheck(expected: &InterfaceType, types: &InstanceType<'_>) -> wasmtime::Result<()> {
        <[u8] as ComponentType>::typecheck(expected, types)
    }
}

// SAFETY: all is left to the slice, whose type this has.
unsafe impl Lower for Stretch {
    fn linear_lower_to_flat<U>(
        &self,
        context: &mut LowerContext<'_, U>,
        expected: InterfaceType,
        to: &mut MaybeUninit<Self::Lower>,
    ) -> wasmtime::Result<()> {
        self.as_slice().linear_lower_to_flat(context, expected, to)
    }

    fn linear_lower_to_memory<U>(
        &self,
        context: &mut LowerContext<'_, U>,
        expected: InterfaceType,
        offset: usize,
    ) -> wasmtime::Result<()> {
        self.as_slice().linear_lower_to_memory(context, expected, offset)
    }
}

impl SharedPart {
    /// At most `length` bytes from `offset` on, and never more than `limit`.
    pub fn of((version, blob): SharedBlob, offset: u64, length: u32, limit: usize) -> Self {
        let begin = usize::try_from(offset).unwrap_or(usize::MAX).min(blob.len());
        let end = begin.saturating_add((length as usize).min(limit)).min(blob.len());
        SharedPart { version, total: blob.len() as u64, bytes: Stretch { blob, range: begin..end } }
    }
}

impl From<SharedPart> for Part {
    fn from(part: SharedPart) -> Self {
        Part { version: part.version, total: part.total, bytes: part.bytes.as_slice().to_vec() }
    }
}

/// Links `shared.read` in place of the generated one, which hands over copies.
pub fn link_read<T: ReadsShared>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let linked = linker.instance(INTERFACE).and_then(|mut shared| {
        shared.func_wrap("read", |mut store: StoreContextMut<'_, T>, (name, offset, length): (String, u64, u32)| {
            let state = store.data_mut();
            let limit = state.max_part_bytes();
            let part = state.blob(&name)?.map(|blob| SharedPart::of(blob, offset, length, limit));
            Ok((part,))
        })
    });
    linker.allow_shadowing(false);
    linked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(offset: u64, length: u32, limit: usize) -> Vec<u8> {
        SharedPart::of((3, Arc::from(*b"0123456789")), offset, length, limit).bytes.as_slice().to_vec()
    }

    #[test]
    fn a_part_is_cut_to_the_blob_and_to_the_limit() {
        assert_eq!(part(2, 3, 100), b"234");
        assert_eq!(part(8, 5, 100), b"89");
        assert_eq!(part(0, u32::MAX, 4), b"0123");
        assert_eq!(part(10, 1, 100), b"");
        assert_eq!(part(u64::MAX, u32::MAX, usize::MAX), b"");
    }

    #[test]
    fn a_part_is_the_blob_itself_and_tells_of_all_of_it() {
        let blob: Arc<[u8]> = Arc::from(*b"map");
        let part = SharedPart::of((7, Arc::clone(&blob)), 1, 1, 10);
        assert!(Arc::ptr_eq(&part.bytes.blob, &blob));
        assert_eq!((part.version, part.total), (7, 3));
    }
}
