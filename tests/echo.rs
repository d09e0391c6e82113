//! A well-behaved client that sends `ping` all the time and measures how long `pong` takes: what others do to the host
//! must not show there.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::Client;
use crate::client::PAUSE;

/// What is promised while a guest misbehaves: the deadline of its call and two ticks.
const PROMISED: Duration = Duration::from_millis(50 + 2 * 8);

/// How much longer the slowest answer may take before a test fails: tests share their machine with others.
const TOLERANCE: u32 = 10;

/// How many pings there are at least, so that their median says something.
const FEWEST: usize = 25;

/// The client, at work in a thread of its own.
pub struct Echo {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

impl Echo {
    /// Begins; the first answer is there when this returns.
    pub fn start(gate: SocketAddr) -> Self {
        let mut client = Client::connect(gate);
        assert_eq!(client.ask("ping first"), "pong first");
        let stop = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut times = Vec::new();
            while times.len() < FEWEST || !of_thread.load(Ordering::Relaxed) {
                let text = times.len().to_string();
                let sent = Instant::now();
                assert_eq!(client.ask(format!("ping {text}")), format!("pong {text}"));
                times.push(sent.elapsed());
                // Its pace; nothing is waited for.
                thread::sleep(PAUSE);
            }
            times
        });
        Self { stop, thread }
    }

    /// Ends, prints the times, and holds them against what is promised. `during` says what happened meanwhile.
    pub fn finish(self, during: &str) {
        self.stop.store(true, Ordering::Relaxed);
        let mut times = self.thread.join().expect("the well-behaved client was answered all the time");
        times.sort_unstable();
        let count = times.len();
        let (worst, median) = (times[count - 1], times[count / 2]);
        println!("echo during {during}: worst {worst:.1?}, median {median:.1?} of {count}; promised {PROMISED:?}");
        assert!(
            worst <= PROMISED * TOLERANCE,
            "during {during} the slowest echo took {worst:.1?}, which is far from the promised {PROMISED:?}, even on a \
             busy machine"
        );
        assert!(median <= PROMISED, "during {during} half of the echoes took over {median:.1?}; promised {PROMISED:?}");
    }
}
