//! What a handler did beyond the world, carried out after it has returned: timers go on the wheel, tasks to the
//! dispatcher, packets to the outbox, letters to services; NPCs that woke or fell asleep get or lose their timers.

use std::time::Duration;

use super::letters::Outgoing;
use super::simulation::{Cx, HostSimulation, Timer};
use super::thinking::ThinkWheel;
use crate::guest::{Committed, Effect};

impl HostSimulation {
    /// To be called before a handler: tells the stage how much room the wheel has and what time it is.
    pub(super) fn prepare_handler(&mut self, cx: &mut Cx<'_>) {
        let on_wheel = cx.timers.active();
        let now_ms = cx.clock.wall_ms();
        let untold_tasks = self.ended_tasks.len();
        let stage = self.stage();
        stage.untold_tasks = untold_tasks;
        stage.now_ms = now_ms;
        stage.other_timers = on_wheel.saturating_sub(stage.timers.len());
    }

    /// To be called after a handler.
    pub(super) fn after_handler(&mut self, cx: &mut Cx<'_>) {
        let mut effects = std::mem::take(&mut self.effects);
        self.stage().take_effects(&mut effects);
        for committed in effects.drain(..) {
            self.carry_out(committed, cx);
        }
        self.effects = effects;
        self.follow_activity(cx);
    }

    /// Gives timers to the NPCs that woke and takes those of the NPCs that fell asleep.
    pub(super) fn follow_activity(&mut self, cx: &mut Cx<'_>) {
        let mut wheel = ThinkWheel { now: cx.clock.now(), name: self.names().npc_think, timers: cx.timers };
        let stage = self.stage.as_deref_mut().expect("no call has the stage after it has returned");
        self.thinking.follow(&mut stage.world, &mut wheel);
    }

    fn carry_out(&mut self, Committed { effect, after }: Committed, cx: &mut Cx<'_>) {
        match effect {
            Effect::SetTimer(id) => self.set_timer(id, cx),
            Effect::CancelTimer(id) => {
                if let Some(on_wheel) = self.stage().timers.remove(id).and_then(|timer| timer.on_wheel) {
                    cx.timers.unregister(on_wheel);
                }
            }
            Effect::StartTask(task) => self.start_task(task, cx),
            Effect::CancelTask(task) => {
                self.cancel_task(task, cx);
            }
            Effect::Send { to, packet } => self.outbox.send(&to, &packet, after),
            Effect::Close(connection) => self.outbox.close(connection, after),
            Effect::Letter { from, letter } => self.post(Outgoing::Letter { from, letter }, after),
        }
    }

    fn set_timer(&mut self, id: u64, cx: &mut Cx<'_>) {
        let name = self.names().guest;
        let stage = self.stage.as_deref_mut().expect("no call has the stage after it has returned");
        let timers = &mut stage.timers;
        // A timer that the same handler cancelled again is not in the book.
        let Some(timer) = timers.get(id) else { return };
        let interval = Duration::from_millis(timer.interval_ms);
        let delay = timer.delay_ms.map(Duration::from_millis);
        match cx.timers.register(cx.clock.now(), name, interval, delay, timer.repeat, Timer::Guest(id)) {
            Ok(on_wheel) => timers.registered(id, on_wheel),
            Err(error) => {
                let guest = self.guests.name(timer.guest);
                tracing::warn!(guest, timer = &*timer.name, "a guest's timer was not set: {error}");
                timers.remove(id);
            }
        }
    }
}
