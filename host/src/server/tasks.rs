//! Step tasks and jobs between the guests that start them and the dispatcher that runs them.

use std::sync::Arc;
use std::time::Duration;

use super::committing::Disk;
use super::guests::TaskCode;
use super::simulation::{Cx, HostSimulation};
use crate::guest::contract::sim::stepping::StepResult;
use crate::guest::contract::sim::tasks::TaskFailure;
use crate::guest::contract::step_task::StepTaskPre;
use crate::guest::{
    CallError, GuestId, InstanceState, JobRun, NewTask, Probation, Returned, Slice, StepTaskRun, Verdict,
};
use crate::sim::{Step, StepBudget, Task, TaskEnd, TaskId};

/// A task that runs.
#[derive(Clone, Debug)]
pub struct RunningTask {
    pub owner: GuestId,
    /// The name of the step task or job.
    pub guest: Arc<str>,
    pub in_dispatcher: TaskId,
}

/// How a task ended, for its owner.
pub struct Ended {
    pub owner: GuestId,
    pub task: u64,
    pub outcome: Result<Vec<u8>, TaskFailure>,
}

impl HostSimulation {
    /// Starts a task that a handler has asked for.
    pub(super) fn start_task(&mut self, new: NewTask, cx: &mut Cx<'_>) {
        let NewTask { id, owner, guest, arguments } = new;
        let task_guest = self.guests.tasks.get_mut(&guest);
        let Some((task_guest, code)) = task_guest.and_then(|it| it.code.clone().map(|code| (it, code))) else {
            let reason = "the guest is disabled".to_owned();
            self.task_ended(owner, id, Err(TaskFailure::Crashed(reason)));
            return;
        };
        task_guest.started += 1;
        let number = task_guest.started;
        let identity = &task_guest.identity;
        let generation = identity.counters.generation();
        let guest_name = Arc::clone(&identity.name);
        let name = format!("{guest_name} {id}");
        // It runs to its end on the code that it was started with.
        let work = match code {
            TaskCode::StepTask(code) => Work::ToStart { code, number, arguments },
            TaskCode::Job(code) => Work::Job(Box::new(JobRun::start(&self.engine, &code, identity, number, arguments))),
        };
        match cx.tasks.spawn(GuestTask { id, owner, guest, generation, name, work }) {
            Ok(in_dispatcher) => {
                self.running_tasks.insert(id, RunningTask { owner, guest: guest_name, in_dispatcher });
                self.tasks_changed = true;
            }
            Err(error) => self.task_ended(owner, id, Err(TaskFailure::Crashed(error.to_string()))),
        }
    }

    /// Cancels a task, for its owner or an operator; false when it does not run.
    pub(super) fn cancel_task(&mut self, task: u64, cx: &mut Cx<'_>) -> bool {
        let Some(running) = self.running_tasks.get(&task).cloned() else { return false };
        cx.tasks.cancel(running.in_dispatcher);
        self.task_ended(running.owner, task, Err(TaskFailure::Cancelled));
        true
    }

    fn task_ended(&mut self, owner: GuestId, task: u64, outcome: Result<Vec<u8>, TaskFailure>) {
        self.tasks_changed |= self.running_tasks.remove(&task).is_some();
        self.stage().tasks.remove(&task);
        self.ended_tasks.push(Ended { owner, task, outcome });
    }

    /// Tells owners how their tasks ended. What those handlers end in turn waits for the next turn, and so does the
    /// rest once a handler has failed. An owner that waits for its next instance is told when it has one.
    pub(super) fn tell_of_ended_tasks(&mut self, cx: &mut Cx<'_>) {
        if self.committing.disk() != Disk::Ready {
            return;
        }
        let (waiting, ended): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.ended_tasks).into_iter().partition(|ended| self.guests.is_waiting(ended.owner));
        let mut ended = ended.into_iter();
        while !self.spent
            && let Some(Ended { owner, task, outcome }) = ended.next()
        {
            // It was started with what a handler knew, and may have looked at anything since.
            let stage = self.stage();
            stage.told_from = stage.newest_change();
            let outcome = outcome.as_ref().map(Vec::as_slice);
            let _ = self.handle(owner, "on-task", cx, |game, store| game.call_on_task(store, task, outcome));
        }
        self.ended_tasks.splice(..0, ended);
        if !self.ended_tasks.is_empty() {
            self.go_on(cx);
        }
        self.ended_tasks.splice(..0, waiting);
    }

    /// Notes that a task which ran that generation of its guest's code has failed. A guest that fails too often starts no
    /// more, or is back at the code that it had before.
    fn task_guest_failed(&mut self, guest: GuestId, generation: u64, reason: &str, now: Duration) {
        self.spent = true;
        let Some(task_guest) = self.guests.tasks.get_mut(&guest) else { return };
        let counters = &task_guest.identity.counters;
        if generation != counters.generation() {
            return;
        }
        if let Some((code, to)) = Probation::failed(&mut task_guest.probation, now, false) {
            counters.set_generation(to);
            task_guest.code = Some(code);
            task_guest.supervisor = task_guest.identity.supervisor();
            let returned = Returned { from: generation, to, reason: reason.to_owned() };
            returned.log(&task_guest.identity.name);
            self.swaps.tell_of_return(guest, returned);
        } else if task_guest.supervisor.failed(now) == Verdict::Disable {
            task_guest.identity.disable();
            task_guest.code = None;
            self.stage().task_guests.retain(|_, id| *id != guest);
        }
    }
}

