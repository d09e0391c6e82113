//! What a service is while it lives: an instance of one version of its guest's code, plain or async, with the store around
//! it. It is started anew or with a state, handles messages, and moves to another version between two of them, with
//! everything but its memory: what it has in hand, its timeouts, its sockets.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use wasmtime::Store;

use super::code::ServiceCode;
use super::concurrent::Concurrent;
use super::former::{Former, Kept};
use super::life::{End, Left};
use super::member::Member;
use super::message::{Message, ServiceError};
use super::orders::Move;
use super::plain::Plain;
use super::service_guest::{ServiceGuest, Version};
use super::services::Services;
use super::state::ServiceState;
use crate::guest::CallError;

/// How long a call of `save` or `restore` may take by the clock: it may compute as long as a message may, and wait a little
/// for its turn.
const LONGEST_CALL: Duration = Duration::from_secs(10);

/// Who a service is and what it was launched with.
#[derive(Clone)]
pub(super) struct Who {
    pub services: Services,
    pub member: Arc<Member>,
    pub guest: Arc<ServiceGuest>,
    pub arguments: Bytes,
}

/// A running instance.
pub(super) struct Body {
    store: Store<ServiceState>,
    exports: Exports,
    version: Arc<Version>,
    /// What it was before, while its code has to prove itself.
    before: Option<Kept>,
}

enum Exports {
    Plain(Plain),
    Concurrent(Concurrent),
}

impl Body {
    /// Starts a service anew.
    pub async fn start(who: &Who, version: Arc<Version>) -> Result<Self, End> {
        let mut body = Self::make(who, version).await.map_err(|error| End::Failed("init", error))?;
        body.init(who).await.map(|()| body)
    }

    /// An instance that no call has been made to.
    async fn make(who: &Who, version: Arc<Version>) -> Result<Self, CallError> {
        let Who { services, member, guest, .. } = who;
        let engine = match version.code {
            ServiceCode::Concurrent(_) => guest.engine.concurrent(),
            ServiceCode::Plain(_) => guest.engine.plain(),
        };
        let mut store = ServiceState::store(engine, services, member, guest, guest.next_number());
        let limit = services.options().deadline();
        store.data_mut().allow(limit);
        let made = match &version.code {
            ServiceCode::Plain(code) => Plain::make(code, &mut store).await.map(Exports::Plain),
            ServiceCode::Concurrent(code) => Concurrent::make(code, &mut store).await.map(Exports::Concurrent),
        };
        let exports = made.map_err(|error| CallError::from_wasmtime(error, limit))?;
        Ok(Self { store, exports, version, before: None })
    }

    async fn init(&mut self, who: &Who) -> Result<(), End> {
        let limit = self.allow();
        let (config, arguments) = (&who.guest.config, &who.arguments);
        let started = match &self.exports {
            Exports::Plain(plain) => plain.init(&mut self.store, config, arguments).await,
            Exports::Concurrent(concurrent) => concurrent.init(&mut self.store, config, arguments).await,
        };
        match started {
            Ok(Ok(())) => Ok(()),
            Ok(Err(reason)) => Err(End::Refused(reason)),
            Err(error) => Err(End::Failed("init", CallError::from_wasmtime(error, limit))),
        }
    }

    /// Its state as bytes, empty where there is nothing to carry.
    pub async fn save(&mut self) -> Result<Vec<u8>, CallError> {
        let limit = self.allow();
        let state = in_time(limit, async {
            match &self.exports {
                Exports::Plain(plain) => plain.save(&mut self.store).await,
                Exports::Concurrent(concurrent) => concurrent.save(&mut self.store).await,
            }
        });
        let state = state.await?;
        let most = self.store.data().services.max_payload_bytes();
        if state.len() > most {
            let reason = format!("the state has {} bytes, and guest.max_payload_kb allows {most}", state.len());
            return Err(CallError::Refused(reason));
        }
        Ok(state)
    }

    async fn restore(&mut self, state: &[u8]) -> Result<(), CallError> {
        let limit = self.allow();
        let restored = in_time(limit, async {
            match &self.exports {
                Exports::Plain(plain) => plain.restore(&mut self.store, state).await,
                Exports::Concurrent(concurrent) => concurrent.restore(&mut self.store, state).await,
            }
        });
        restored.await?.map_err(CallError::refused)
    }

    /// Lets the next call compute as long as a message may.
    fn allow(&mut self) -> Duration {
        let limit = self.store.data().services.options().deadline();
        self.store.data_mut().allow(limit);
        limit
    }

