//! The calls of game guests: what each item and timer says to which handler. A handler that fails has left no trace
//! when it returns here; what it did otherwise is carried out at once.

use std::time::Duration;

use super::committing::Disk;
use super::guests::FIRST_PAUSE;
use super::simulation::{Cx, HostSimulation, Timer};
use crate::guest::contract::game::Game;
use crate::guest::contract::sim::thinking::Intent;
use crate::guest::{Blame, CallError, GuestId, GuestTimer, InstanceState};
use crate::world::EntityId;
use wasmtime::Store;

/// Time for timers that were held, looked at between two of them.
const HELD_TIMERS_BUDGET: Duration = Duration::from_millis(5);

type Answer<T> = wasmtime::Result<Result<T, String>>;

impl HostSimulation {
    /// Calls a handler of a game as a transaction and carries out what it did.
    pub(super) fn handle<T>(
        &mut self,
        game: GuestId,
        what: &'static str,
        cx: &mut Cx<'_>,
        call: impl Fn(&Game, &mut Store<InstanceState>) -> Answer<T>,
    ) -> Result<T, CallError> {
        self.handle_blaming(Blame::Guest, game, what, cx, call)
    }

    /// [`handle`](Self::handle), with a word on who is to blame for a failure.
    pub(super) fn handle_blaming<T>(
        &mut self,
        blame: Blame,
        game: GuestId,
        what: &'static str,
        cx: &mut Cx<'_>,
        call: impl Fn(&Game, &mut Store<InstanceState>) -> Answer<T>,
    ) -> Result<T, CallError> {
        self.prepare_handler(cx);
        let Some(running) = self.guests.game(game) else { return Err(CallError::NotRunning) };
        let result = running.call_blaming(blame, &mut self.stage, what, call);
        let returned = running.take_returned();
        if let Some(returned) = returned {
            self.swaps.tell_of_return(game, returned);
        }
        self.after_handler(cx);
        if matches!(result, Err(ref error) if !error.keeps_instance()) {
            self.spent = true;
            self.look_after(game, cx);
        }
        result
    }

    /// A client's connection is bound to a game. One that refuses or fails has not taken it in, so it is closed.
    pub(super) fn connected(
        &mut self,
        game: GuestId,
        connection: u64,
        address: &str,
        cx: &mut Cx<'_>,
    ) -> Result<(), CallError> {
        self.stage().connections.insert(connection);
        let taken_in =
            self.handle(game, "on-connect", cx, |game, store| game.call_on_connect(store, connection, address));
        match &taken_in {
            Ok(()) => {}
            // It comes again later.
            Err(CallError::Unkept) => drop(self.stage().connections.remove(&connection)),
            Err(error) => {
                tracing::debug!(connection, "the game did not take a client in: {error}");
                self.outbox.close(connection, 0);
            }
        }
        taken_in
    }

    /// A client has sent a packet. What fails has been logged and counted.
    pub(super) fn packet(
        &mut self,
        game: GuestId,
        connection: u64,
        packet: &[u8],
        cx: &mut Cx<'_>,
    ) -> Result<(), CallError> {
        let handled = self.handle(game, "on-packet", cx, |game, store| game.call_on_packet(store, connection, packet));
        if let Err(CallError::NotRunning) = handled {
            self.packets_lost += 1;
            // Told at each doubling, since clients decide how many there are.
            if self.packets_lost.is_power_of_two() {
                tracing::warn!(packets = self.packets_lost, "packets are lost while their game does not run");
            }
        }
        handled
    }

    /// A client is gone, or bound elsewhere. Whatever the game does about it, no entity stays bound to the connection.
    pub(super) fn disconnected(
        &mut self,
        game: GuestId,
        connection: u64,
        is_gone: bool,
        cx: &mut Cx<'_>,
    ) -> Result<(), CallError> {
        self.stage().connections.remove(&connection);
        if is_gone {
            self.outbox.forget(connection);
        }
        let told = self.handle(game, "on-disconnect", cx, |game, store| game.call_on_disconnect(store, connection));
        if let Err(CallError::Unkept) = told {
            return told;
        }
        let stage = self.stage();
        let bound: Vec<EntityId> = stage.world.entities_of(connection).collect();
        if bound.is_empty() {
            return told;
        }
        let released =
            stage.world.transact(|world| bound.iter().try_for_each(|entity| world.set_connection(*entity, None)));
        if let Err(error) = released {
            tracing::error!(connection, "an entity stays bound to a connection that is gone: {error}");
        }
        self.follow_activity(cx);
        told
    }

    /// A guest's timer has fired.
    pub(super) fn guest_timer(&mut self, id: u64, missed: u64, cx: &mut Cx<'_>) {
        let stage = self.stage();
        let Some(timer) = stage.timers.get(id).cloned() else { return };
        if self.guests.is_waiting(timer.guest) {
            self.postpone_timer(id, &timer, cx);
            return;
        }
        if !timer.repeat {
            self.stage().timers.remove(id);
        }
        self.stage().told_from = timer.after;
        let runs = u32::try_from(missed).unwrap_or(u32::MAX);
        let fired = self.handle(timer.guest, "on-timer", cx, |game, store| {
            game.call_on_timer(store, id, &timer.name, &timer.payload, runs)
        });
        match fired {
            Err(CallError::NotRunning) => self.drop_timers_of(timer.guest, cx),
            Err(CallError::Unkept) => {
                self.stage().timers.put_back(id, timer);
                self.held_timers.push(id, missed);
            }
            _ => {}
        }
    }

    /// Runs the timers that were held, until the time is up.
    pub(super) fn run_held_timers(&mut self, cx: &mut Cx<'_>) {
        if self.held_timers.is_empty() || self.committing.disk() != Disk::Ready {
            return;
        }
        let until = cx.clock.now() + HELD_TIMERS_BUDGET;
        while !self.spent
            && let Some((id, missed)) = self.held_timers.pop()
        {
            self.guest_timer(id, missed, cx);
            if cx.clock.now() >= until {
                break;
            }
        }
        if !self.held_timers.is_empty() {
            self.go_on(cx);
        }
    }

    /// A timer fired for a guest that waits for its next instance: one that fires once is tried again a little later,
    /// one that repeats comes again by itself.
    fn postpone_timer(&mut self, id: u64, timer: &GuestTimer, cx: &mut Cx<'_>) {
        if timer.repeat {
            return;
        }
        let again = cx.timers.register(cx.clock.now(), self.names().guest, FIRST_PAUSE, None, false, Timer::Guest(id));
        match again {
            Ok(on_wheel) => self.stage().timers.registered(id, on_wheel),
            Err(error) => {
                tracing::warn!(timer = &*timer.name, "a guest's timer is lost while the guest does not run: {error}");
                self.stage().timers.remove(id);
            }
        }
    }

    /// Takes all timers of a guest back: one that will not run again needs none.
    pub(super) fn drop_timers_of(&mut self, guest: GuestId, cx: &mut Cx<'_>) {
        let stage = self.stage();
        for id in stage.timers.of_guest(guest) {
            if let Some(on_wheel) = stage.timers.remove(id).and_then(|timer| timer.on_wheel) {
                cx.timers.unregister(on_wheel);
            }
        }
    }

    /// An NPC wants to act.
    pub(super) fn intent(&mut self, intent: Intent, cx: &mut Cx<'_>) {
        // Its thinker may have looked at anything.
        let stage = self.stage();
        stage.told_from = stage.newest_change();
        if let Some(game) = self.guests.at_the_gate {
            let _ = self.handle(game, "on-intent", cx, |game, store| game.call_on_intent(store, intent));
        }
    }
}
