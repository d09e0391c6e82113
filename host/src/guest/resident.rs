//! A guest that lives as long as the host: the `game` and the thinkers. It has one instance; a call that fails is
//! logged and counted, the instance is replaced and given the state that was saved last, and a guest that fails too
//! often is disabled. For a guest that changes the world each call is a transaction.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use wasmtime::Store;

use super::contract::sim::types::Occasion;
use super::counters::GuestState;
use super::engine::LoopEngine;
use super::failure::CallError;
use super::instance::{Instance, StageSlot};
use super::kinds::ResidentCode;
use super::probation::Probation;
use super::state::{Identity, InstanceState};
use super::succession::{Before, Returned};
use super::supervisor::{Supervisor, Verdict};

/// Whom a failure is counted against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The guest, which is disabled when there are too many.
    Guest,
    /// Nobody: what the guest was called for is known to fail, and somebody else sees to that.
    Nobody,
}

/// What a guest has saved. It may be long, and is kept in more than one place.
pub type SavedState = Arc<Vec<u8>>;

/// A guest with one instance.
pub struct Resident<C: ResidentCode> {
    pub(super) engine: LoopEngine,
    pub(super) identity: Arc<Identity>,
    /// None where the guest's file was refused.
    pub(super) code: Option<C>,
    /// The guest's own table of the configuration.
    pub(super) config: String,
    pub(super) instance: Option<Instance<C::Bindings>>,
    /// Instances made so far.
    pub(super) instances: u64,
    /// Why the first instance is started, until there was one whose `init` succeeded.
    pub(super) first_occasion: Option<Occasion>,
    /// What `save` answered last.
    pub(super) saved: Option<SavedState>,
    /// How many calls there had been when it was last asked for its state at a swap.
    pub(super) saved_after: u64,
    pub(super) supervisor: Supervisor,
    /// What ran before, while what runs now has to prove itself.
    pub(super) probation: Option<Probation<Before<C>>>,
    /// The old code has come back, and nobody was told yet.
    pub(super) returned: Option<Returned>,
}

impl<C: ResidentCode> Resident<C> {
    /// A guest that has yet to be started; one without code, only when it is swapped for code that can be run.
    pub fn new(engine: LoopEngine, identity: Arc<Identity>, code: Option<C>, config: String) -> Self {
        Self {
            supervisor: identity.supervisor(),
            engine,
            identity,
            code,
            config,
            instance: None,
            instances: 0,
            first_occasion: None,
            saved: None,
            saved_after: 0,
            probation: None,
            returned: None,
        }
    }

    /// Who it is.
    pub fn identity(&self) -> &Arc<Identity> {
        &self.identity
    }

    /// Whether it has an instance that can be called.
    pub fn is_running(&self) -> bool {
        self.instance.is_some()
    }

    /// Whether it has no instance but may have another: [`restart`](Self::restart) is to be called after a pause.
    pub fn wants_restart(&self) -> bool {
        self.instance.is_none() && self.code.is_some() && self.identity.counters.state() != GuestState::Disabled
    }

    /// Starts the first instance, with what an earlier run of the host saved.
    pub fn start(&mut self, slot: &mut StageSlot, occasion: Occasion, saved: Option<Vec<u8>>) {
        self.saved = saved.map(Arc::new);
        self.first_occasion = Some(occasion);
        self.try_start(slot, occasion);
    }

    /// Starts another instance where there is none.
    pub fn restart(&mut self, slot: &mut StageSlot) {
        if self.wants_restart() {
            self.try_start(slot, self.first_occasion.unwrap_or(Occasion::Replaced));
        }
    }

    /// Calls the guest within the deadline of a handler; see [`Instance::call`]. A failure has been dealt with when
    /// this returns: it is the caller's only to tell whoever waits.
    pub fn call<R>(
        &mut self,
        slot: &mut StageSlot,
        what: &'static str,
        call: impl Fn(&C::Bindings, &mut Store<InstanceState>) -> wasmtime::Result<Result<R, String>>,
    ) -> Result<R, CallError> {
        self.call_blaming(Blame::Guest, slot, what, call)
    }