    /// Handles messages until it ends, or is to do something else.
    pub async fn handle_messages(&mut self, inbox: &mut VecDeque<Message>) -> Left {
        match &mut self.exports {
            Exports::Plain(plain) => plain.handle_all(&mut self.store, inbox, self.before.as_ref()).await,
            Exports::Concurrent(concurrent) => concurrent.handle_all(&mut self.store, inbox).await,
        }
    }

    /// The version of its code.
    pub fn version(&self) -> &Arc<Version> {
        &self.version
    }

    /// Moves to another version, if that takes its state over; else it stays as it is, and the reason is answered. An
    /// instance that fails as it is asked for its state cannot stay: the other version then begins with what is known of it.
    pub async fn move_to(&mut self, who: &Who, order: &Move) -> Result<(), Stays> {
        if Arc::ptr_eq(&self.version, &order.to) {
            // It was launched meanwhile.
            return Ok(());
        }
        let known = self.before.as_ref().and_then(Kept::get);
        let known = known.filter(|former| former.version.generation == order.to.generation);
        let state = match self.save().await {
            Ok(state) => state,
            Err(error) if error.keeps_instance() => return Err(Stays::As(error)),
            Err(error) => {
                let end = End::Failed("save", error);
                let state = known.as_ref().map(|former| &former.state[..]).unwrap_or_default();
                return self.become_one(who, &order.to, state).await.map_err(|_| Stays::CanNot(end));
            }
        };
        let from = Arc::clone(&self.version);
        let moved = match (self.become_one(who, &order.to, &state).await, &known) {
            // It does not understand what the newer code saved, but what it saved itself when it was replaced.
            (Err(CallError::Refused(_)), Some(former)) => self.become_one(who, &order.to, &former.state).await,
            (moved, _) => moved,
        };
        moved.map_err(Stays::As)?;
        self.before = order.on_probation.then(|| {
            let deferred = self.store.data().in_hand.deferred();
            let former = Former { version: from, state, deferred };
            Kept::for_a_time(former, who.services.swap_options().probation(), who.services.runtime())
        });
        Ok(())
    }

    /// Goes back to the code that it was moved from, where that is still kept: what it has in hand is answered with `why`,
    /// and its memory is as it was then. False where there is none.
    pub async fn go_back(&mut self, who: &Who, why: &ServiceError) -> bool {
        let Some(former) = self.before.take().and_then(|before| before.get()) else { return false };
        self.store.data_mut().in_hand.fail_but(&former.deferred, why);
        self.become_one(who, &former.version, &former.state).await.is_ok()
    }

    /// Puts an instance of that version in place of the one there is, with that state, or begun anew where that is empty.
    async fn become_one(&mut self, who: &Who, version: &Arc<Version>, state: &[u8]) -> Result<(), CallError> {
        let _place = who.services.shared.spare_places.acquire().await;
        let mut other = Self::make(who, Arc::clone(version)).await?;
        self.store.data_mut().hand_on(other.store.data_mut());
        let begun = if state.is_empty() {
            other.init(who).await.map_err(|end| match end {
                End::Refused(reason) => CallError::refused(reason),
                End::Failed(_, error) => error,
                End::Exited | End::Killed | End::Panicked => CallError::NotRunning,
            })
        } else {
            other.restore(state).await
        };
        match begun {
            Ok(()) => {
                self.store = other.store;
                self.exports = other.exports;
                self.version = other.version;
                Ok(())
            }
            Err(error) => {
                other.store.data_mut().hand_on(self.store.data_mut());
                Err(error)
            }
        }
    }

    /// Whether that version takes a state over, or, without one, can be made an instance of. Of a service that nobody
    /// knows.
    pub async fn try_out(who: &Who, version: Arc<Version>, state: Option<&[u8]>) -> Result<(), CallError> {
        let mut trial = Self::make(who, version).await?;
        match state {
            Some(state) => trial.restore(state).await,
            None => Ok(()),
        }
    }

    /// Answers everything that it has in hand with an error.
    pub fn fail_all(&mut self, why: &ServiceError) {
        self.store.data_mut().in_hand.fail_all(why);
    }
}

/// Waits for a call that may compute for `limit`, and not for ever.
async fn in_time<T>(limit: Duration, call: impl Future<Output = wasmtime::Result<T>>) -> Result<T, CallError> {
    match tokio::time::timeout(limit + LONGEST_CALL, call).await {
        Ok(returned) => returned.map_err(|error| CallError::from_wasmtime(error, limit)),
        Err(_) => {
            Err(CallError::Deadline { limit_ms: (limit + LONGEST_CALL).as_millis() as u64, backtrace: String::new() })
        }
    }
}

/// Why a service has not moved.
pub(super) enum Stays {
    /// It goes on as it was.
    As(CallError),
    /// It cannot go on either: it failed as it was asked for its state.
    CanNot(End),
}
