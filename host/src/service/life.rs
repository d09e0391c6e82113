//! The life of one service, from its launch to the last thing that is heard of it: whatever way it ends, everybody who
//! waits for it is told, its memory is given back, and it is started again where its guest is to be.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use wasmtime::Store;

use super::code::ServiceCode;
use super::handle::Handle;
use super::member::Member;
use super::message::{Message, ServiceError};
use super::service_guest::ServiceGuest;
use super::services::Services;
use super::state::ServiceState;
use super::{concurrent, plain};
use crate::guest::CallError;
use crate::guest::resident::log_failure;
use crate::guest::settings::RestartPolicy;

/// Pauses between restarts grow up to this many times the first.
const LONGEST_PAUSE: u32 = 100;

/// How a service ended.
#[derive(Debug)]
pub(super) enum End {
    /// It asked for it.
    Exited,
    /// Somebody else did.
    Killed,
    /// Its `init` answered with an error.
    Refused(String),
    /// A call of it failed.
    Failed(&'static str, CallError),
    /// The host failed while it ran it.
    Panicked,
}

/// What a service has inherited from those before it that it was started in place of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lineage {
    /// How many ended one soon after the other.
    restarts: u32,
}

/// Starts a service under a handle that nobody has.
pub(super) fn launch(
    services: &Services,
    handle: Handle,
    guest: &Arc<ServiceGuest>,
    arguments: Bytes,
    lineage: Lineage,
) -> Result<Arc<Member>, ServiceError> {
    let member = services.enter(handle, &guest.identity.name)?;
    let life = live(services.clone(), Arc::clone(&member), Arc::clone(guest), arguments, lineage);
    services.runtime().spawn(life);
    Ok(member)
}

async fn live(services: Services, member: Arc<Member>, guest: Arc<ServiceGuest>, arguments: Bytes, lineage: Lineage) {
    let began = guest.engine.clock().now();
    let mut inbox = VecDeque::new();
    let instance = live_in_instance(&services, &member, &guest, &arguments, &mut inbox);
    // A panic is a fault of the host; but nobody shall wait for what does not run any more.
    let (end, why) = AssertUnwindSafe(instance).catch_unwind().await.unwrap_or_else(|_| {
        let why = tell(&End::Panicked, &member, &guest);
        (End::Panicked, why)
    });
    services.remove(&member, inbox, &why);
    let ran_for = guest.engine.clock().now() - began;
    after(&services, &member, &guest, arguments, lineage.continued_after(ran_for, &guest), &end);
    services.leave(end.is_failure());
}

/// Its life from the making of its instance to the end of that: how it ended, and what others are told of it.
async fn live_in_instance(
    services: &Services,
    member: &Arc<Member>,
    guest: &Arc<ServiceGuest>,
    arguments: &Bytes,
    inbox: &mut VecDeque<Message>,
) -> (End, ServiceError) {
    let engine = match guest.code {
        ServiceCode::Concurrent(_) => guest.engine.concurrent(),
        ServiceCode::Plain(_) => guest.engine.plain(),
    };
    let mut store = ServiceState::store(engine, services, member, guest, guest.next_number());
    let end = run(&mut store, inbox, member, guest, arguments).await;
    let why = tell(&end, member, guest);
    store.data_mut().in_hand.fail_all(&why);
    (end, why)
}

/// Runs it to its end, measured, and so that it can be killed and pre-empted.
async fn run(
    store: &mut Store<ServiceState>,
    inbox: &mut VecDeque<Message>,
    member: &Member,
    guest: &ServiceGuest,
    arguments: &Bytes,
) -> End {
    let mut life = pin!(async {
        tokio::select! {
            biased;
            () = member.until_killed() => End::Killed,
            end = handle_messages(store, inbox, guest, arguments) => end,
        }
    });
    poll_fn(|context| {
        let ticking = guest.engine.tick();
        let began = guest.engine.clock().now();
        member.turns.fetch_add(1, Ordering::Relaxed);
        let polled = life.as_mut().poll(context);
        let used = guest.engine.clock().now() - began;
        member.used_ns.fetch_add(used.as_nanos() as u64, Ordering::Relaxed);
        drop(ticking);
        polled
    })
    .await
}

