//! Firing a timer allocates nothing, whether it repeats or not. Counted by an allocator, which is why this test has a
//! program of its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use wheelhouse::sim::TimerWheel;

thread_local!(static ALLOCATIONS: Cell<u64> = const { Cell::new(0) });

/// The system's allocator, counting for each thread.
struct Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Fires what is due in each tick up to `until`, and registers a timer for each one that ended.
fn run(wheel: &mut TimerWheel<u64>, now: &mut Duration, until: Duration) -> u64 {
    let name = wheel.name("once");
    let mut fired = 0;
    while *now < until {
        *now += Duration::from_millis(8);
        while let Some((firing, payload)) = wheel.pop_due(*now) {
            fired += 1;
            if firing.repeats {
                wheel.put_back(firing.id, payload);
            } else {
                let delay = Duration::from_millis(1 + firing.id.as_u64() * 7919 % 5000);
                wheel.register(*now, name, delay, None, false, payload).expect("one timer has just ended");
            }
        }
    }
    fired
}

#[test]
fn firing_does_not_allocate() {
    let mut wheel = TimerWheel::new(Duration::from_millis(8), 512, 2000);
    for index in 0..2000u64 {
        let interval = Duration::from_millis(500 + index);
        wheel
            .register_named(Duration::ZERO, "npc_think", interval, None, index % 2 == 0, index)
            .expect("there is room");
    }
    let mut now = Duration::ZERO;
    // Until every list has been as long as it gets.
    run(&mut wheel, &mut now, Duration::from_secs(120));
    let before = ALLOCATIONS.with(Cell::get);
    let fired = run(&mut wheel, &mut now, Duration::from_secs(240));
    let allocated = ALLOCATIONS.with(Cell::get) - before;
    assert!(fired > 100_000, "{fired}");
    // A list may grow once more, but that has nothing to do with how many timers fire.
    assert!(allocated <= 3, "{allocated} allocations for {fired} firings");
}