/// A guest's step task or job in the dispatcher.
struct GuestTask {
    id: u64,
    owner: GuestId,
    guest: GuestId,
    /// The version of its guest's code that it runs.
    generation: u64,
    name: String,
    work: Work,
}

enum Work {
    /// A step task before its first step.
    ToStart {
        code: Arc<StepTaskPre<InstanceState>>,
        number: u64,
        arguments: Vec<u8>,
    },
    StepTask(Box<StepTaskRun>),
    Job(Box<JobRun>),
}

/// What one step came to: go on, or this end.
type Progress = Result<Step, Result<Vec<u8>, CallError>>;

impl Task<HostSimulation> for GuestTask {
    fn name(&self) -> &str {
        &self.name
    }

    fn can_be_cut(&self) -> bool {
        matches!(self.work, Work::Job(_))
    }

    fn step(&mut self, budget: StepBudget, simulation: &mut HostSimulation, cx: &mut Cx<'_>) -> Step {
        match self.advance(budget, simulation) {
            Ok(step) => step,
            Err(end) => self.end(end, simulation, cx),
        }
    }

    fn ended(&mut self, end: TaskEnd, simulation: &mut HostSimulation, _cx: &mut Cx<'_>) {
        // A guest's end has been told by the step that came to it. This is for a step that panicked.
        if let (TaskEnd::Failed(error), true) = (end, simulation.running_tasks.contains_key(&self.id)) {
            let crash = Err(TaskFailure::Crashed(format!("{error:#}")));
            simulation.task_ended(self.owner, self.id, crash);
        }
    }
}

impl GuestTask {
    fn advance(&mut self, budget: StepBudget, simulation: &mut HostSimulation) -> Progress {
        match &mut self.work {
            Work::ToStart { code, number, arguments } => {
                let Some(task_guest) = simulation.guests.tasks.get(&self.guest) else {
                    return Err(Err(CallError::NotRunning));
                };
                let (identity, arguments) = (&task_guest.identity, std::mem::take(arguments));
                let (engine, stage) = (&simulation.engine, &mut simulation.stage);
                let run = StepTaskRun::start(engine, code, identity, *number, stage, &arguments).map_err(Err)?;
                self.work = Work::StepTask(Box::new(run));
                Ok(Step::InProgress)
            }
            Work::StepTask(run) => {
                let timeslice_ns = budget.timeslice.as_nanos() as u64;
                match run.step(&mut simulation.stage, timeslice_ns).map_err(Err)? {
                    StepResult::InProgress => Ok(Step::InProgress),
                    StepResult::Waiting => Ok(Step::Waiting),
                    StepResult::Finished(result) => Err(Ok(result)),
                    StepResult::Failed(message) => Err(Err(CallError::Refused(message))),
                }
            }
            Work::Job(run) => match run.slice(budget.budget) {
                Slice::Suspended => Ok(Step::InProgress),
                Slice::Ended(result) => Err(result),
            },
        }
    }

    /// Tells the owner, and the supervisor where it was the guest's fault.
    fn end(&self, end: Result<Vec<u8>, CallError>, simulation: &mut HostSimulation, cx: &mut Cx<'_>) -> Step {
        let limit = simulation.engine.limits().max_payload_bytes();
        let (step, outcome) = match end {
            Ok(result) if result.len() > limit => {
                let message = format!("the result has {} bytes; guest.max_payload_kb allows {limit}", result.len());
                (Step::Failed(anyhow::anyhow!(message.clone())), Err(TaskFailure::Crashed(message)))
            }
            Ok(result) => (Step::Finished, Ok(result)),
            Err(CallError::Refused(message)) => {
                (Step::Failed(anyhow::anyhow!(message.clone())), Err(TaskFailure::Failed(message)))
            }
            Err(error) => {
                let message = error.to_string();
                simulation.task_guest_failed(self.guest, self.generation, &message, cx.clock.now());
                (Step::Failed(error.into()), Err(TaskFailure::Crashed(message)))
            }
        };
        simulation.task_ended(self.owner, self.id, outcome);
        simulation.go_on(cx);
        step
    }
}
