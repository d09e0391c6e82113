//! How new code takes over from the old in a game or a thinker, and how the old one comes back: on the loop, between two
//! calls. Whatever fails leaves everything as it was.

use std::sync::atomic::Ordering;

use super::contract::sim::types::Occasion;
use super::counters::GuestState;
use super::failure::CallError;
use super::instance::{Instance, StageSlot};
use super::kinds::ResidentCode;
use super::probation::Probation;
use super::resident::{Resident, SavedState, atomically};
use super::swap_options::SwapOptions;
use super::trial::{Inheritance, Prepared, SwapError};

/// What ran before, for as long as what runs now is on probation.
pub(super) struct Before<C> {
    code: C,
    generation: u64,
    /// The state that was handed on.
    saved: Option<SavedState>,
}

/// The old code has come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// The generation that failed.
    pub from: u64,
    /// The one that runs again.
    pub to: u64,
    /// Its last failure.
    pub reason: String,
}

impl Returned {
    /// Tells operators.
    pub fn log(&self, guest: &str) {
        let Returned { from, to, reason } = self;
        tracing::error!(
            guest,
            from,
            to,
            "new code has failed in its probation, and the code before it runs again: {reason}"
        );
    }
}

/// New code has taken over. It is to be dropped elsewhere than on the loop: it holds the instance of the old code.
pub struct TakenOver {
    _old: Option<Box<dyn Send>>,
}

impl<C: ResidentCode> Resident<C> {
    /// What an instance of new code is to begin with: asks the one that runs for its state. Where that fails it is the
    /// state that was saved last.
    pub fn inheritance(&mut self, slot: &mut StageSlot, former: Option<SavedState>) -> Inheritance {
        let state = self.save(slot);
        self.saved_after = self.calls();
        self.instances += 1;
        Inheritance { number: self.instances, occasion: self.occasion_of_swap(), state, former }
    }

    /// Has new code take over: what the old instance saves now, the new one restores, as one transaction.
    pub fn take_over(
        &mut self,
        slot: &mut StageSlot,
        prepared: Prepared<C>,
        generation: u64,
        options: &SwapOptions,
    ) -> Result<TakenOver, SwapError>
    where
        C: 'static,
    {
        let Prepared { code, mut instance, former } = prepared;
        // Most of the time nothing has called it since its state was asked for.
        if former.is_none() && self.calls() != self.saved_after {
            self.save(slot);
        }
        let state = former.or_else(|| self.saved.clone()).filter(|state| !state.is_empty());
        self.begin(slot, &mut instance, state.as_ref().map(|state| &state[..]))?;
        let now = self.engine.clock().now();
        let old_code = self.code.replace(code);
        // Code that was given up is nothing to come back to.
        let before = old_code.filter(|_| self.identity.counters.state() != GuestState::Disabled);
        let before =
            before.map(|code| Before { code, generation: self.identity.counters.generation(), saved: state.clone() });
        self.probation = before.map(|before| Probation::new(options, now, before));
        self.supervisor = self.identity.supervisor();
        self.saved = state;
        self.first_occasion = None;
        self.identity.counters.set_generation(generation);
        self.identity.counters.set_state(GuestState::Running);
        let old = self.instance.replace(instance);
        Ok(TakenOver { _old: old.map(|old| Box::new(old) as Box<dyn Send>) })
    }

    /// `init` and `restore` of an instance that is to take over.
    fn begin(
        &self,
        slot: &mut StageSlot,
        instance: &mut Instance<C::Bindings>,
        state: Option<&[u8]>,
    ) -> Result<(), SwapError> {
        let (limit, occasion) = (self.identity.limits.init_deadline(), self.occasion_of_swap());
        let mut call = "init";
        let begun = atomically(instance, slot, |instance, slot| {
            let init = |bindings: &C::Bindings, store: &mut _| C::init(bindings, store, &self.config, occasion);
            instance.call(slot, call, limit, init)?.map_err(CallError::refused)?;
            let Some(state) = state else { return Ok(()) };
            call = "restore";
            let restore = |bindings: &C::Bindings, store: &mut _| C::restore(bindings, store, state);
            instance.call(slot, call, limit, restore)?.map_err(CallError::refused)
        });
        begun.map_err(|error| match error {
            CallError::Unkept => SwapError::Disk,
            error => SwapError::TakeOver { call, error },
        })
    }

    /// A guest that has never begun in this world begins with the new code.
    fn occasion_of_swap(&self) -> Occasion {
        match self.first_occasion {
            Some(occasion) => occasion,
            None if self.identity.counters.state() == GuestState::Disabled => Occasion::Resumed,
            None => Occasion::Swapped,
        }
    }

    /// Puts back what ran before: the code that runs has failed in its probation. It has no instance yet.
    pub(super) fn go_back(&mut self, before: Before<C>, reason: String) {
        let Before { code, generation, saved } = before;
        let counters = &self.identity.counters;
        let from = counters.generation();
        let returned = Returned { from, to: generation, reason };
        returned.log(&self.identity.name);
        counters.set_generation(generation);
        self.code = Some(code);
        self.saved = saved;
        self.supervisor = self.identity.supervisor();
        self.returned = Some(returned);
    }

    /// That the old code has come back by itself, once for each time.
    pub fn take_returned(&mut self) -> Option<Returned> {
        self.returned.take()
    }

    /// How often it was called.
    fn calls(&self) -> u64 {
        self.identity.counters.calls.load(Ordering::Relaxed)
    }
}
