//! How a plain service handles its messages: one call after another, each from its beginning to its end. Where the guest
//! takes them, messages that want no answer are handed over many in a call.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use wasmtime::Store;

use super::handle::Handle;
use super::in_hand::answer_of;
use super::life::End;
use super::member::Member;
use super::message::{Message, ServiceError};
use super::state::ServiceState;
use crate::guest::CallError;
use crate::guest::contract::bulk_service::{BulkService, BulkServicePre};
use crate::guest::contract::service::{Service, ServicePre};
use crate::guest::contract::sim;
use crate::guest::resident::note_refusal;

/// Messages taken out of the mailbox at a time.
const INBOX: usize = 256;

/// How long one call of `deliver` should take at most, going by those before it: whoever waits behind the messages in it
/// waits for all of them.
const BULK_TIME: Duration = Duration::from_millis(1);

/// A call of `deliver` stands for many messages, and may compute so many times what one may.
const BULK_DEADLINES: u32 = 2;

/// The exports of a plain service.
pub(super) trait Plain: Sync {
    type Exports: Send + Sync;

    fn instantiate(
        &self,
        store: &mut Store<ServiceState>,
    ) -> impl Future<Output = wasmtime::Result<Self::Exports>> + Send;

    fn init(
        exports: &Self::Exports,
        store: &mut Store<ServiceState>,
        config: &str,
        arguments: &[u8],
    ) -> impl Future<Output = wasmtime::Result<Result<(), String>>> + Send;

    fn handle(
        exports: &Self::Exports,
        store: &mut Store<ServiceState>,
        message: &sim::services::Message,
    ) -> impl Future<Output = wasmtime::Result<Result<Vec<u8>, String>>> + Send;

    /// Hands many messages over, where the guest takes them.
    const DELIVERS: bool;

    fn deliver(
        exports: &Self::Exports,
        store: &mut Store<ServiceState>,
        heads: &[sim::bulk::Head],
        payloads: &[u8],
    ) -> impl Future<Output = wasmtime::Result<Result<u32, sim::bulk::Refusal>>> + Send;
}

impl Plain for ServicePre<ServiceState> {
    type Exports = Service;
    const DELIVERS: bool = false;

    async fn instantiate(&self, store: &mut Store<ServiceState>) -> wasmtime::Result<Service> {
        self.instantiate_async(store).await
    }

    async fn init(
        exports: &Service,
        store: &mut Store<ServiceState>,
        config: &str,
        arguments: &[u8],
    ) -> wasmtime::Result<Result<(), String>> {
        exports.call_init(store, config, arguments).await
    }

    async fn handle(
        exports: &Service,
        store: &mut Store<ServiceState>,
        message: &sim::services::Message,
    ) -> wasmtime::Result<Result<Vec<u8>, String>> {
        exports.call_handle(store, message).await
    }

    async fn deliver(
        _: &Service,
        _: &mut Store<ServiceState>,
        _: &[sim::bulk::Head],
        _: &[u8],
    ) -> wasmtime::Result<Result<u32, sim::bulk::Refusal>> {
        wasmtime::bail!("it takes its messages one by one")
    }
}

impl Plain for BulkServicePre<ServiceState> {
    type Exports = BulkService;
    const DELIVERS: bool = true;

    async fn instantiate(&self, store: &mut Store<ServiceState>) -> wasmtime::Result<BulkService> {
        self.instantiate_async(store).await
    }

    async fn init(
        exports: &BulkService,
        store: &mut Store<ServiceState>,
        config: &str,
        arguments: &[u8],
    ) -> wasmtime::Result<Result<(), String>> {
        exports.call_init(store, config, arguments).await
    }

    async fn handle(
        exports: &BulkService,
        store: &mut Store<ServiceState>,
        message: &sim::services::Message,
    ) -> wasmtime::Result<Result<Vec<u8>, String>> {
        exports.call_handle(store, message).await
    }

    async fn deliver(
        exports: &BulkService,
        store: &mut Store<ServiceState>,
        heads: &[sim::bulk::Head],
        payloads: &[u8],
    ) -> wasmtime::Result<Result<u32, sim::bulk::Refusal>> {
        exports.call_deliver(store, heads, payloads).await
    }
}

/// Runs a service from its first call to its last. What it has taken out of its mailbox and not handled stays in `inbox`.
pub(super) async fn run<P: Plain>(
    code: &P,
    store: &mut Store<ServiceState>,
    inbox: &mut VecDeque<Message>,
    arguments: &Bytes,
) -> End {
    let (member, limit) = (Arc::clone(&store.data().member), store.data().services.options().deadline());
    let mut actor = Actor { store, member, limit, turn: 0, bulk: Bulk::default() };
    match actor.live(code, inbox, arguments).await {
        Ok(end) => end,
        Err((what, error)) => End::Failed(what, CallError::from_wasmtime(error, limit)),
    }
}

/// A failure and the call that failed.
type Failure = (&'static str, wasmtime::Error);

struct Actor<'a> {
    store: &'a mut Store<ServiceState>,
    member: Arc<Member>,
    /// What one message may compute.
    limit: Duration,
    /// The turn of its task in which it was last given time.
    turn: u64,
    bulk: Bulk,
}

/// What `deliver` is called with, kept from call to call, and how many messages it should be.
#[derive(Debug)]
struct Bulk {
    heads: Vec<sim::bulk::Head>,
    payloads: Vec<u8>,
    size: usize,
}

impl Default for Bulk {
    fn default() -> Self {
        Self { heads: Vec::new(), payloads: Vec::new(), size: 1 }
    }
}

