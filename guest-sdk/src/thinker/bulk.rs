//! The export `think` without a copy of its lists.
//!
//! `wit-bindgen` copies lists of records that hold flags or enums element by element. The canonical layout of
//! sightings and intents is that of the Rust structs, which the assertions below hold fast, so that both lists can be
//! used where they lie. Thinking is the hottest call of a host: copying would cost it a third of its time.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::mem::{offset_of, size_of};
use std::time::Duration;

use super::{Batch, Mind};
use crate::bindings::thinker as bindings;
use crate::instance::{self, Hosted};
use crate::{Action, Intent, Npc, Occasion, Sighting, Traits};

/// What the world `thinker` exports, over the type that a macro has made a guest.
#[doc(hidden)]
pub struct Exported<H>(PhantomData<H>);

impl<H: Hosted<Instance: Mind>> bindings::Guest for Exported<H> {
    fn init(config: String, occasion: Occasion) -> Result<(), String> {
        instance::start::<H>(|| Mind::init(&config, occasion))
    }

    fn think(now: u64, npcs: Vec<Npc>, seen: Vec<Sighting>) -> Vec<Intent> {
        let mut intents = Vec::with_capacity(npcs.len());
        think_batch::<H>(now, Batch { npcs: &npcs, seen: &seen }, &mut intents);
        intents
    }
}

impl<H: Hosted<Instance: Mind>> bindings::exports::wheelhouse::sim::lifecycle::Guest for Exported<H> {
    fn save() -> Vec<u8> {
        instance::save::<H>(Mind::save)
    }

    fn restore(state: Vec<u8>) -> Result<(), String> {
        instance::with_instance::<H, _>(|mind| mind.restore(&state))
    }
}

/// Before the start nobody thinks, and `think` has no error to say so with.
fn think_batch<H: Hosted<Instance: Mind>>(now_ns: u64, batch: Batch<'_>, intents: &mut Vec<Intent>) {
    H::with_slot(|slot| {
        if let Some(mind) = slot {
            mind.think(Duration::from_nanos(now_ns), batch, intents);
        }
    });
}

/// Where the generated export macro looks for what it exports: all as generated, but `think` as below.
#[doc(hidden)]
pub mod exports {
    pub use super::think_in_place;
    pub use crate::__export_thinker_in_place as __export_world_thinker_cabi;
    pub use crate::bindings::thinker::{__post_return_init, _export_init_cabi, exports};
}

/// Stands in for the macro of the same shape that `wit-bindgen` generates. There is no `cabi_post_think`, since the
/// list that was returned is kept for the next call.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_thinker_in_place {
    ($guest:ident with_types_in $($module:tt)*) => {
        const _: () = {
            #[unsafe(export_name = "init")]
            unsafe extern "C" fn export_init(config: *mut u8, config_length: usize, occasion: i32) -> *mut u8 {
                unsafe { $($module)*::_export_init_cabi::<$guest>(config, config_length, occasion) }
            }

            #[unsafe(export_name = "cabi_post_init")]
            unsafe extern "C" fn post_return_init(result: *mut u8) {
                unsafe { $($module)*::__post_return_init::<$guest>(result) }
            }

            #[unsafe(export_name = "think")]
            unsafe extern "C" fn export_think(
                now_ns: i64,
                npcs: *mut u8,
                npc_count: usize,
                seen: *mut u8,
                seen_count: usize,
            ) -> *mut u8 {
                unsafe { $($module)*::think_in_place(<$guest>::hosted(), now_ns, npcs, npc_count, seen, seen_count) }
            }
        };
    };
}

impl<H> Exported<H> {
    /// Names the hosted type to [`think_in_place`].
    #[doc(hidden)]
    pub fn hosted() -> PhantomData<H> {
        PhantomData
    }
}

/// The list that `think` returns, as the canonical ABI wants it: a pointer and a length, read before the next call.
#[repr(C)]
struct ReturnedList {
    first: *const Intent,
    length: usize,
}

static mut RETURNED: ReturnedList = ReturnedList { first: std::ptr::null(), length: 0 };

/// `think` as the canonical ABI calls it.
///
/// # Safety
///
/// The pointers are what the host got from `cabi_realloc` and filled with that many records; both lists become this
/// function's own. No other thread calls it.
#[doc(hidden)]
pub unsafe fn think_in_place<H: Hosted<Instance: Mind>>(
    _hosted: PhantomData<H>,
    now_ns: i64,
    npcs: *mut u8,
    npc_count: usize,
    seen: *mut u8,
    seen_count: usize,
) -> *mut u8 {
    std::thread_local! {
        static INTENTS: RefCell<Vec<Intent>> = const { RefCell::new(Vec::new()) };
    }
    #[cfg(target_arch = "wasm32")]
    wit_bindgen::rt::run_ctors_once();
    // SAFETY: the layouts are equal (see the assertions), every bit pattern is a valid `Npc` and `Sighting`, and
    // `cabi_realloc` allocated with the layout that a `Vec` of this capacity frees.
    let (npcs, seen) = unsafe {
        (
            Vec::from_raw_parts(npcs.cast::<Npc>(), npc_count, npc_count),
            Vec::from_raw_parts(seen.cast::<Sighting>(), seen_count, seen_count),
        )
    };
    INTENTS.with_borrow_mut(|intents| {
        intents.clear();
        think_batch::<H>(now_ns as u64, Batch { npcs: &npcs, seen: &seen }, intents);
        let returned = &raw mut RETURNED;
        // SAFETY: a guest has one thread, and the host reads this before it calls again.
        unsafe {
            *returned = ReturnedList { first: intents.as_ptr(), length: intents.len() };
        }
        returned.cast()
    })
}

// The canonical layout of the records, as the contract's types define it.
const _: () = {
    assert!(size_of::<Npc>() == 32);
    assert!(offset_of!(Npc, id) == 0 && offset_of!(Npc, kind) == 8 && offset_of!(Npc, map) == 12);
    assert!(offset_of!(Npc, x) == 16 && offset_of!(Npc, y) == 20);
    assert!(offset_of!(Npc, seen_first) == 24 && offset_of!(Npc, seen_count) == 28);

    assert!(size_of::<Sighting>() == 24 && size_of::<Traits>() == 1);
    assert!(offset_of!(Sighting, id) == 0 && offset_of!(Sighting, kind) == 8);
    assert!(offset_of!(Sighting, x) == 12 && offset_of!(Sighting, y) == 16 && offset_of!(Sighting, traits) == 20);

    assert!(size_of::<Intent>() == 40 && size_of::<Action>() == 1);
    assert!(offset_of!(Intent, npc) == 0 && offset_of!(Intent, action) == 8);
    assert!(offset_of!(Intent, x) == 12 && offset_of!(Intent, y) == 16);
    assert!(offset_of!(Intent, target) == 24 && offset_of!(Intent, argument) == 32);
    assert!(Action::Stay as u8 == 0 && Action::Move as u8 == 1 && Action::Act as u8 == 2);
};
