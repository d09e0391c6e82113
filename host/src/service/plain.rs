//! How a plain service handles its messages: one call after another, each from its beginning to its end. Where the guest
//! takes them, messages that want no answer are handed over many in a call.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use wasmtime::Store;

use super::code::{PlainCode, PlainExports};
use super::former::Kept;
use super::handle::Handle;
use super::life::{End, Left};
use super::member::Member;
use super::message::{Message, Subject};
use super::state::ServiceState;
use crate::guest::CallError;
use crate::guest::contract::sim;
use crate::guest::resident::note_refusal;

/// Messages taken out of the mailbox at a time.
const INBOX: usize = 256;

/// How long one call of `deliver` should take at most, going by those before it: whoever waits behind the messages in it
/// waits for all of them.
const BULK_TIME: Duration = Duration::from_millis(1);

/// A call of `deliver` may compute so many times what a message may: so many messages lie between two looks at the clock
/// of a guest that keeps to the contract.
const BULK_DEADLINES: u32 = 4;

/// A plain service.
pub(super) struct Plain {
    exports: PlainExports,
    bulk: Bulk,
}

/// What `deliver` is called with, kept from call to call, and how many messages it should be.
#[derive(Debug)]
struct Bulk {
    heads: Vec<sim::bulk::Head>,
    payloads: Vec<u8>,
    size: usize,
}

/// What is kept of `payloads` for the next call.
const KEEP_PAYLOADS_BYTES: usize = 16 * 1024;

impl Default for Bulk {
    fn default() -> Self {
        Self { heads: Vec::new(), payloads: Vec::new(), size: 1 }
    }
}

impl Plain {
    /// Makes an instance.
    pub async fn make(code: &PlainCode, store: &mut Store<ServiceState>) -> wasmtime::Result<Self> {
        Ok(Self { exports: code.instantiate(store).await?, bulk: Bulk::default() })
    }

    /// Calls `init`.
    pub async fn init(
        &self,
        store: &mut Store<ServiceState>,
        config: &str,
        arguments: &[u8],
    ) -> wasmtime::Result<Result<(), String>> {
        self.exports.service.call_init(store, config, arguments).await
    }

    /// Calls `save`.
    pub async fn save(&self, store: &mut Store<ServiceState>) -> wasmtime::Result<Vec<u8>> {
        self.exports.service.wheelhouse_sim_lifecycle().call_save(store).await
    }

    /// Calls `restore`.
    pub async fn restore(&self, store: &mut Store<ServiceState>, state: &[u8]) -> wasmtime::Result<Result<(), String>> {
        self.exports.service.wheelhouse_sim_lifecycle().call_restore(store, state).await
    }

    /// Handles messages until it ends or is given an order. What it has taken out of its mailbox and not handled stays in
    /// `inbox`.
    ///
    /// While `before` is kept it may have to go back to that, and takes its messages one by one: it is then known which was
    /// handled and which was not.
    pub async fn handle_all(
        &mut self,
        store: &mut Store<ServiceState>,
        inbox: &mut VecDeque<Message>,
        before: Option<&Kept>,
    ) -> Left {
        let (member, limit) = (Arc::clone(&store.data().member), store.data().services.options().deadline());
        let mut actor = Actor { store, member, limit, exports: &self.exports, bulk: &mut self.bulk, before };
        match actor.handle_all(inbox).await {
            Ok(left) => left,
            Err((what, error)) => Left::End(End::Failed(what, CallError::from_wasmtime(error, limit))),
        }
    }
}

/// A failure and the call that failed.
type Failure = (&'static str, wasmtime::Error);

struct Actor<'a> {
    store: &'a mut Store<ServiceState>,
    member: Arc<Member>,
    /// What one message may compute.
    limit: Duration,
    exports: &'a PlainExports,
    bulk: &'a mut Bulk,
    before: Option<&'a Kept>,
}

