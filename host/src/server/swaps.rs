//! What the loop does of a swap: it hands out what new code is to carry on, lets that code take over between two items,
//! and tells when the old code has come back. Everything slow, compiling and the trial, is done elsewhere; see `swapper`.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use super::guests::TaskCode;
use super::simulation::{Cx, HostSimulation};
use crate::guest::resident::SavedState;
use crate::guest::{
    CallError, GamePre, GuestId, GuestState, Inheritance, InstanceState, Prepared, Probation, Returned, SwapError,
    SwapOptions, TakenOver, ThinkerPre,
};
use crate::sim::Reply;
use crate::world::ThinkerId;

/// What a swap wants of the loop.
pub enum SwapOrder {
    /// What new code is to carry on; none where there is no such game or thinker. `former` comes with it.
    Inheritance { guest: GuestId, former: Option<SavedState>, reply: Reply<Option<Timed<Inheritance>>> },
    /// New code is to take over, as that generation.
    TakeOver { guest: GuestId, code: Successor, generation: u64, reply: Reply<Timed<Result<Done, SwapError>>> },
}

/// New code that has passed its trial.
pub enum Successor {
    Game(Box<Prepared<GamePre<InstanceState>>>),
    Thinker(Box<Prepared<ThinkerPre<InstanceState>>>),
    Task(TaskCode),
}

/// New code runs. What is left of the old is to be dropped elsewhere than on the loop.
pub struct Done {
    pub _left: Option<TakenOver>,
}

/// Something that the loop did, and how long it served nobody because of it.
pub struct Timed<T> {
    pub result: T,
    pub pause: Duration,
}

/// How the loop tells of old code that has come back by itself.
pub struct Swaps {
    options: SwapOptions,
    returned: UnboundedSender<(GuestId, Returned)>,
}

impl Swaps {
    /// Tells it to whoever has the other end.
    pub fn new(options: SwapOptions, returned: UnboundedSender<(GuestId, Returned)>) -> Self {
        Self { options, returned }
    }

    /// The old code of a guest has come back.
    pub fn tell_of_return(&self, guest: GuestId, returned: Returned) {
        // Nobody listens any more when the host stops.
        let _ = self.returned.send((guest, returned));
    }
}

impl HostSimulation {
    /// Does the loop's part of a swap.
    pub(super) fn swap_order(&mut self, order: SwapOrder, cx: &mut Cx<'_>) {
        let began = cx.clock.now();
        match order {
            SwapOrder::Inheritance { guest, former, reply } => {
                self.prepare_handler(cx);
                let inheritance = self.guests.inheritance(guest, &mut self.stage, former);
                self.after_handler(cx);
                self.look_after(guest, cx);
                let pause = cx.clock.now() - began;
                reply.send(inheritance.map(|result| Timed { result, pause }));
            }
            SwapOrder::TakeOver { guest, code, generation, reply } => {
                let result = self.take_over(guest, code, generation, cx);
                reply.send(Timed { result, pause: cx.clock.now() - began });
            }
        }
    }

    fn take_over(
        &mut self,
        guest: GuestId,
        code: Successor,
        generation: u64,
        cx: &mut Cx<'_>,
    ) -> Result<Done, SwapError> {
        let code = match code {
            Successor::Task(code) => return self.take_over_task(guest, code, generation, cx),
            resident => resident,
        };
        let was_running = self.guests.is_running(guest);
        if !was_running {
            self.admit(guest, cx);
        }
        self.prepare_handler(cx);
        let options = &self.swaps.options;
        let taken_over = match code {
            Successor::Game(code) => {
                self.guests.games.get_mut(&guest).map(|it| it.take_over(&mut self.stage, *code, generation, options))
            }
            Successor::Thinker(code) => {
                let thinker = self.guests.thinkers.get_mut(&ThinkerId(guest.0));
                thinker.map(|it| it.take_over(&mut self.stage, *code, generation, options))
            }
            Successor::Task(_) => None,
        };
        self.after_handler(cx);
        let left = taken_over.unwrap_or(Err(SwapError::TakeOver { call: "init", error: CallError::NotRunning }));
        self.note_first_init(guest);
        // Where it failed the old one may have lost its instance, or is as much given up as it was before.
        self.look_after(guest, cx);
        left.map(|left| Done { _left: Some(left) })
    }

    /// A guest that did not run, since it was given up or its file was refused, takes part again.
    fn admit(&mut self, guest: GuestId, cx: &mut Cx<'_>) {
        if !self.guests.games.contains_key(&guest) || self.guests.is_waiting(guest) {
            return;
        }
        // Its new instance is told that there are none.
        self.drop_timers_of(guest, cx);
        let Some(name) = self.guests.name(guest).map(Arc::from) else { return };
        self.stage().events.add_guest(guest, &name);
        self.open_inbox(guest);
    }

    /// Tasks that run go on as they are; those that are started from here on run the new code.
    fn take_over_task(
        &mut self,
        guest: GuestId,
        code: TaskCode,
        generation: u64,
        cx: &mut Cx<'_>,
    ) -> Result<Done, SwapError> {
        let Some(task_guest) = self.guests.tasks.get_mut(&guest) else {
            return Err(SwapError::TakeOver { call: "start", error: CallError::NotRunning });
        };
        let counters = &task_guest.identity.counters;
        let before = task_guest.code.replace(code).map(|code| (code, counters.generation()));
        task_guest.probation = before.map(|before| Probation::new(&self.swaps.options, cx.clock.now(), before));
        task_guest.supervisor = task_guest.identity.supervisor();
        counters.set_generation(generation);
        counters.set_state(GuestState::Running);
        let name = task_guest.identity.name.to_string();
        self.stage().task_guests.insert(name, guest);
        Ok(Done { _left: None })
    }

    /// Tells of old code that has come back, if it has.
    pub(super) fn tell_of_return(&mut self, guest: GuestId) {
        if let Some(returned) = self.guests.take_returned(guest) {
            self.swaps.tell_of_return(guest, returned);
        }
    }
}