    /// [`call`](Self::call), with a word on whom a failure is counted against.
    ///
    /// Where code on probation fails the call is made once more, by a fresh instance or by the old code if that has come
    /// back: what failed has left no trace, and whoever waits is answered all the same.
    pub fn call_blaming<R>(
        &mut self,
        blame: Blame,
        slot: &mut StageSlot,
        what: &'static str,
        call: impl Fn(&C::Bindings, &mut Store<InstanceState>) -> wasmtime::Result<Result<R, String>>,
    ) -> Result<R, CallError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let result = match &mut self.instance {
                None => return Err(CallError::NotRunning),
                Some(instance) => transaction(instance, slot, what, self.identity.limits.deadline(), &call),
            };
            let Err(error) = &result else { return result };
            let was_on_probation = self.is_on_probation();
            self.note(blame, slot, what, error);
            let has_come_back = was_on_probation && self.returned.is_some();
            let is_tried_again = blame == Blame::Guest
                && !error.keeps_instance()
                && self.instance.is_some()
                && (has_come_back || (was_on_probation && attempts == 1));
            if !is_tried_again {
                return result;
            }
        }
    }

    fn is_on_probation(&self) -> bool {
        Probation::is_on(self.probation.as_ref(), self.engine.clock().now())
    }

    fn note(&mut self, blame: Blame, slot: &mut StageSlot, what: &'static str, error: &CallError) {
        if error.is_unkept() {
            return;
        }
        if let CallError::Refused(reason) = error {
            note_refusal(&self.identity, what, reason);
            return;
        }
        self.failed(blame, slot, what, error);
    }

    /// Deals with the failure of a call: the instance is gone, and another is started at once. Where that fails too,
    /// the guest waits for [`restart`](Self::restart): one call of the loop never waits for more than one `init`.
    fn failed(&mut self, blame: Blame, slot: &mut StageSlot, what: &'static str, error: &CallError) {
        self.instance = None;
        self.identity.counters.set_state(GuestState::Loading);
        if let CallError::DiskLate(_) = error {
            tracing::warn!(guest = &*self.identity.name, call = what, "a call was given up: {error}");
            self.try_start(slot, Occasion::Replaced);
            return;
        }
        let verdict = if blame == Blame::Guest {
            self.judge(what, error)
        } else {
            log_failure(&self.identity, what, error);
            Verdict::Replace
        };
        if verdict == Verdict::Replace {
            self.try_start(slot, Occasion::Replaced);
        }
    }

    /// Starts an instance; a failure is judged like any other. Where only the saved state is at fault there is an
    /// instance without it at once, so that nobody waits for a guest that can run.
    fn try_start(&mut self, slot: &mut StageSlot, occasion: Occasion) {
        let had_state = self.saved.is_some();
        if let Err((what, error)) = self.start_instance(slot, occasion) {
            if matches!(error, CallError::Unkept | CallError::DiskLate(_)) {
                return;
            }
            let verdict = self.judge(what, &error);
            let lost_state = had_state && self.saved.is_none();
            if lost_state && verdict == Verdict::Replace {
                self.try_start(slot, occasion);
            }
        }
    }

    /// Logs and counts a failure; one too many disables the guest, or brings back the code that ran before.
    fn judge(&mut self, what: &'static str, error: &CallError) -> Verdict {
        log_failure(&self.identity, what, error);
        let now = self.engine.clock().now();
        if let Some(before) = Probation::failed(&mut self.probation, now, matches!(error, CallError::Deadline { .. })) {
            self.go_back(before, format!("{what}: {error}"));
            return Verdict::Replace;
        }
        let verdict = self.supervisor.failed(now);
        if verdict == Verdict::Disable {
            self.identity.disable();
        }
        verdict
    }

    /// A fresh instance with `init` and, where there is a saved state, `restore`. An error comes with the call.
    fn start_instance(&mut self, slot: &mut StageSlot, occasion: Occasion) -> Result<(), (&'static str, CallError)> {
        let in_init = |error| ("init", error);
        let limit = self.identity.limits.init_deadline();
        let Some(code) = &self.code else { return Ok(()) };
        self.instances += 1;
        let mut instance = Instance::new(&self.engine, code, &self.identity, self.instances, limit).map_err(in_init)?;
        transaction(&mut instance, slot, "init", limit, |bindings, store| {
            C::init(bindings, store, &self.config, occasion)
        })
        .map_err(in_init)?;
        // What `init` did stands, so the next instance must not do it again.
        self.first_occasion = None;
        if let Some(state) = &self.saved {
            let restored = transaction(&mut instance, slot, "restore", limit, |bindings, store| {
                C::restore(bindings, store, state)
            });
            if let Err(CallError::Refused(reason)) = restored {
                let guest = &*self.identity.name;
                tracing::warn!(guest, reason, "the guest refused its saved state and begins without it");
            } else if let Err(error @ (CallError::Unkept | CallError::DiskLate(_))) = restored {
                return Err(("restore", error));
            } else if let Err(error) = restored {
                // The state is what breaks it: the next instance begins without.
                self.saved = None;
                return Err(("restore", error));
            }
        }
        self.instance = Some(instance);
        self.identity.counters.set_state(GuestState::Running);
        Ok(())
    }

    /// Asks the guest for its state and keeps it for the next instance. Answers it for whoever stores it.
    pub fn save(&mut self, slot: &mut StageSlot) -> Option<SavedState> {
        let limit = self.identity.limits.max_payload_bytes();
        let saved = self.call(slot, "save", |bindings, store| {
            let state = C::save(bindings, store)?;
            if state.len() > limit {
                wasmtime::bail!("the saved state has {} bytes; guest.max_payload_kb allows {limit}", state.len());
            }
            Ok(Ok(state))
        });
        if let Ok(state) = saved {
            self.saved = Some(state).filter(|state| !state.is_empty()).map(Arc::new);
        }
        self.saved.clone()
    }
}

