//! How an async service handles its messages: each as a call of its own, of which several wait at a time. Between two
//! waits one of them runs alone, since all run in one instance.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use wasmtime::Store;
use wasmtime::component::Accessor;

use super::handle::Handle;
use super::life::End;
use super::member::Member;
use super::message::Message;
use super::state::ServiceState;
use crate::guest::CallError;
use crate::guest::contract::async_service::{AsyncService, AsyncServicePre};
use crate::guest::contract::sim;

/// Messages taken out of the mailbox at a time.
const INBOX: usize = 64;

/// Runs a service from its first call to its last. What it has taken out of its mailbox and not begun to handle stays in
/// `inbox`.
pub(super) async fn run(
    code: &AsyncServicePre<ServiceState>,
    store: &mut Store<ServiceState>,
    inbox: &mut VecDeque<Message>,
    arguments: &Bytes,
) -> End {
    let limit = store.data().services.options().deadline();
    store.data_mut().allow(limit);
    let failed = |what, error| End::Failed(what, CallError::from_wasmtime(error, limit));
    let exports = match code.instantiate_async(&mut *store).await {
        Ok(exports) => exports,
        Err(error) => return failed("init", error),
    };
    let guest = Arc::clone(&store.data().guest);
    let (config, arguments) = (guest.config.clone(), arguments.to_vec());
    let started = store.run_concurrent(async |accessor| exports.call_init(accessor, config, arguments).await).await;
    match started.flatten() {
        Err(error) => return failed("init", error),
        Ok(Err(reason)) => return End::Refused(reason),
        Ok(Ok(())) => {}
    }
    let (member, max_in_hand) = (Arc::clone(&store.data().member), store.data().services.options().max_in_hand);
    let actor = Actor { exports: &exports, member: &member, limit, max_in_hand };
    let ended = store.run_concurrent(async |accessor| actor.handle_all(accessor, inbox).await).await;
    match ended.flatten() {
        Ok(()) => End::Exited,
        Err(error) => failed("handle", error),
    }
}

struct Actor<'a> {
    exports: &'a AsyncService,
    member: &'a Member,
    /// What a message may compute.
    limit: Duration,
    max_in_hand: usize,
}

/// What comes next.
enum Next {
    Message(Message),
    Handled(wasmtime::Result<()>),
}

impl Actor<'_> {
    async fn handle_all(
        &self,
        accessor: &Accessor<ServiceState>,
        inbox: &mut VecDeque<Message>,
    ) -> wasmtime::Result<()> {
        let mut in_hand = FuturesUnordered::new();
        while !accessor.with(|mut access| access.get().exits) {
            if in_hand.len() >= self.max_in_hand {
                accessor.with(|mut access| access.get().timeouts.release_marks());
            }
            match poll_fn(|context| self.poll_next(context, inbox, &mut in_hand)).await {
                Next::Message(message) => {
                    if let Some(taken) = accessor.with(|mut access| access.get().take_up(message, self.limit)) {
                        in_hand.push(self.handle(accessor, taken));
                    }
                }
                Next::Handled(handled) => handled?,
            }
            self.member.in_hand.store(in_hand.len(), Ordering::Relaxed);
        }
        // What it has in hand comes to its end.
        while let Some(handled) = in_hand.next().await {
            handled?;
        }
        Ok(())
    }

    /// What has been handled goes first; then a message, unless as many are in hand as may be.
    fn poll_next<F: Future<Output = wasmtime::Result<()>>>(
        &self,
        context: &mut Context<'_>,
        inbox: &mut VecDeque<Message>,
        in_hand: &mut FuturesUnordered<F>,
    ) -> Poll<Next> {
        if let Poll::Ready(Some(handled)) = in_hand.poll_next_unpin(context) {
            return Poll::Ready(Next::Handled(handled));
        }
        if in_hand.len() >= self.max_in_hand {
            return Poll::Pending;
        }
        if inbox.is_empty() && self.member.mailbox.poll_take(context, inbox, INBOX).is_pending() {
            return Poll::Pending;
        }
        match inbox.pop_front() {
            Some(message) => Poll::Ready(Next::Message(message)),
            None => Poll::Pending,
        }
    }

    async fn handle(&self, accessor: &Accessor<ServiceState>, message: sim::services::Message) -> wasmtime::Result<()> {
        let (source, subject, session) = (Handle(message.source), message.subject, message.session);
        let result = self.exports.call_handle(accessor, message).await?;
        accessor.with(|mut access| {
            let state = access.get();
            state.finish(source, subject, session, result);
            state.allow(self.limit);
        });
        Ok(())
    }
}
