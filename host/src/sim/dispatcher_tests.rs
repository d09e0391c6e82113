//! The sentences of the dispatcher's contract, driven turn by turn on a clock that moves by hand.

use std::sync::Arc;
use std::time::Duration;

use super::scripted::*;
use super::*;
use crate::clock::{Clock, ManualClock};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A little more than a frame of 16.6 ms.
const FRAME: Duration = ms(17);

/// A task that takes `cost` for a step, `steps` times.
struct Work {
    name: &'static str,
    clock: Arc<ManualClock>,
    cost: Duration,
    steps: u32,
    can_be_cut: bool,
}

impl Work {
    fn new(name: &'static str, stage: &Stage, cost: Duration, steps: u32) -> Self {
        Self { name, clock: stage.clock.clone(), cost, steps, can_be_cut: false }
    }
}

impl Task<Script> for Work {
    fn name(&self) -> &str {
        self.name
    }

    fn can_be_cut(&self) -> bool {
        self.can_be_cut
    }

    fn step(&mut self, budget: StepBudget, script: &mut Script, _cx: &mut Cx<'_>) -> Step {
        self.clock.advance(if self.can_be_cut { self.cost.min(budget.budget) } else { self.cost });
        script.note(self.name);
        self.steps -= 1;
        if self.steps == 0 { Step::Finished } else { Step::InProgress }
    }

    fn ended(&mut self, end: TaskEnd, script: &mut Script, _cx: &mut Cx<'_>) {
        match end {
            TaskEnd::Finished => script.note(format!("{} finished", self.name)),
            TaskEnd::Failed(error) => script.note(format!("{} failed: {error}", self.name)),
        }
    }
}

