//! How the lists of a think travel into a guest's memory: in one copy. The layout that the component model gives to the
//! records `npc` and `sighting` is that of the world's own structs, so a whole list of them is stored as it lies;
//! field by field it would cost five times as much as the thinking itself.
//!
//! The contract's types are still checked: each record is described by a struct that is derived for the component
//! model, and the two layouts are held together by assertions.

use std::mem::{MaybeUninit, align_of, offset_of, size_of};

use wasmtime::component::__internal::{CanonicalAbiInfo, InstanceType, InterfaceType, LowerContext};
use wasmtime::component::{ComponentType, Lower};

use super::contract::sim::thinking::{Npc, Sighting, Traits};
use crate::world::{self, NpcView, SEEN_PLAYER};

const _: () =
    assert!(cfg!(target_endian = "little"), "guest memory is little-endian, and lists are copied as they lie");

/// A struct of the world that stands for a record of the contract.
pub trait Bulk: Copy + Send + Sync {
    /// The record.
    type Record: Lower;

    /// The same, for the rare ways that are not a list.
    fn record(&self) -> Self::Record;
}

impl Bulk for NpcView {
    type Record = Npc;

    fn record(&self) -> Npc {
        let NpcView { id, kind, map, x, y, seen_first, seen_count } = *self;
        Npc { id, kind, map, x, y, seen_first, seen_count }
    }
}

impl Bulk for world::Sighting {
    type Record = Sighting;

    fn record(&self) -> Sighting {
        let world::Sighting { id, kind, x, y, flags } = *self;
        let traits = if flags & SEEN_PLAYER == 0 { Traits::empty() } else { Traits::PLAYER };
        Sighting { id, kind, x, y, traits }
    }
}

// `record npc { u64, u32, u32, s32, s32, u32, u32 }` and `record sighting { u64, u32, s32, s32, flags of 8 bits }` in
// the canonical layout. The flags are the lowest byte of the world's, of which the others are 0.
const _: () = {
    assert!(size_of::<NpcView>() == 32 && align_of::<NpcView>() == 8);
    assert!(offset_of!(NpcView, id) == 0 && offset_of!(NpcView, kind) == 8 && offset_of!(NpcView, map) == 12);
    assert!(offset_of!(NpcView, x) == 16 && offset_of!(NpcView, y) == 20);
    assert!(offset_of!(NpcView, seen_first) == 24 && offset_of!(NpcView, seen_count) == 28);
    assert!(size_of::<world::Sighting>() == 24 && align_of::<world::Sighting>() == 8);
    assert!(offset_of!(world::Sighting, id) == 0 && offset_of!(world::Sighting, kind) == 8);
    assert!(offset_of!(world::Sighting, x) == 12 && offset_of!(world::Sighting, y) == 16);
    assert!(offset_of!(world::Sighting, flags) == 20 && SEEN_PLAYER == 1);
    assert!(<Npc as ComponentType>::ABI.size32 == 32 && <Npc as ComponentType>::ABI.align32 == 8);
    assert!(<Sighting as ComponentType>::ABI.size32 == 24 && <Sighting as ComponentType>::ABI.align32 == 8);
};

/// An element of a list that is stored in one copy.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Copied<T>(T);

/// A list of the world's structs as one that a guest takes.
pub fn copied<T>(list: &[T]) -> &[Copied<T>] {
    // SAFETY: `Copied<T>` is transparent over `T`.
    unsafe { std::slice::from_raw_parts(list.as_ptr().cast(), list.len()) }
}

// SAFETY: it has the type and the layout of the record that it stands for.
unsafe impl<T: Bulk> ComponentType for Copied<T> {
    type Lower = <T::Record as ComponentType>::Lower;
    const ABI: CanonicalAbiInfo = T::Record::ABI;

    fn typecheck(expected: &InterfaceType, types: &InstanceType<'_>) -> wasmtime::Result<()> {
        T::Record::typecheck(expected, types)
    }
}

// SAFETY: single elements go through their record; a list is stored as it lies, which the assertions above allow.
unsafe impl<T: Bulk> Lower for Copied<T> {
    fn linear_lower_to_flat<U>(
        &self,
        context: &mut LowerContext<'_, U>,
        expected: InterfaceType,
        to: &mut MaybeUninit<Self::Lower>,
    ) -> wasmtime::Result<()> {
        self.0.record().linear_lower_to_flat(context, expected, to)
    }

    fn linear_lower_to_memory<U>(
        &self,
        context: &mut LowerContext<'_, U>,
        expected: InterfaceType,
        offset: usize,
    ) -> wasmtime::Result<()> {
        self.0.record().linear_lower_to_memory(context, expected, offset)
    }

    fn linear_store_list_to_memory<U>(
        context: &mut LowerContext<'_, U>,
        _expected: InterfaceType,
        offset: usize,
        items: &[Self],
    ) -> wasmtime::Result<()> {
        // SAFETY: the structs are plain numbers without padding, but for the three bytes behind a sighting's flags,
        // which are part of its `u32`.
        let bytes = unsafe { std::slice::from_raw_parts(items.as_ptr().cast::<u8>(), size_of_val(items)) };
        context.as_slice_mut()[offset..offset + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}