impl Actor<'_> {
    async fn handle_all(&mut self, inbox: &mut VecDeque<Message>) -> Result<Left, Failure> {
        while !self.store.data().exits {
            if inbox.is_empty() {
                let Member { mailbox, orders, .. } = &*self.member;
                poll_fn(|context| match orders.poll_given(context) {
                    Poll::Ready(()) => Poll::Ready(()),
                    Poll::Pending => mailbox.poll_take(context, inbox, INBOX).map(drop),
                })
                .await;
                self.member.in_hand.store(inbox.len(), Ordering::Relaxed);
            }
            if let Some(order) = self.member.orders.take() {
                return Ok(Left::Order(order));
            }
            if self.takes_many() && self.gather(inbox) > 1 {
                self.deliver(inbox).await.map_err(|error| ("deliver", error))?;
            } else if let Some(message) = inbox.pop_front() {
                self.handle(message).await.map_err(|error| ("handle", error))?;
            }
            self.member.in_hand.store(inbox.len(), Ordering::Relaxed);
        }
        Ok(Left::End(End::Exited))
    }

    fn takes_many(&self) -> bool {
        self.exports.deliver.is_some() && !self.before.is_some_and(Kept::is_kept)
    }

    async fn handle(&mut self, message: Message) -> wasmtime::Result<()> {
        let Some(message) = self.store.data_mut().take_up(message, self.limit) else { return Ok(()) };
        let result = self.exports.service.call_handle(&mut *self.store, &message).await?;
        self.store.data_mut().finish(Handle(message.source), message.subject, message.session, result);
        Ok(())
    }

    /// Puts messages that want no answer together for one call: as many as lie at the front of the inbox and should not
    /// take too long. Answers how many; they stay in the inbox until they are handled.
    fn gather(&mut self, inbox: &mut VecDeque<Message>) -> usize {
        let Bulk { heads, payloads, size } = &mut *self.bulk;
        heads.clear();
        payloads.clear();
        payloads.shrink_to(KEEP_PAYLOADS_BYTES);
        if inbox.len() == 1 {
            return 1;
        }
        let limit = self.store.data().services.max_payload_bytes();
        while heads.len() < (*size).max(2)
            && let Some(message) = inbox.get(heads.len())
            && message.request.is_none()
            && !is_settled_at_its_turn(message.subject)
            && (heads.is_empty() || payloads.len() + message.payload.len() <= limit)
        {
            payloads.extend_from_slice(&message.payload);
            let length = message.payload.len() as u32;
            heads.push(sim::bulk::Head { source: message.source.0, subject: message.subject, length });
        }
        heads.len()
    }

    async fn deliver(&mut self, inbox: &mut VecDeque<Message>) -> wasmtime::Result<()> {
        let Bulk { heads, payloads, .. } = &*self.bulk;
        let count = heads.len();
        let state = self.store.data_mut();
        heads.iter().for_each(|head| state.in_hand.begin(Handle(head.source), head.subject, None, None));
        state.allow(self.limit * BULK_DEADLINES);
        let clock = Arc::clone(state.guest.engine.clock());
        let began = clock.now();
        let delivered = self.exports.deliver(&mut *self.store, heads, payloads).await?;
        let took = clock.now() - began;
        self.bulk.size = if took * 2 <= BULK_TIME { (count * 2).min(INBOX) } else { (count / 2).max(1) };
        let state = self.store.data_mut();
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
        state.in_hand.forget_messages();
        inbox.drain(..handled as usize);
        state.count_handled(u64::from(handled));
        Ok(())
    }
}

/// Whether what the service does with the message before may decide that this one is not to be handled: the packet of a
/// client that it has bound elsewhere, a timeout that it has taken back, a socket that it has closed.
fn is_settled_at_its_turn(subject: Subject) -> bool {
    match subject {
        Subject::Plain | Subject::Object(_) | Subject::Published(_) | Subject::Changed(_) => false,
        Subject::Timeout(_)
        | Subject::Connected(_)
        | Subject::Packet(_)
        | Subject::Disconnected(_)
        | Subject::SocketConnected(_)
        | Subject::SocketData(_)
        | Subject::SocketClosed(_) => true,
    }
}