/// A task whose step is a closure.
struct Stepping<F>(&'static str, F);

impl<F> Task<Script> for Stepping<F>
where
    F: FnMut(StepBudget, &mut Script, &mut Cx<'_>) -> Step + Send + 'static,
{
    fn name(&self) -> &str {
        self.0
    }

    fn step(&mut self, budget: StepBudget, script: &mut Script, cx: &mut Cx<'_>) -> Step {
        (self.1)(budget, script, cx)
    }

    fn ended(&mut self, end: TaskEnd, script: &mut Script, _cx: &mut Cx<'_>) {
        if let TaskEnd::Failed(error) = end {
            script.note(format!("{}: {error}", self.0));
        }
    }
}

fn stage() -> Stage {
    Stage::new(SimOptions::default())
}

#[test]
fn a_task_runs_to_its_end_within_one_frame_if_it_fits() {
    let mut stage = stage();
    let task = Work::new("a", &stage, ms(1), 3);
    stage.spawn(task);
    assert_eq!(stage.settle(), Next::WhenPosted);
    assert_eq!(stage.log(), ["a", "a", "a", "a finished"]);
    let tasks = stage.handle.metrics().tasks;
    assert_eq!((tasks.steps, tasks.finished, tasks.queued, tasks.average_step_us), (3, 1, 0, 1000));
}

#[test]
fn a_step_is_given_only_if_the_average_fits_what_is_left() {
    let mut stage = stage();
    let task = Work::new("a", &stage, ms(6), 100);
    stage.spawn(task);
    // 16.6 ms hold two steps of 6 ms; the third must wait for the next frame.
    let Next::At(at) = stage.settle() else { panic!("the task is not done") };
    assert_eq!(stage.log(), ["a", "a"]);
    assert_eq!(at, Duration::from_nanos(1_000_000_000 / 60));
    let now = stage.clock.now();
    stage.advance(at - now);
    stage.settle();
    assert_eq!(stage.log(), ["a", "a"]);
}

#[test]
fn items_and_timers_are_paid_for_by_tasks() {
    let mut stage = stage();
    let task = Work::new("a", &stage, ms(6), 100);
    stage.spawn(task);
    stage.settle();
    stage.log();
    stage.advance(FRAME);
    let clock = stage.clock.clone();
    stage.post(slow_item("item", &clock, ms(8)));
    stage.settle();
    assert_eq!(stage.log(), ["item", "a"]);
}

#[test]
fn a_task_too_dear_ever_to_fit_gets_a_step_every_eight_frames() {
    let mut stage = stage();
    let task = Work::new("dear", &stage, ms(30), 100);
    stage.spawn(task);
    let mut frames_between = Vec::new();
    let mut frames = 0;
    for _ in 0..40 {
        stage.settle();
        if !stage.log().is_empty() {
            frames_between.push(frames);
            // Its step took the clock beyond the frame, so the next frame has begun already.
            frames = 1;
        }
        frames += 1;
        stage.advance(FRAME);
    }
    assert_eq!(frames_between[1..], [8; 5]);
}

#[test]
fn one_step_is_attempted_even_if_the_frame_is_spent() {
    let mut stage = stage();
    let clock = stage.clock.clone();
    let task = Work::new("a", &stage, ms(1), 1);
    stage.spawn(task);
    stage.post(slow_item("item", &clock, ms(100)));
    stage.core.turn();
    assert_eq!(stage.log(), ["item", "a", "a finished"]);
}

#[test]
fn no_ready_task_waits_while_another_gets_two_steps() {
    let mut stage = stage();
    for name in ["a", "b", "c"] {
        let task = Work::new(name, &stage, ms(2), 1000);
        stage.spawn(task);
    }
    stage.run_until(FRAME * 20);
    let log = stage.log();
    assert!(log.len() > 100, "{}", log.len());
    for three in log.chunks_exact(3) {
        let mut names = three.to_vec();
        names.sort();
        assert_eq!(names, ["a", "b", "c"]);
    }
}

#[test]
fn a_task_that_did_not_fit_comes_first_in_the_next_frame() {
    let mut stage = stage();
    let dear = Work::new("dear", &stage, ms(12), 100);
    stage.spawn(dear);
    stage.settle();
    let cheap = Work::new("cheap", &stage, ms(1), 3);
    stage.spawn(cheap);
    stage.settle();
    assert_eq!(stage.log(), ["dear", "cheap", "cheap", "cheap", "cheap finished"]);
    stage.advance(FRAME);
    let cheap = Work::new("cheap", &stage, ms(1), 1);
    stage.spawn(cheap);
    stage.settle();
    assert_eq!(stage.log()[0], "dear");
}

#[test]
fn a_waiting_task_is_asked_once_a_frame_and_does_not_spin_the_loop() {
    let mut stage = stage();
    stage.spawn(Stepping("patient", |_, script: &mut Script, _: &mut Cx<'_>| {
        script.note("asked");
        Step::Waiting
    }));
    for _ in 0..5 {
        assert!(matches!(stage.settle(), Next::At(_)));
        assert_eq!(stage.log(), ["asked"]);
        // An item in the same frame is no reason to ask again.
        stage.post(item("item"));
        stage.settle();
        assert_eq!(stage.log(), ["item"]);
        stage.advance(FRAME);
    }
    let tasks = stage.handle.metrics().tasks;
    assert_eq!((tasks.steps, tasks.queued), (0, 1), "waiting is no step");
}

#[test]
fn between_steps_the_loop_looks_at_items_and_timers() {
    let mut stage = stage();
    stage.every("timer", ms(8), timer("timer"));
    let task = Work::new("a", &stage, ms(3), 4);
    stage.spawn(task);
    let mut posted = false;
    stage.spawn(Stepping("posts", move |_, _: &mut Script, cx: &mut Cx<'_>| {
        if !std::mem::replace(&mut posted, true) {
            assert!(cx.handle.try_post(item("item")).is_ok());
        }
        Step::Waiting
    }));
    stage.settle();
    assert_eq!(stage.log(), ["a", "item", "a", "a", "timer", "a", "a finished"]);
}

#[test]
fn a_task_that_can_be_cut_gets_slices_of_what_is_left() {
    let mut stage = stage();
    let clock = stage.clock.clone();
    struct Job<F>(F);
    impl<F: FnMut(Duration) -> Step + Send + 'static> Task<Script> for Job<F> {
        fn name(&self) -> &str {
            "job"
        }
        fn can_be_cut(&self) -> bool {
            true
        }
        fn step(&mut self, budget: StepBudget, _: &mut Script, _: &mut Cx<'_>) -> Step {
            (self.0)(budget.budget)
        }
    }
    let (send, receive) = std::sync::mpsc::channel();
    stage.spawn(Job(move |budget| {
        send.send(budget).unwrap();
        clock.advance(budget);
        Step::InProgress
    }));
    assert_eq!(stage.core.turn(), Next::Now);
    let budgets: Vec<Duration> = receive.try_iter().collect();
    // 16.6 ms are eight slices of 2 ms and one of what is left, which is worth its switch.
    assert_eq!(budgets[..8], [ms(2); 8]);
    assert_eq!(budgets.len(), 9);
    assert_eq!(budgets.iter().sum::<Duration>(), Duration::from_nanos(1_000_000_000 / 60));
}

#[test]
fn a_step_over_the_soft_budget_is_counted() {
    let mut stage = stage();
    let task = Work::new("slow", &stage, ms(11), 1);
    stage.spawn(task);
    let task = Work::new("just in time", &stage, ms(10), 1);
    stage.spawn(task);
    stage.run_until(FRAME * 3);
    assert_eq!(stage.handle.metrics().tasks.over_budget, 1);
}