/// One call, as a transaction where the guest may change the world.
fn transaction<B, R>(
    instance: &mut Instance<B>,
    slot: &mut StageSlot,
    what: &'static str,
    limit: Duration,
    call: impl FnOnce(&B, &mut Store<InstanceState>) -> wasmtime::Result<Result<R, String>>,
) -> Result<R, CallError> {
    atomically(instance, slot, |instance, slot| instance.call(slot, what, limit, call)?.map_err(CallError::refused))
}

/// Calls of one instance, as one transaction where the guest may change the world.
pub(super) fn atomically<B, R>(
    instance: &mut Instance<B>,
    slot: &mut StageSlot,
    calls: impl FnOnce(&mut Instance<B>, &mut StageSlot) -> Result<R, CallError>,
) -> Result<R, CallError> {
    if !instance.writes() {
        return calls(instance, slot);
    }
    if let Some(stage) = slot {
        stage.begin();
    }
    let result = calls(instance, slot);
    if let Some(stage) = slot {
        match &result {
            Ok(_) if stage.commit().is_err() => return Err(CallError::Unkept),
            Ok(_) => {}
            Err(_) => stage.rollback(),
        }
    }
    result
}

/// Counts and logs that a handler refused. It may be the players' doing and happen often, so it is told at each doubling.
pub(crate) fn note_refusal(identity: &Identity, what: &'static str, reason: &str) {
    let times = identity.counters.refused.fetch_add(1, Ordering::Relaxed) + 1;
    if times.is_power_of_two() {
        tracing::warn!(guest = &*identity.name, call = what, reason, times, "a handler refused");
    }
}

/// Counts and logs a failure: who, which call and why on the first line, where the guest was below. It takes a place among
/// the guest's own lines.
pub(crate) fn log_failure(identity: &Identity, what: &'static str, error: &CallError) {
    identity.counters.failures.fetch_add(1, Ordering::Relaxed);
    if !identity.log.has_room() {
        return;
    }
    let backtrace = Some(error.backtrace().trim_end()).filter(|backtrace| !backtrace.is_empty());
    let backtrace = backtrace.map(|backtrace| tracing::field::display(format!("\n{backtrace}")));
    tracing::error!(guest = &*identity.name, call = what, backtrace, "a call failed: {error}");
}
