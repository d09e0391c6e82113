//! What a store of a service holds beside the guest's memory: what every instance has, who the service is, and what it has
//! in hand. The imports are implemented on it; see `imports/`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;
use wasmtime::{Engine, Store, Trap, UpdateDeadline};
use wasmtime_wasi::{WasiCtxView, WasiView};

use super::handle::Handle;
use super::in_hand::InHand;
use super::member::Member;
use super::message::{Message, Request, Subject, answer_of};
use super::service_guest::ServiceGuest;
use super::services::Services;
use super::sockets::Sockets;
use super::timeouts::Timeouts;
use crate::guest::InstanceState;
use crate::guest::contract::sim;
use crate::guest::epoch::epochs_in;
use crate::guest::instance::HOSTCALL_PAYLOADS;
use crate::guest::resident::note_refusal;

/// Epochs that a service computes before others may.
const SLICE_EPOCHS: u64 = 1;

/// The data of one service's store.
pub struct ServiceState {
    pub(super) instance: InstanceState,
    pub(super) services: Services,
    pub(super) member: Arc<Member>,
    pub(super) guest: Arc<ServiceGuest>,
    pub(super) in_hand: InHand,
    pub(super) timeouts: Timeouts,
    pub(super) sockets: Option<Box<Sockets>>,
    /// It has asked for its end.
    pub(super) exits: bool,
    /// Requests of its own that wait for an answer.
    pub(super) waiting: Arc<AtomicU32>,
    /// Whom it sent to last: most senders have one receiver.
    pub(super) last_receiver: Option<Arc<Member>>,
    /// Slices that the call which runs may still compute.
    slices_left: u64,
    /// The turn of its task in which it last began a slice.
    turn: u64,
}

impl ServiceState {
    /// A store for a new service. The same number gives the same random numbers.
    pub(super) fn store(
        engine: &Engine,
        services: &Services,
        member: &Arc<Member>,
        guest: &Arc<ServiceGuest>,
        number: u64,
    ) -> Store<ServiceState> {
        let instance = InstanceState::new(Arc::clone(&guest.identity), number)
            .with_memory_counted_in(Arc::clone(&member.memory_bytes));
        let state = ServiceState {
            instance,
            services: services.clone(),
            member: Arc::clone(member),
            guest: Arc::clone(guest),
            in_hand: InHand::default(),
            timeouts: Timeouts::default(),
            sockets: None,
            exits: false,
            waiting: Arc::default(),
            last_receiver: None,
            slices_left: 0,
            turn: 0,
        };
        let mut store = Store::new(engine, state);
        store.limiter(|state| state.instance.limiter());
        store.set_hostcall_fuel(guest.identity.limits.max_payload_bytes().saturating_mul(HOSTCALL_PAYLOADS));
        store.epoch_deadline_callback(|mut context| {
            let state = context.data_mut();
            let turn = state.member.turns.load(Ordering::Relaxed);
            if turn != state.turn {
                // It has waited, or others had their turn, and epochs have passed that it did not compute in.
                state.turn = turn;
                return Ok(UpdateDeadline::Continue(SLICE_EPOCHS));
            }
            if state.slices_left == 0 {
                return Err(Trap::Interrupt.into());
            }
            state.slices_left -= 1;
            Ok(UpdateDeadline::Yield(SLICE_EPOCHS))
        });
        store.set_epoch_deadline(SLICE_EPOCHS);
        store
    }

    /// Hands on what a service keeps when its instance is another: everything but the instance itself.
    pub(super) fn hand_on(&mut self, to: &mut ServiceState) {
        to.in_hand = std::mem::take(&mut self.in_hand);
        to.timeouts = std::mem::take(&mut self.timeouts);
        to.sockets = self.sockets.take();
        to.waiting = Arc::clone(&self.waiting);
        to.last_receiver = self.last_receiver.take();
    }

    /// A call begins that may compute for `limit`.
    pub(super) fn allow(&mut self, limit: Duration) {
        self.slices_left = epochs_in(limit);
    }

    /// Tells when everything that is in the mailbox now has been taken up; none where it is not, since as much is in hand as
    /// may be.
    pub(super) fn until_mailbox_is_taken_up(&mut self) -> Option<oneshot::Receiver<()>> {
        if self.member.in_hand.load(Ordering::Relaxed) >= self.services.options().max_in_hand {
            return None;
        }
        let id = self.services.new_number();
        Some(self.timeouts.mark(id, &self.member))
    }

    /// Its handle.
    pub(super) fn handle(&self) -> Handle {
        self.member.handle
    }

    /// Whether a message is to be handled at all: one of a timeout that was taken back is not, nor is the packet of a client
    /// that is another's now, nor what comes of a socket that it has closed.
    fn wants(&mut self, message: &Message) -> bool {
        match message.subject {
            Subject::Timeout(id) if message.source == self.member.handle => self.timeouts.is_due(id),
            Subject::Packet(connection) if message.has_its_own_place() => {
                let gate = self.services.gate();
                !gate.is_some_and(|gate| gate.give_back(connection, self.member.handle, &message.payload))
            }
            Subject::SocketConnected(_) | Subject::SocketData(_) | Subject::SocketClosed(_)
                if message.has_its_own_place() =>
            {
                self.sockets.as_mut().is_some_and(|sockets| sockets.wants(&message.subject))
            }
            _ => true,
        }
    }

    /// Takes up a message that may compute for `limit`, unless it is not to be handled: as the guest is to have it.
    pub(super) fn take_up(&mut self, message: Message, limit: Duration) -> Option<sim::services::Message> {
        if !self.wants(&message) {
            return None;
        }
        let Message { source, subject, payload, request, place } = message;
        let session = request.as_ref().map(|request| request.session);
        self.in_hand.begin(source, subject, request, place);
        self.allow(limit);
        Some(sim::services::Message { source: source.0, session, subject, payload: Vec::from(payload) })
    }

    /// The handler of a message has returned.
    pub(super) fn finish(
        &mut self,
        source: Handle,
        subject: Subject,
        session: Option<u64>,
        result: Result<Vec<u8>, String>,
    ) {
        if let Err(reason) = &result {
            note_refusal(&self.guest.identity, "handle", reason);
        }
        self.count_handled(1);
        if let Some(request) = self.in_hand.end(source, subject, session) {
            self.answer(request, result);
        }
    }

    /// Answers a request.
    pub(super) fn answer(&mut self, request: Request, result: Result<Vec<u8>, String>) {
        let answer = answer_of(result, self.services.max_payload_bytes(), || self.member.title());
        self.services.answer(self.handle(), request, answer);
    }

    /// Counts messages that were handled.
    pub(super) fn count_handled(&mut self, count: u64) {
        self.member.count_handled(count);
        self.guest.identity.counters.calls.fetch_add(count, Ordering::Relaxed);
    }
}

impl WasiView for ServiceState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.instance.ctx()
    }
}