#[test]
fn a_slice_that_was_kept_is_not_over_budget() {
    let mut options = SimOptions::default();
    options.dispatch.job_slice_ms = 15;
    let mut stage = Stage::new(options);
    let mut task = Work::new("job", &stage, ms(100), 1);
    task.can_be_cut = true;
    stage.spawn(task);
    stage.settle();
    assert_eq!(stage.log()[0], "job");
    assert_eq!(stage.clock.now(), ms(15));
    assert_eq!(stage.handle.metrics().tasks.over_budget, 0);
}

#[test]
fn a_task_that_fails_or_panics_harms_no_other() {
    let mut stage = stage();
    stage.spawn(Stepping("fails", |_, _: &mut Script, _: &mut Cx<'_>| Step::Failed(anyhow::anyhow!("no map"))));
    stage.spawn(Stepping("panics", |_, _: &mut Script, _: &mut Cx<'_>| panic!("no map at all")));
    let task = Work::new("works", &stage, ms(1), 1);
    stage.spawn(task);
    stage.settle();
    assert_eq!(stage.log(), ["fails: no map", "panics: panic: no map at all", "works", "works finished"]);
    let tasks = stage.handle.metrics().tasks;
    assert_eq!((tasks.failed, tasks.finished, tasks.queued), (2, 1, 0));
    assert!(stage.handle.is_running());
}

#[test]
fn a_task_can_be_cancelled_wherever_it_stands() {
    let mut stage = stage();
    let ready = Work::new("ready", &stage, ms(1), 100);
    let ready = stage.spawn(ready);
    let waiting = stage.spawn(Stepping("waiting", |_, _: &mut Script, _: &mut Cx<'_>| Step::Waiting));
    stage.settle();
    let dear = Work::new("dear", &stage, ms(30), 100);
    let dear = stage.spawn(dear);
    stage.advance(FRAME);
    stage.settle();
    let (_, cx) = stage.core.parts();
    for task in [ready, waiting, dear] {
        assert!(cx.tasks.cancel(task));
        assert!(!cx.tasks.cancel(task));
    }
    stage.log();
    assert_eq!(stage.settle(), Next::WhenPosted);
    assert!(stage.log().is_empty());
}

#[test]
fn a_task_can_cancel_itself_and_spawn_another() {
    let mut stage = stage();
    let clock = stage.clock.clone();
    let mut own_id = None;
    let id = stage.spawn(Stepping("first", move |_, script: &mut Script, cx: &mut Cx<'_>| {
        script.note("first");
        let next = Work { name: "next", clock: clock.clone(), cost: ms(1), steps: 1, can_be_cut: false };
        let next = cx.tasks.spawn(next).unwrap();
        let own = *own_id.get_or_insert(TaskId::from_u64(next.as_u64() - 1));
        assert!(cx.tasks.cancel(own));
        Step::InProgress
    }));
    assert_eq!(id.as_u64(), 1);
    stage.settle();
    assert_eq!(stage.log(), ["first", "next", "next finished"]);
}

#[test]
fn a_step_is_told_how_long_the_previous_frame_was() {
    let mut stage = stage();
    stage.spawn(Stepping("a", |budget: StepBudget, script: &mut Script, _: &mut Cx<'_>| {
        script.note(format!("{}", budget.timeslice.as_millis()));
        Step::Waiting
    }));
    stage.settle();
    stage.advance(ms(40));
    stage.settle();
    stage.advance(ms(20));
    stage.settle();
    assert_eq!(stage.log(), ["16", "40", "20"]);
}

#[test]
fn a_loop_without_tasks_that_slept_long_had_no_long_frame() {
    let mut stage = stage();
    stage.settle();
    stage.advance(Duration::from_secs(3600));
    stage.spawn(Stepping("a", |budget: StepBudget, script: &mut Script, _: &mut Cx<'_>| {
        script.note(format!("{}", budget.timeslice.as_millis()));
        Step::Finished
    }));
    stage.settle();
    assert_eq!(stage.log(), ["16"]);
}

#[test]
fn stop_drops_tasks_and_refuses_new_ones() {
    let mut stage = stage();
    let task = Work::new("endless", &stage, ms(1), 1_000_000);
    stage.spawn(task);
    stage.handle.begin_stop();
    assert_eq!(stage.settle(), Next::Ended);
    assert!(stage.log().is_empty());
    let late = Work::new("late", &stage, ms(1), 1);
    let (_, cx) = stage.core.parts();
    assert!(cx.tasks.spawn(late).is_err());
}
