//! A host with nothing to do does nothing.

use std::thread;
use std::time::{Duration, Instant};

use wheelhouse_tests::{Config, World, example};

/// Far above the 1 % of a core that an idle host may use, and far below one that spins or polls.
const TOLERATED: f64 = 0.05;

#[test]
fn an_idle_host_uses_next_to_no_cpu_time() {
    let config = Config::new()
        .guest(example("rules", "game"))
        .guest(example("sheep", "thinker"))
        .guest(example("wolf", "thinker"));
    let host = World::new(&config).serve();
    // Nobody is near the NPCs, so none thinks; the start is over when the rules have answered once.
    assert_eq!(host.connect().ask("ping x"), "pong x");
    host.wait_until("the client is gone", |status| status["connections"]["open"] == 0);
    let (began, used) = (Instant::now(), host.cpu_time());
    // What is measured is this time itself.
    thread::sleep(Duration::from_secs(3));
    let (took, used) = (began.elapsed(), host.cpu_time() - used);
    let part = used.as_secs_f64() / took.as_secs_f64();
    println!("an idle host used {used:?} of CPU time in {took:.1?}: {:.2} % of a core", part * 100.0);
    assert!(part < TOLERATED, "an idle host used {used:?} of CPU time in {took:?}");
    host.stop();
}
