//! A guest of kind `service`: its code, which may be swapped, and how its services are started and started again. One for
//! all its services.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::code::ServiceCode;
use super::engine::ServiceEngine;
use crate::guest::settings::RestartPolicy;
use crate::guest::{GuestSettings, GuestState, Identity, Probation, Returned, SwapOptions};

/// A guest that services can be launched of.
pub struct ServiceGuest {
    pub(super) identity: Arc<Identity>,
    pub(super) engine: ServiceEngine,
    /// The guest's own table of the configuration.
    pub(super) config: String,
    pub(super) restart: RestartPolicy,
    /// The hosts and ports that it may connect to.
    pub(super) sockets: Vec<String>,
    /// Services launched so far.
    launched: AtomicU64,
    code: Mutex<Code>,
    /// Had by whoever moves its services to other code.
    pub(super) turn: tokio::sync::Mutex<()>,
}

/// One version of a guest's code.
pub(super) struct Version {
    pub code: ServiceCode,
    pub generation: u64,
}

impl fmt::Debug for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "generation {}", self.generation)
    }
}

/// What is launched, and what was before.
pub(super) struct Code {
    /// What is launched. None where the guest's file was refused.
    current: Option<Arc<Version>>,
    /// The generation before it.
    before: Option<u64>,
    probation: Option<Probation<Arc<Version>>>,
}

impl ServiceGuest {
    /// A guest as it is configured, with its code, if its file could be run.
    pub fn new(
        engine: ServiceEngine,
        identity: Arc<Identity>,
        code: Option<ServiceCode>,
        settings: &GuestSettings,
    ) -> Self {
        let generation = identity.counters.generation();
        let current = code.map(|code| Arc::new(Version { code, generation }));
        Self {
            identity,
            engine,
            config: settings.config_json(),
            restart: settings.restart,
            sockets: settings.sockets.clone(),
            launched: AtomicU64::new(0),
            code: Mutex::new(Code { current, before: None, probation: None }),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.identity.name
    }

    /// The number of the next service, counted from 1.
    pub(super) fn next_number(&self) -> u64 {
        self.launched.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The code that is launched.
    pub(super) fn current(&self) -> Option<Arc<Version>> {
        self.lock().current.clone()
    }

    /// Whether that is the code that is launched.
    pub(super) fn is_current(&self, version: &Arc<Version>) -> bool {
        self.lock().current.as_ref().is_some_and(|current| Arc::ptr_eq(current, version))
    }

    /// Whether that generation is the one before the code that is launched, which is on probation: its services then know
    /// what they were.
    pub(super) fn is_kept_before(&self, generation: u64) -> bool {
        let code = self.lock();
        code.before == Some(generation) && Probation::is_on(code.probation.as_ref(), self.engine.clock().now())
    }

    /// Has other code be launched from here on, on probation where there was some before. Answers what was before.
    pub(super) fn begin(&self, version: &Arc<Version>, options: &SwapOptions) -> Code {
        let now = self.engine.clock().now();
        let mut code = self.lock();
        let before = code.current.clone();
        let begun = Code {
            current: Some(Arc::clone(version)),
            before: before.as_ref().map(|before| before.generation),
            probation: before.map(|before| Probation::new(options, now, before)),
        };
        self.identity.counters.set_generation(version.generation);
        self.identity.counters.set_state(GuestState::Running);
        std::mem::replace(&mut *code, begun)
    }

    /// Has what was before be launched again, since no service took that version; false where that is gone already.
    pub(super) fn take_back(&self, version: &Arc<Version>, before: Code) -> bool {
        let mut code = self.lock();
        if !code.current.as_ref().is_some_and(|current| Arc::ptr_eq(current, version)) {
            return false;
        }
        if let Some(version) = &before.current {
            self.identity.counters.set_generation(version.generation);
        }
        *code = before;
        true
    }

    /// A service has failed on that code. Where it was one failure too many in its probation the code before it is
    /// launched again from here on: it, and what is to be told of that.
    pub(super) fn failed(&self, on: &Arc<Version>, reason: &str) -> Option<(Arc<Version>, Returned)> {
        let mut code = self.lock();
        if !code.current.as_ref().is_some_and(|current| Arc::ptr_eq(current, on)) {
            return None;
        }
        let before = Probation::failed(&mut code.probation, self.engine.clock().now(), false)?;
        code.current = Some(Arc::clone(&before));
        self.identity.counters.set_generation(before.generation);
        let returned = Returned { from: on.generation, to: before.generation, reason: reason.to_owned() };
        returned.log(self.name());
        Some((before, returned))
    }

    fn lock(&self) -> MutexGuard<'_, Code> {
        // What it guards is whole between any two statements.
        self.code.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
