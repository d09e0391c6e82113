//! How an async service handles its messages: each as a call of its own, of which several wait at a time. Between two
//! waits one of them runs alone, since all run in one instance.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use wasmtime::Store;
use wasmtime::component::Accessor;

use super::handle::Handle;
use super::life::{End, Left};
use super::member::Member;
use super::message::{Message, ServiceError};
use super::state::ServiceState;
use crate::guest::CallError;
use crate::guest::contract::async_service::{AsyncService, AsyncServicePre};
use crate::guest::contract::sim;

/// Messages taken out of the mailbox at a time.
const INBOX: usize = 64;

/// How long handlers that were hurried are waited for.
const GRACE: Duration = Duration::from_secs(1);

/// An async service.
pub(super) struct Concurrent {
    exports: AsyncService,
}

impl Concurrent {
    /// Makes an instance.
    pub async fn make(code: &AsyncServicePre<ServiceState>, store: &mut Store<ServiceState>) -> wasmtime::Result<Self> {
        Ok(Self { exports: code.instantiate_async(store).await? })
    }

    /// Calls `init`.
    pub async fn init(
        &self,
        store: &mut Store<ServiceState>,
        config: &str,
        arguments: &[u8],
    ) -> wasmtime::Result<Result<(), String>> {
        let (config, arguments) = (config.to_owned(), arguments.to_vec());
        let started = store.run_concurrent(async |accessor| self.exports.call_init(accessor, config, arguments).await);
        started.await.flatten()
    }

    /// Calls `save`.
    pub async fn save(&self, store: &mut Store<ServiceState>) -> wasmtime::Result<Vec<u8>> {
        self.exports.wheelhouse_sim_lifecycle().call_save(store).await
    }

    /// Calls `restore`.
    pub async fn restore(&self, store: &mut Store<ServiceState>, state: &[u8]) -> wasmtime::Result<Result<(), String>> {
        self.exports.wheelhouse_sim_lifecycle().call_restore(store, state).await
    }

    /// Handles messages until it ends, or is given an order and has nothing in hand. What it has taken out of its mailbox
    /// and not begun to handle stays in `inbox`.
    pub async fn handle_all(&mut self, store: &mut Store<ServiceState>, inbox: &mut VecDeque<Message>) -> Left {
        let limit = store.data().services.options().deadline();
        let (member, max_in_hand) = (Arc::clone(&store.data().member), store.data().services.options().max_in_hand);
        let actor = Actor { exports: &self.exports, member: &member, limit, max_in_hand };
        let ended = store.run_concurrent(async |accessor| actor.handle_all(accessor, inbox).await).await;
        match ended.flatten() {
            Ok(left) => left,
            Err(error) => Left::End(End::Failed("handle", CallError::from_wasmtime(error, limit))),
        }
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
    /// It is to do something else.
    Order,
    Handled(wasmtime::Result<()>),
}

impl<'a> Actor<'a> {
    async fn handle_all(
        &self,
        accessor: &Accessor<ServiceState>,
        inbox: &mut VecDeque<Message>,
    ) -> wasmtime::Result<Left> {
        let mut in_hand = FuturesUnordered::new();
        let mut lateness = None;
        while !accessor.with(|mut access| access.get().exits) {
            if in_hand.len() >= self.max_in_hand {
                accessor.with(|mut access| access.get().timeouts.release_marks());
            }
            match poll_fn(|context| self.poll_next(context, inbox, &mut in_hand, &mut lateness)).await {
                Next::Message(message) => {
                    if let Some(taken) = accessor.with(|mut access| access.get().take_up(message, self.limit)) {
                        in_hand.push(self.handle(accessor, taken));
                    }
                }
                Next::Handled(handled) => handled?,
                Next::Order => {
                    // What has not ended though it was hurried is given up, and whoever waits for it is told.
                    let title = self.member.title();
                    let why = ServiceError::Failed(format!("{title} was swapped before it had answered"));
                    accessor.with(|mut access| access.get().in_hand.fail_in_hand(&why));
                    in_hand = FuturesUnordered::new();
                    self.member.in_hand.store(0, Ordering::Relaxed);
                    if let Some(order) = self.member.orders.take() {
                        return Ok(Left::Order(order));
                    }
                }
            }
            self.member.in_hand.store(in_hand.len(), Ordering::Relaxed);
        }
        // What it has in hand comes to its end.
        while let Some(handled) = in_hand.next().await {
            handled?;
        }
        Ok(Left::End(End::Exited))
    }

    /// What has been handled goes first; then a message, unless as many are in hand as may be. With an order nothing is
    /// taken up until it is withdrawn, and it is its turn when nothing is in hand, or what is has not ended in time.
    fn poll_next<F: Future<Output = wasmtime::Result<()>>>(
        &self,
        context: &mut Context<'_>,
        inbox: &mut VecDeque<Message>,
        in_hand: &mut FuturesUnordered<F>,
        lateness: &mut Option<BoxFuture<'a, ()>>,
    ) -> Poll<Next> {
        if let Poll::Ready(Some(handled)) = in_hand.poll_next_unpin(context) {
            return Poll::Ready(Next::Handled(handled));
        }
        let Member { mailbox, orders, .. } = self.member;
        if orders.poll_given(context).is_ready() {
            if in_hand.is_empty() {
                return Poll::Ready(Next::Order);
            }
            let is_late = async {
                orders.until_hurried().await;
                tokio::time::sleep(GRACE).await;
            };
            return lateness.get_or_insert_with(|| is_late.boxed()).as_mut().poll(context).map(|()| Next::Order);
        }
        *lateness = None;
        if in_hand.len() >= self.max_in_hand {
            return Poll::Pending;
        }
        if inbox.is_empty() && mailbox.poll_take(context, inbox, INBOX).is_pending() {
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
