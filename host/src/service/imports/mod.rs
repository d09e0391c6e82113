//! What services may import beside what all guests have, a file for each interface of the contract. All are implemented on
//! the state of a service; what they do takes effect at once. Only `calls` and `async-calls` wait.

mod actor;
mod async_calls;
mod calls;
mod gate;
mod groups;
mod services;
mod shared;
mod sockets;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use wasmtime::component::{HasSelf, Linker};

use super::handle::Handle;
use super::member::Member;
use super::message::{Message, ServiceError, Subject};
use super::state::ServiceState;
use crate::guest::Grant;
use crate::guest::component::Needs;
use crate::guest::contract::sim;
pub(super) use crate::guest::service_limits::invocation;
use crate::guest::{imports as common, shared_reads};

type OfService = HasSelf<ServiceState>;

impl sim::types::Host for ServiceState {}
impl sim::bulk::Host for ServiceState {}

/// Links what a service needs. What it imports without functions, types alone, is there in any case.
pub(super) fn link(linker: &mut Linker<ServiceState>, needs: &Needs, is_concurrent: bool) -> wasmtime::Result<()> {
    common::add_free(linker, |state| &mut state.instance)?;
    if needs.wasi {
        common::wasi::add_waiting(linker)?;
    }
    for grant in &needs.grants {
        match grant {
            Grant::Services => link_services(linker, is_concurrent)?,
            Grant::Gate => sim::gate::add_to_linker::<_, OfService>(linker, |state| state)?,
            Grant::Sockets => sim::sockets::add_to_linker::<_, OfService>(linker, |state| state)?,
            Grant::Metrics => common::add_metrics(linker, |state| &mut state.instance)?,
            // No service is admitted with these.
            Grant::Timers | Grant::Tasks | Grant::Events | Grant::Entities | Grant::Kv => {}
        }
    }
    Ok(())
}

fn link_services(linker: &mut Linker<ServiceState>, is_concurrent: bool) -> wasmtime::Result<()> {
    sim::services::add_to_linker::<_, OfService>(linker, |state| state)?;
    sim::groups::add_to_linker::<_, OfService>(linker, |state| state)?;
    sim::shared::add_to_linker::<_, OfService>(linker, |state| state)?;
    shared_reads::link_read(linker)?;
    sim::actor::add_to_linker::<_, OfService>(linker, |state| state)?;
    if is_concurrent {
        // A concurrent service may also be written against the waiting calls, which wait for it alone.
        sim::async_calls::add_to_linker::<_, OfService>(linker, |state| state)?;
    }
    sim::calls::add_to_linker::<_, OfService>(linker, |state| state)
}

/// A request that is on its way to be waited for.
struct Call {
    services: super::Services,
    member: Arc<Member>,
    to: Handle,
    answer: tokio::sync::oneshot::Receiver<super::Answer>,
    limit: Duration,
    _waiting: Waiting,
}

/// One more that waits, until it is dropped: a guest may give a call up.
struct Waiting(Arc<AtomicU32>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ServiceState {
    /// Sends a message, to whom it sent last without looking for it.
    fn send_message(&mut self, to: Handle, message: Message) -> Result<(), ServiceError> {
        if self.last_receiver.as_ref().is_none_or(|receiver| receiver.handle != to)
            && let Some(receiver) = self.services.member(to)
        {
            self.last_receiver = Some(receiver);
        }
        match self.last_receiver.as_ref().filter(|receiver| receiver.handle == to) {
            Some(receiver) => self.services.deliver_to(receiver, message),
            None => self.services.deliver_to_nobody(to, &message),
        }
    }

    /// Sends a request whose answer is waited for at most `limit_ms` milliseconds.
    fn begin_call(
        &mut self,
        to: u64,
        subject: Subject,
        payload: Bytes,
        limit_ms: Option<u32>,
    ) -> Result<Call, ServiceError> {
        let max_waiting = self.services.options().max_waiting;
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= max_waiting {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(ServiceError::TooMany(max_waiting));
        }
        let waiting = Waiting(Arc::clone(&self.waiting));
        let (to, source) = (Handle(to), self.handle());
        let answer = self.services.request(source, to, subject, payload)?;
        let limit = self.services.options().call_limit_of(limit_ms);
        Ok(Call {
            services: self.services.clone(),
            member: Arc::clone(&self.member),
            to,
            answer,
            limit,
            _waiting: waiting,
        })
    }
}

/// Lets a service rest for so long, or until it is to move to other code and is late.
async fn sleep(member: &Member, duration_ms: u32) {
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(duration_ms.into())) => {}
        () = member.orders.until_hurried() => {}
    }
}

impl Call {
    /// Waits for the answer, which is worth nothing to a service that ends meanwhile.
    ///
    /// One that is to move to other code and is late gets an error in its place, so that its handler comes to an end.
    async fn wait(self) -> super::Answer {
        tokio::select! {
            biased;
            answer = self.services.answer_within(&self.member, self.to, self.answer, self.limit) => answer,
            () = self.member.orders.until_hurried() => {
                Err(ServiceError::Failed(format!("{} is being swapped and cannot wait any longer", self.member.title())))
            }
        }
    }
}
