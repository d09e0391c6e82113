//! What a guest of any kind can do to harm its host, by name. The hostile guests add what only their kind can do.

use std::hint::black_box;

use wheelhouse_guest::prelude::*;

/// More than any limit on what a guest may hand to the host.
pub const TOO_MUCH: usize = 16 << 20;

/// Does the named harm. False when there is no such name here; otherwise it returns only if the host let it.
pub fn commit(name: &str) -> bool {
    match name {
        "loop" => endless_loop(),
        "bomb" => bomb(),
        "recurse" => _ = black_box(recurse(black_box(u64::MAX))),
        "recurse-memory" => _ = black_box(recurse_in_memory(black_box(u64::MAX))),
        "unreachable" => unreachable_code(),
        "panic" => panic!("this guest panics as it was told"),
        "out-of-bounds" => out_of_bounds(),
        "logs" => (0..1_000_000).for_each(|number| info!("line {number} of a million")),
        "long-log" => info!("{}", too_long_text()),
        "random" => _ = black_box(random::bytes(u32::MAX)),
        "metrics" => (0..100_000).for_each(|number| metrics::count(&format!("metric {number}"), 1)),
        "long-metric" => metrics::gauge(&too_long_text(), f64::NAN),
        _ => return false,
    }
    true
}

/// A text that is too long for everything.
pub fn too_long_text() -> String {
    "x".repeat(TOO_MUCH)
}

/// Bytes that are too many for everything.
pub fn too_many_bytes() -> Vec<u8> {
    vec![0x78; TOO_MUCH]
}

fn endless_loop() -> ! {
    let mut rounds = 0_u64;
    loop {
        rounds = black_box(rounds.wrapping_add(1));
    }
}

/// Takes memory until there is none, and writes to all of it.
fn bomb() -> ! {
    let mut taken = Vec::new();
    loop {
        taken.push(black_box(vec![0xA5_u8; 1 << 20]));
    }
}

/// Recursion that no compiler makes a loop of: what it does behind the call is not associative. It needs nothing but the
/// host's stack.
#[inline(never)]
fn recurse(depth: u64) -> u64 {
    if depth == 0 { 0 } else { recurse(depth - 1).wrapping_mul(31) ^ depth }
}

/// Recursion that uses up the stack in the guest's own memory.
#[inline(never)]
fn recurse_in_memory(depth: u64) -> u64 {
    let frame = black_box([depth; 512]);
    if depth == 0 { 0 } else { recurse_in_memory(depth - 1).wrapping_mul(31) ^ frame[depth as usize % 512] }
}

fn unreachable_code() {
    #[cfg(target_arch = "wasm32")]
    core::arch::wasm32::unreachable();
    #[cfg(not(target_arch = "wasm32"))]
    unreachable!("only Wasm has the instruction");
}

/// Reads an address that no instance has memory for.
fn out_of_bounds() {
    let address = black_box(usize::MAX & !7) as *const u64;
    // SAFETY: none. In Wasm this is a trap and no undefined behaviour, and that it traps is what is tested.
    black_box(unsafe { address.read_volatile() });
}
