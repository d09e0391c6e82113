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

use super::body::{Body, Stays, Who};
use super::handle::Handle;
use super::member::Member;
use super::message::{Message, ServiceError};
use super::orders::{Move, Order};
use super::service_guest::{ServiceGuest, Version};
use super::services::Services;
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

/// Why a service handles no messages for now.
pub(super) enum Left {
    End(End),
    /// It is to do something else first.
    Order(Order),
}

/// Starts a service under a handle that nobody has.
pub(super) fn launch(
    services: &Services,
    handle: Handle,
    guest: &Arc<ServiceGuest>,
    arguments: Bytes,
    lineage: Lineage,
) -> Result<Arc<Member>, ServiceError> {
    let refused = || ServiceError::Failed(format!("{} does not run: its file was refused", guest.name()));
    let before = guest.current().ok_or_else(refused)?;
    let member = services.enter(handle, &guest.identity.name)?;
    // Looked at once more: whoever swaps has found the member in the directory, or it finds the new code here.
    let version = guest.current().unwrap_or(before);
    let (services, guest) = (services.clone(), Arc::clone(guest));
    let who = Who { services, member: Arc::clone(&member), guest, arguments };
    who.services.runtime().clone().spawn(live(who, version, lineage));
    Ok(member)
}

async fn live(who: Who, version: Arc<Version>, lineage: Lineage) {
    let clock = Arc::clone(who.guest.engine.clock());
    let began = clock.now();
    let mut inbox = VecDeque::new();
    let instance = live_in_instances(&who, version, &mut inbox);
    // A panic is a fault of the host; but nobody shall wait for what does not run any more.
    let (end, why) = AssertUnwindSafe(instance).catch_unwind().await.unwrap_or_else(|_| {
        let why = tell(&End::Panicked, &who.member, &who.guest);
        (End::Panicked, why)
    });
    let Who { services, member, guest, arguments } = who;
    member.orders.close();
    services.remove(&member, inbox, &why);
    after(&services, &member, &guest, arguments, lineage.continued_after(clock.now() - began, &guest), &end);
    services.leave(end.is_failure());
}

/// Its life from the making of its first instance to the end of its last: how it ended, and what others are told of it.
async fn live_in_instances(who: &Who, version: Arc<Version>, inbox: &mut VecDeque<Message>) -> (End, ServiceError) {
    let mut body = None;
    let (end, why) = run(who, version, &mut body, inbox).await;
    let why = why.unwrap_or_else(|| tell(&end, &who.member, &who.guest));
    if let Some(body) = &mut body {
        body.fail_all(&why);
    }
    (end, why)
}

/// Runs it to its end, measured, and so that it can be killed and pre-empted.
async fn run(
    who: &Who,
    version: Arc<Version>,
    body: &mut Option<Body>,
    inbox: &mut VecDeque<Message>,
) -> (End, Option<ServiceError>) {
    let Who { member, guest, .. } = who;
    let mut life = pin!(async {
        tokio::select! {
            biased;
            () = member.until_killed() => (End::Killed, None),
            end = handle_messages(who, version, body, inbox) => end,
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

/// Handles messages, in one instance after another. What others are told of its end comes with it where that was said
/// already.
async fn handle_messages(
    who: &Who,
    version: Arc<Version>,
    body: &mut Option<Body>,
    inbox: &mut VecDeque<Message>,
) -> (End, Option<ServiceError>) {
    let body = match Body::start(who, Arc::clone(&version)).await {
        Ok(started) => body.insert(started),
        Err(end) => {
            let why = tell(&end, &who.member, &who.guest);
            note_failure(who, &version, &end);
            return (end, Some(why));
        }
    };
    who.member.orders.note_start();
    loop {
        let end = match body.handle_messages(inbox).await {
            Left::Order(Order::Show(shown)) => {
                let saved = body.save().await;
                let answer = saved.as_ref().map(Vec::clone).map_err(ToString::to_string);
                let _ = shown.send(answer);
                match saved {
                    Err(error) if !error.keeps_instance() => End::Failed("save", error),
                    _ => continue,
                }
            }
            Left::Order(Order::Move(order)) => match carry_out(who, body, order).await {
                None => continue,
                Some(end) => end,
            },
            Left::End(end) => end,
        };
        let why = tell(&end, &who.member, &who.guest);
        if end.is_failure() {
            let version = Arc::clone(body.version());
            note_failure(who, &version, &end);
            if body.go_back(who, &why).await {
                continue;
            }
        }
        return (end, Some(why));
    }
}

/// Moves to other code, and tells whoever has ordered it. `Some` where it cannot go on.
async fn carry_out(who: &Who, body: &mut Body, order: Move) -> Option<End> {
    let moved = body.move_to(who, &order).await;
    let (answer, end) = match moved {
        Ok(()) => (Ok(()), None),
        Err(Stays::As(error)) => (Err(error.to_string()), None),
        Err(Stays::CanNot(end)) => (Err(format!("it failed as it was asked for its state: {end:?}")), Some(end)),
    };
    let _ = order.done.send(answer);
    end
}

/// A failure on new code may bring the old code back, for all services of the guest.
fn note_failure(who: &Who, version: &Arc<Version>, end: &End) {
    let reason = match end {
        End::Failed(what, error) => format!("{what}: {error}"),
        End::Refused(reason) => format!("init: refused: {reason}"),
        End::Exited | End::Killed | End::Panicked => return,
    };
    if let Some((before, returned)) = who.guest.failed(version, &reason) {
        who.services.return_all(&who.guest, before, returned);
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