async fn handle_messages(
    store: &mut Store<ServiceState>,
    inbox: &mut VecDeque<Message>,
    guest: &ServiceGuest,
    arguments: &Bytes,
) -> End {
    match &guest.code {
        ServiceCode::Plain(code) => plain::run(code, store, inbox, arguments).await,
        ServiceCode::Concurrent(code) => concurrent::run(code, store, inbox, arguments).await,
    }
}

/// Logs and counts how it ended, and says what those are answered who wait for it.
fn tell(end: &End, member: &Member, guest: &ServiceGuest) -> ServiceError {
    let title = member.title();
    match end {
        End::Exited => ServiceError::Gone(format!("{title} has exited")),
        End::Killed => ServiceError::Gone(format!("{title} was killed")),
        End::Refused(reason) => {
            guest.identity.counters.failures.fetch_add(1, Ordering::Relaxed);
            tracing::error!(guest = guest.name(), handle = member.handle.0, "a service refused to start: {reason}");
            ServiceError::Failed(format!("{title} refused to start: {reason}"))
        }
        End::Failed(what, error) => {
            log_failure(&guest.identity, what, error);
            ServiceError::Failed(format!("{title}: {error}"))
        }
        End::Panicked => {
            guest.identity.counters.failures.fetch_add(1, Ordering::Relaxed);
            tracing::error!(
                guest = guest.name(),
                handle = member.handle.0,
                "a service is ended: the host itself failed while it ran it; please report this with the lines above"
            );
            ServiceError::Failed(format!("{title}: the host failed while it ran it"))
        }
    }
}

/// Starts it again after a pause, or lets its names go.
fn after(
    services: &Services,
    member: &Arc<Member>,
    guest: &Arc<ServiceGuest>,
    arguments: Bytes,
    lineage: Lineage,
    end: &End,
) {
    let is_wanted = match guest.restart {
        RestartPolicy::Never => false,
        RestartPolicy::OnFailure => end.is_failure(),
        RestartPolicy::Always => true,
    };
    let names = &services.shared.names;
    if !is_wanted || services.is_stopping() {
        names.remove(member.handle);
        return;
    }
    let limit = services.options().max_restarts;
    if lineage.restarts >= limit {
        tracing::error!(
            guest = guest.name(),
            "a service is given up: it ended {limit} times in a row; mend the guest, or raise service.max_restarts"
        );
        names.remove(member.handle);
        return;
    }
    names.hold(member.handle);
    let pause = services.options().restart_pause() * 2u32.saturating_pow(lineage.restarts).min(LONGEST_PAUSE);
    let next = Lineage { restarts: lineage.restarts + 1 };
    let (services, guest, before) = (services.clone(), Arc::clone(guest), member.handle);
    services.runtime().clone().spawn(async move {
        start_again_after(pause, &services, &guest, arguments, next, before).await;
    });
}

/// Starts a service in place of the one with the handle `before`, after a pause; where the host is full, after another.
async fn start_again_after(
    pause: Duration,
    services: &Services,
    guest: &Arc<ServiceGuest>,
    arguments: Bytes,
    lineage: Lineage,
    before: Handle,
) {
    let names = &services.shared.names;
    let handle = services.new_handle();
    let mut is_told = false;
    loop {
        tokio::time::sleep(pause).await;
        // It has its names before it runs: its own `init` may ask for them.
        names.pass_on(before, handle);
        let error = match launch(services, handle, guest, arguments.clone(), lineage) {
            Ok(_) => {
                break tracing::info!(
                    guest = guest.name(),
                    handle = handle.0,
                    before = before.0,
                    "a service was restarted"
                );
            }
            Err(error) => error,
        };
        if services.is_stopping() {
            return names.remove(handle);
        }
        names.pass_on(handle, before);
        names.hold(before);
        if !std::mem::replace(&mut is_told, true) {
            let why = super::services::describe(&error);
            tracing::warn!(guest = guest.name(), "a service has to wait until it is started again: {why}");
        }
    }
}

impl End {
    fn is_failure(&self) -> bool {
        matches!(self, End::Refused(_) | End::Failed(..) | End::Panicked)
    }
}

impl Lineage {
    /// A service that ran for long enough begins a new one.
    fn continued_after(self, ran_for: Duration, guest: &ServiceGuest) -> Self {
        if ran_for >= guest.identity.limits.failure_window() { Self::default() } else { self }
    }
}
