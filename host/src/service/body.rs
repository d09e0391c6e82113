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
use super::life::{End, Left};
use super::member::Member;
use super::message::{Message, ServiceError};
use super::orders::Move;
use super::plain::Plain;
use super::service_guest::{ServiceGuest, Version};
use super::services::Services;
use super::state::ServiceState;
use crate::guest::CallError;

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
    before: Option<Before>,
}

enum Exports {
    Plain(Plain),
    Concurrent(Concurrent),
}

/// What a service goes back to when new code fails.
struct Before {
    version: Arc<Version>,
    state: Vec<u8>,
    /// The sessions that it had deferred, which its state knows.
    deferred: Vec<u64>,
    until: Duration,
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
        let saved = match &self.exports {
            Exports::Plain(plain) => plain.save(&mut self.store).await,
            Exports::Concurrent(concurrent) => concurrent.save(&mut self.store).await,
        };
        let state = saved.map_err(|error| CallError::from_wasmtime(error, limit))?;
        let most = self.store.data().services.max_payload_bytes();
        if state.len() > most {
            let reason = format!("the state has {} bytes, and guest.max_payload_kb allows {most}", state.len());
            return Err(CallError::Refused(reason));
        }
        Ok(state)
    }

    async fn restore(&mut self, state: &[u8]) -> Result<(), CallError> {
        let limit = self.allow();
        let restored = match &self.exports {
            Exports::Plain(plain) => plain.restore(&mut self.store, state).await,
            Exports::Concurrent(concurrent) => concurrent.restore(&mut self.store, state).await,
        };
        restored.map_err(|error| CallError::from_wasmtime(error, limit))?.map_err(CallError::refused)
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
            Exports::Plain(plain) => plain.handle_all(&mut self.store, inbox).await,
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
        let known = self.before.take_if(|before| Arc::ptr_eq(&before.version, &order.to));
        let state = match self.save().await {
            Ok(state) => state,
            Err(error) if error.keeps_instance() => return Err(Stays::As(error)),
            Err(error) => {
                let end = End::Failed("save", error);
                let state = known.map(|before| before.state).unwrap_or_default();
                return self.become_one(who, Arc::clone(&order.to), &state).await.map_err(|_| Stays::CanNot(end));
            }
        };
        let moved = match self.become_one(who, Arc::clone(&order.to), &state).await {
            // It does not understand what the newer code saved, but what it saved itself when it was replaced.
            Err(CallError::Refused(reason)) => match &known {
                Some(before) => self.become_one(who, Arc::clone(&order.to), &before.state).await,
                None => Err(CallError::Refused(reason)),
            },
            moved => moved,
        };
        let from = std::mem::replace(&mut self.version, Arc::clone(&order.to));
        match moved {
            Ok(()) if order.on_probation => {
                let until = who.guest.engine.clock().now() + who.services.swap_options().probation();
                let deferred = self.store.data().in_hand.deferred();
                self.before = Some(Before { version: from, state, deferred, until });
                Ok(())
            }
            Ok(()) => Ok(()),
            Err(error) => {
                self.version = from;
                self.before = known.or(self.before.take());
                Err(Stays::As(error))
            }
        }
    }

    /// Goes back to the code that it was moved from, where that is still kept: what it has in hand is answered with `why`,
    /// and its memory is as it was then. False where there is none.
    pub async fn go_back(&mut self, who: &Who, why: &ServiceError) -> bool {
        let now = who.guest.engine.clock().now();
        let Some(Before { version, state, deferred, .. }) = self.before.take().filter(|before| now < before.until)
        else {
            return false;
        };
        self.store.data_mut().in_hand.fail_but(&deferred, why);
        let is_back = self.become_one(who, Arc::clone(&version), &state).await.is_ok();
        if is_back {
            self.version = version;
        }
        is_back
    }

    /// Puts an instance of that version in place of the one there is, with that state, or begun anew where that is empty.
    async fn become_one(&mut self, who: &Who, version: Arc<Version>, state: &[u8]) -> Result<(), CallError> {
        let mut other = Self::make(who, version).await?;
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

/// Why a service has not moved.
pub(super) enum Stays {
    /// It goes on as it was.
    As(CallError),
    /// It cannot go on either: it failed as it was asked for its state.
    CanNot(End),
}