impl Actor<'_> {
    async fn live<P: Plain>(
        &mut self,
        code: &P,
        inbox: &mut VecDeque<Message>,
        arguments: &Bytes,
    ) -> Result<End, Failure> {
        self.begin_call(self.limit);
        let exports = code.instantiate(self.store).await.map_err(|error| ("init", error))?;
        let guest = Arc::clone(&self.store.data().guest);
        let started = P::init(&exports, self.store, &guest.config, arguments).await.map_err(|error| ("init", error))?;
        if let Err(reason) = started {
            return Ok(End::Refused(reason));
        }
        while !self.store.data().exits {
            if inbox.is_empty() {
                let mailbox = &self.member.mailbox;
                poll_fn(|context| mailbox.poll_take(context, inbox, INBOX)).await;
            }
            if P::DELIVERS && self.gather(inbox) > 1 {
                self.deliver::<P>(&exports, inbox).await.map_err(|error| ("deliver", error))?;
            } else if let Some(message) = inbox.pop_front() {
                self.handle::<P>(&exports, message).await.map_err(|error| ("handle", error))?;
            }
        }
        Ok(End::Exited)
    }

    /// A call begins. In each turn of its task it has one slice, however many calls there are in it.
    fn begin_call(&mut self, limit: Duration) {
        let turn = self.member.turns.load(Ordering::Relaxed);
        if turn != self.turn {
            self.turn = turn;
            self.store.set_epoch_deadline(1);
        }
        self.store.data_mut().allow(limit);
    }

    async fn handle<P: Plain>(&mut self, exports: &P::Exports, message: Message) -> wasmtime::Result<()> {
        if !self.store.data_mut().wants(&message) {
            return Ok(());
        }
        let Message { source, subject, payload, request, place } = message;
        let session = request.as_ref().map(|request| request.session);
        let message = sim::services::Message { source: source.0, session, subject, payload: Vec::from(payload) };
        self.store.data_mut().in_hand.begin(source, request);
        self.begin_call(self.limit);
        let result = P::handle(exports, self.store, &message).await?;
        drop(place);
        self.store.data_mut().finish(source, session, result);
        Ok(())
    }

    /// Puts messages that want no answer together for one call: as many as lie at the front of the inbox and should not
    /// take too long. Answers how many; they stay in the inbox until they are handled.
    fn gather(&mut self, inbox: &mut VecDeque<Message>) -> usize {
        let Bulk { heads, payloads, size } = &mut self.bulk;
        heads.clear();
        payloads.clear();
        if *size == 1 && inbox.len() == 1 {
            return 1;
        }
        let limit = self.store.data().services.max_payload_bytes();
        while heads.len() < (*size).max(2)
            && let Some(message) = inbox.get(heads.len())
            && message.request.is_none()
            && (heads.is_empty() || payloads.len() + message.payload.len() <= limit)
        {
            if !self.store.data_mut().wants(message) {
                inbox.remove(heads.len());
                continue;
            }
            payloads.extend_from_slice(&message.payload);
            let length = message.payload.len() as u32;
            heads.push(sim::bulk::Head { source: message.source.0, subject: message.subject, length });
        }
        heads.len()
    }

    async fn deliver<P: Plain>(&mut self, exports: &P::Exports, inbox: &mut VecDeque<Message>) -> wasmtime::Result<()> {
        self.begin_call(self.limit * BULK_DEADLINES);
        let count = self.bulk.heads.len();
        let in_hand = &mut self.store.data_mut().in_hand;
        self.bulk.heads.iter().for_each(|head| in_hand.begin(Handle(head.source), None));
        let clock = Arc::clone(self.store.data().guest.engine.clock());
        let began = clock.now();
        let delivered = P::deliver(exports, self.store, &self.bulk.heads, &self.bulk.payloads).await?;
        let took = clock.now() - began;
        self.bulk.size = if took * 2 <= BULK_TIME { (count * 2).min(INBOX) } else { (count / 2).max(1) };
        let state = self.store.data_mut();
        state.in_hand.forget_sources();
        let handled = match delivered {
            Ok(handled) => handled,
            Err(sim::bulk::Refusal { handled, reason }) => {
                note_refusal(&state.guest.identity, "deliver", &reason);
                handled
            }
        };
        if handled == 0 || handled as usize > count {
            wasmtime::bail!("it says that it has handled {handled} of {count} messages");
        }
        inbox.drain(..handled as usize);
        state.count_handled(u64::from(handled));
        Ok(())
    }
}

impl ServiceState {
    /// The handler of a message has returned.
    pub(super) fn finish(&mut self, source: Handle, session: Option<u64>, result: Result<Vec<u8>, String>) {
        if let Err(reason) = &result {
            note_refusal(&self.guest.identity, "handle", reason);
        }
        self.count_handled(1);
        let Some(request) = self.in_hand.end(source, session) else { return };
        let limit = self.services.max_payload_bytes();
        let bytes = result.as_ref().map_or(0, Vec::len);
        let answer = if bytes > limit {
            let reason = format!("its answer has {bytes} bytes; guest.max_payload_kb allows {limit}");
            Err(ServiceError::Failed(format!("{}: {reason}", self.member.title())))
        } else {
            answer_of(result)
        };
        if !request.answer(answer) {
            self.services.late_answer(self.handle(), source, bytes);
        }
    }

    fn count_handled(&mut self, count: u64) {
        self.member.handled.fetch_add(count, Ordering::Relaxed);
        self.guest.identity.counters.calls.fetch_add(count, Ordering::Relaxed);
    }
}
