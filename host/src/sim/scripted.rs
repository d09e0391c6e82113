//! The simulation that the tests of this room run: items and timers are closures, and what happens is written down.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::clock::ManualClock;

pub type Cx<'a> = LoopContext<'a, Script>;
pub type ScriptItem = Box<dyn FnOnce(&mut Script, &mut Cx<'_>) -> anyhow::Result<()> + Send>;
pub type ScriptTimer = Box<dyn FnMut(&mut Script, Firing, &mut Cx<'_>) -> anyhow::Result<()> + Send>;

/// What happened, in order.
#[derive(Default)]
pub struct Script {
    pub log: Vec<String>,
    /// Written at the end of each turn and timer pass, if asked for.
    pub log_ends: bool,
    /// Whether items are left in the queue.
    pub holds: bool,
}

impl Script {
    pub fn note(&mut self, what: impl Into<String>) {
        self.log.push(what.into());
    }
}

impl Simulation for Script {
    type Item = ScriptItem;
    type Timer = ScriptTimer;

    fn takes_items(&self) -> bool {
        !self.holds
    }

    fn run_item(&mut self, item: ScriptItem, cx: &mut Cx<'_>) -> anyhow::Result<()> {
        item(self, cx)
    }

    fn fire_timer(&mut self, firing: Firing, timer: &mut ScriptTimer, cx: &mut Cx<'_>) -> anyhow::Result<()> {
        timer(self, firing, cx)
    }

    fn end_timer_pass(&mut self, _cx: &mut Cx<'_>) {
        if self.log_ends {
            self.note("end of pass");
        }
    }

    fn end_turn(&mut self, _cx: &mut Cx<'_>) {
        if self.log_ends {
            self.note("end of turn");
        }
    }
}

/// An item that writes its name down.
pub fn item(name: &str) -> ScriptItem {
    let name = name.to_owned();
    Box::new(move |script, _| {
        script.note(name);
        Ok(())
    })
}

/// An item that takes a while by the clock, and writes its name down.
pub fn slow_item(name: &str, clock: &Arc<ManualClock>, takes: Duration) -> ScriptItem {
    let (name, clock) = (name.to_owned(), Arc::clone(clock));
    Box::new(move |script, _| {
        clock.advance(takes);
        script.note(name);
        Ok(())
    })
}

pub fn failing_item(error: &'static str) -> ScriptItem {
    Box::new(move |_, _| Err(anyhow::anyhow!(error)))
}

/// A timer that writes its name down.
pub fn timer(name: &str) -> ScriptTimer {
    let name = name.to_owned();
    Box::new(move |script, _, _| {
        script.note(name.as_str());
        Ok(())
    })
}

/// A loop, its clock and its handle, to be driven turn by turn.
pub struct Stage {
    pub core: LoopCore<Script>,
    pub clock: Arc<ManualClock>,
    pub handle: LoopHandle<ScriptItem>,
}

impl Stage {
    pub fn new(options: SimOptions) -> Self {
        let clock = ManualClock::shared();
        let shared: SharedClock = clock.clone();
        let core = LoopCore::new(Script::default(), options, shared).expect("the options of a test are valid");
        let handle = core.handle();
        Self { core, clock, handle }
    }

    pub fn post(&self, item: ScriptItem) {
        assert!(self.handle.try_post(item).is_ok(), "there is room");
    }

    pub fn every(&mut self, name: &str, interval: Duration, timer: ScriptTimer) -> TimerId {
        let (_, mut cx) = self.core.parts();
        cx.register_timer(name, interval, None, true, timer).expect("the timer is valid")
    }

    pub fn spawn(&mut self, task: impl Task<Script>) -> TaskId {
        let (_, cx) = self.core.parts();
        cx.tasks.spawn(task).expect("the loop has not stopped")
    }

    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Takes turns until there is nothing to do now.
    pub fn settle(&mut self) -> Next {
        for _ in 0..10_000 {
            let next = self.core.turn();
            if next != Next::Now {
                return next;
            }
        }
        panic!("the loop does not come to rest");
    }

    /// Goes from turn to turn, moving the clock to whenever the loop wants to go on, until `end`.
    pub fn run_until(&mut self, end: Duration) {
        use crate::clock::Clock;
        while let Next::At(at) = self.settle() {
            if at > end {
                break;
            }
            let now = self.clock.now();
            self.clock.advance(at - now);
        }
        let now = self.clock.now();
        self.clock.advance(end.saturating_sub(now));
    }

    /// What was written down since the last call.
    pub fn log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.core.simulation().log)
    }
}
