//! All services of a host: who there is, and how a message reaches whom it is for. Guests' imports, the loop, the gate and
//! operators all work on this handle, from any thread; nothing here waits but for an answer. What they have in common,
//! names, channels and shared blobs, is in `commons`, the figures are in `snapshot`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use dashmap::DashMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use tokio::sync::{Notify, Semaphore, oneshot};

use super::dead_letters::DeadLetters;
use super::engine::{SPARE_PLACES, ServiceEngine};
use super::gate_port::GatePort;
use super::groups::Groups;
use super::handle::{Handle, Handles};
use super::life;
use super::mailbox::{Mailbox, Refused};
use super::member::{Member, MemberKind};
use super::message::{Answer, Message, Request, ServiceError, Subject};
use super::names::Names;
use super::options::ServiceOptions;
use super::service_guest::ServiceGuest;
use super::shared_data::SharedData;
use super::snapshot::Counters;
use crate::guest::service_limits::nobody;
use crate::guest::{GuestId, Returned, SwapOptions};

/// How far a chain of services that wait for each other is followed.
const MAX_CHAIN: usize = 8;

/// Who is told when the old code of a guest has come back.
pub type OnReturn = dyn Fn(GuestId, Returned) + Send + Sync;

/// The handle to all services. Clones are the same handle.
#[derive(Clone)]
pub struct Services {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub options: ServiceOptions,
    pub max_payload_bytes: usize,
    pub guests: FxHashMap<String, Arc<ServiceGuest>>,
    pub directory: DashMap<Handle, Arc<Member>, FxBuildHasher>,
    pub names: Names,
    pub groups: Groups,
    pub data: SharedData,
    pub dead_letters: DeadLetters,
    pub counters: Counters,
    handles: Handles,
    next_session: AtomicU64,
    /// For subscriptions, timeouts and sockets.
    next_number: AtomicU64,
    pub running: AtomicU32,
    /// Told whenever a service has ended.
    ended: Notify,
    is_stopping: AtomicBool,
    gate: OnceLock<Arc<dyn GatePort>>,
    pub swap_options: OnceLock<SwapOptions>,
    /// Told when the old code of a guest has come back.
    pub on_return: OnceLock<Box<OnReturn>>,
    /// Taken by whoever needs a second place in the pool for a moment.
    pub spare_places: Semaphore,
    /// Nobody is there and nothing gets out: new code is tried out among them.
    pub is_trial: bool,
    pub runtime: tokio::runtime::Handle,
}

impl Shared {
    fn new(
        options: ServiceOptions,
        max_payload_bytes: usize,
        guests: FxHashMap<String, Arc<ServiceGuest>>,
        handles: Handles,
        runtime: tokio::runtime::Handle,
    ) -> Self {
        Self {
            data: SharedData::new(options.max_shared_bytes(), max_payload_bytes),
            options,
            max_payload_bytes,
            guests,
            directory: DashMap::default(),
            names: Names::default(),
            groups: Groups::default(),
            dead_letters: DeadLetters::default(),
            counters: Counters::default(),
            handles,
            next_session: AtomicU64::new(1),
            next_number: AtomicU64::new(1),
            running: AtomicU32::new(0),
            ended: Notify::new(),
            is_stopping: AtomicBool::new(false),
            gate: OnceLock::new(),
            swap_options: OnceLock::new(),
            on_return: OnceLock::new(),
            spare_places: Semaphore::new(SPARE_PLACES as usize),
            is_trial: false,
            runtime,
        }
    }
}

impl Services {
    /// No services yet, of these guests. They run on `runtime`; handles begin where `handles` says.
    pub fn new(
        options: ServiceOptions,
        max_payload_bytes: usize,
        guests: Vec<ServiceGuest>,
        handles: Handles,
        runtime: tokio::runtime::Handle,
    ) -> Self {
        let guests = guests.into_iter().map(|guest| (guest.name().to_owned(), Arc::new(guest))).collect();
        let shared = Shared::new(options, max_payload_bytes, guests, handles, runtime);
        Self { shared: Arc::new(shared) }
    }

    /// Services beside these, of which none is there and that reach nobody.
    pub(super) fn for_trial(&self) -> Self {
        let Shared { options, max_payload_bytes, runtime, .. } = &*self.shared;
        let (guests, handles) = (FxHashMap::default(), Handles::beginning_at(0));
        let shared = Shared::new(options.clone(), *max_payload_bytes, guests, handles, runtime.clone());
        Self { shared: Arc::new(Shared { is_trial: true, ..shared }) }
    }

    /// The options that they were made with.
    pub fn options(&self) -> &ServiceOptions {
        &self.shared.options
    }

    /// The most bytes of one payload.
    pub fn max_payload_bytes(&self) -> usize {
        self.shared.max_payload_bytes
    }

    /// Tells how swaps are done, and who is told when old code has come back. Once, before any service runs.
    pub fn set_swaps(&self, options: SwapOptions, on_return: Box<OnReturn>) {
        let _ = self.shared.swap_options.set(options);
        let _ = self.shared.on_return.set(on_return);
    }

    /// Tells services how to reach clients. Once, before any service runs.
    pub fn set_gate(&self, gate: Arc<dyn GatePort>) {
        let _ = self.shared.gate.set(gate);
    }

    /// The way to clients, where there is a gate.
    pub fn gate(&self) -> Option<&Arc<dyn GatePort>> {
        self.shared.gate.get()
    }

    /// The runtime that services run on.
    pub fn runtime(&self) -> &tokio::runtime::Handle {
        &self.shared.runtime
    }

    /// A handle that nobody has, for a service that is to be launched under it.
    pub fn new_handle(&self) -> Handle {
        self.shared.handles.next()
    }

    /// A session that nobody has.
    pub fn new_session(&self) -> u64 {
        self.shared.next_session.fetch_add(1, Ordering::Relaxed)
    }

    /// A number for a subscription, a timeout or a socket that nobody has.
    pub fn new_number(&self) -> u64 {
        self.shared.next_number.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn new_mailbox(&self) -> Mailbox {
        let options = &self.shared.options;
        Mailbox::new(options.mailbox_capacity, options.max_mailbox_bytes())
    }

    /// Adds a member that is no service: a game, or a part of the host, which reads the mailbox itself. It has its label as
    /// a name, where that is free.
    pub fn add_member(&self, kind: MemberKind, label: &str) -> Arc<Member> {
        self.add_member_as(self.new_handle(), kind, label)
    }

    /// The same under a handle that only this member has had.
    pub fn add_member_as(&self, handle: Handle, kind: MemberKind, label: &str) -> Arc<Member> {
        let member = Arc::new(Member::new(handle, kind, Arc::from(label), self.new_mailbox()));
        self.shared.directory.insert(member.handle, Arc::clone(&member));
        if let Err(error) = self.shared.names.register(label, member.handle) {
            tracing::warn!(name = label, "a name is not given: {}", describe(&error));
        }
        member
    }

    /// Whether a guest of kind `service` has that name.
    pub fn has_guest(&self, guest: &str) -> bool {
        self.shared.guests.contains_key(guest)
    }

    /// The engines that the code of that guest is for.
    pub fn guest_engine(&self, guest: &str) -> Option<ServiceEngine> {
        self.shared.guests.get(guest).map(|guest| guest.engine.clone())
    }

    /// The name of the guest with that id.
    pub fn guest_name(&self, id: GuestId) -> Option<String> {
        let mut guests = self.shared.guests.values();
        guests.find(|guest| guest.identity.id == id).map(|guest| guest.name().to_owned())
    }

    /// Starts a service.
    pub fn launch(&self, guest: &str, arguments: Bytes) -> Result<Handle, ServiceError> {
        let handle = self.new_handle();
        self.launch_as(handle, guest, arguments).map(|_| handle)
    }

    /// Starts a service under a handle from [`new_handle`](Self::new_handle).
    pub fn launch_as(&self, handle: Handle, guest: &str, arguments: Bytes) -> Result<Arc<Member>, ServiceError> {
        let guest = self.shared.guests.get(guest).ok_or(ServiceError::NoSuchGuest)?;
        self.check_payload(arguments.len())?;
        life::launch(self, handle, guest, arguments, life::Lineage::default())
    }

    /// Starts a service under a name, which it has before it runs: it may fail at once, and the name is to wait for the
    /// one that is started in its place.
    pub fn launch_named(&self, name: &str, guest: &str, arguments: Bytes) -> Result<Handle, ServiceError> {
        let handle = self.new_handle();
        self.shared.names.register(name, handle)?;
        match self.launch_as(handle, guest, arguments) {
            Ok(_) => Ok(handle),
            Err(error) => {
                self.free_names(handle);
                Err(error)
            }
        }
    }

    /// Takes a place among the running services, and enters the member in the directory.
    pub(super) fn enter(&self, handle: Handle, label: &Arc<str>) -> Result<Arc<Member>, ServiceError> {
        let limit = self.shared.options.max_running;
        // The place first: whoever stops either sees it or is seen.
        let is_full = self.shared.running.fetch_add(1, Ordering::SeqCst) >= limit;
        if is_full || self.is_stopping() {
            self.give_place_back();
            let stopping = || ServiceError::Failed("the host is stopping".to_owned());
            return Err(if self.is_stopping() { stopping() } else { ServiceError::TooMany(limit) });
        }
        let member = Arc::new(Member::new(handle, MemberKind::Service, Arc::clone(label), self.new_mailbox()));
        self.shared.directory.insert(handle, Arc::clone(&member));
        Counters::count(&self.shared.counters.launched);
        if self.is_stopping() {
            // Whoever stops may have looked through the directory before it was in it.
            member.kill();
        }
        Ok(member)
    }

    /// Takes a member out: nobody reaches it any more, and what it has not handled is answered, `unhandled` and what is in
    /// its mailbox.
    pub fn remove(&self, member: &Member, unhandled: VecDeque<Message>, why: &ServiceError) {
        let shared = &self.shared;
        shared.directory.remove(&member.handle);
        for message in unhandled.into_iter().chain(member.mailbox.close()) {
            self.return_to_sender(member, message, why);
        }
        shared.groups.remove(member.handle);
        shared.data.forget(member.handle);
        let (_, longest) = member.mailbox.lengths();
        shared.counters.longest_of_ended.fetch_max(longest as u64, Ordering::Relaxed);
        shared.counters.handled_by_ended.fetch_add(member.handled.load(Ordering::Relaxed), Ordering::Relaxed);
        if let Some(gate) = self.gate() {
            gate.member_ended(member.handle);
        }
    }

    /// A service is gone, with everything that it had.
    pub(super) fn leave(&self, has_failed: bool) {
        let counters = &self.shared.counters;
        self.shared.running.fetch_sub(1, Ordering::SeqCst);
        // Only now does it run no more in the figures: whoever reads there that it has ended finds its place free.
        Counters::count(if has_failed { &counters.failed } else { &counters.exited });
        self.shared.ended.notify_waiters();
    }

    fn give_place_back(&self) {
        self.shared.running.fetch_sub(1, Ordering::SeqCst);
        self.shared.ended.notify_waiters();
    }

    fn return_to_sender(&self, member: &Member, message: Message, why: &ServiceError) {
        match message.request {
            Some(request) => drop(request.answer(Err(why.clone()))),
            None => {
                let reason = format!("{} ended before it came to it", member.title());
                self.shared.dead_letters.note(message.source, member.handle, message.payload.len(), reason);
            }
        }
    }

    /// Ends a service; false when there is none with that handle. A game or a part of the host is not ended.
    pub fn kill(&self, handle: Handle) -> bool {
        let member = self.member(handle).filter(|member| member.kind == MemberKind::Service);
        member.is_some_and(|member| {
            member.kill();
            true
        })
    }

    /// The member with that handle.
    pub fn member(&self, handle: Handle) -> Option<Arc<Member>> {
        self.shared.directory.get(&handle).map(|member| Arc::clone(&member))
    }

    /// Puts a message into a mailbox. A payload that is too long, a mailbox that is full and a handle that nobody has are
    /// errors; whoever waits for an answer hears of it by that.
    pub fn deliver(&self, to: Handle, message: Message) -> Result<(), ServiceError> {
        match self.shared.directory.get(&to) {
            Some(member) => self.deliver_to(&member, message),
            None => self.deliver_to_nobody(to, &message),
        }
    }

    /// Whom a message with such a payload could be sent to under a handle.
    pub(super) fn find(&self, to: Handle, bytes: usize) -> Result<Arc<Member>, ServiceError> {
        self.check_payload(bytes)?;
        self.member(to).ok_or_else(|| nobody(to.0))
    }

    /// [`deliver`](Self::deliver) to a member that was looked up before, however long ago.
    pub fn deliver_to(&self, member: &Member, message: Message) -> Result<(), ServiceError> {
        self.check_payload(message.payload.len())?;
        match member.push(message) {
            Ok(()) => Ok(()),
            Err(Refused::Closed(message)) => self.deliver_to_nobody(member.handle, &message),
            Err(full @ Refused::Full(_)) => Err(full.why(member)),
        }
    }

    /// [`deliver`](Self::deliver) to a handle that nobody has: always an error, and a dead letter unless somebody waits
    /// for an answer.
    pub(super) fn deliver_to_nobody(&self, to: Handle, message: &Message) -> Result<(), ServiceError> {
        self.check_payload(message.payload.len())?;
        let error = nobody(to.0);
        if message.request.is_none() {
            self.shared.dead_letters.note(message.source, to, message.payload.len(), describe(&error));
        }
        Err(error)
    }

    /// Whether a member has that handle and room for a message.
    pub fn check_receiver(&self, to: Handle) -> Result<(), ServiceError> {
        let member = self.member(to).ok_or_else(|| nobody(to.0))?;
        let capacity = member.mailbox.capacity();
        if member.mailbox.lengths().0 >= capacity { Err(ServiceError::MailboxFull(capacity as u32)) } else { Ok(()) }
    }

    /// Checks that a payload may be sent.
    pub fn check_payload(&self, bytes: usize) -> Result<(), ServiceError> {
        let limit = self.shared.max_payload_bytes;
        if bytes > limit { Err(ServiceError::TooLarge(limit as u32)) } else { Ok(()) }
    }

    /// Sends a request. Its answer comes by the receiver: see [`answer_within`](Self::answer_within).
    pub fn request(
        &self,
        source: Handle,
        to: Handle,
        subject: Subject,
        payload: Bytes,
    ) -> Result<oneshot::Receiver<Answer>, ServiceError> {
        let (request, answer) = Request::new(self.new_session(), source);
        self.deliver(to, Message { request: Some(request), ..Message::new(source, subject, payload) })?;
        Ok(answer)
    }

    /// Waits for the answer to a request from `from` to `to`.
    pub async fn answer_within(
        &self,
        from: &Member,
        to: Handle,
        mut answer: oneshot::Receiver<Answer>,
        limit: Duration,
    ) -> Answer {
        // Others follow this to tell why they wait in vain.
        let _waiting = from.waits_for(to);
        match tokio::time::timeout(limit, &mut answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(nobody(to.0)),
            Err(_) => last_look(answer).unwrap_or_else(|| Err(ServiceError::TimedOut(self.chain(from, to, limit)))),
        }
    }

    /// Sends a request and waits for its answer.
    pub async fn call(&self, from: &Member, to: Handle, subject: Subject, payload: Bytes, limit: Duration) -> Answer {
        let answer = self.request(from.handle, to, subject, payload)?;
        self.answer_within(from, to, answer, limit).await
    }

    /// Who waits for whom, beginning with `from`, which waits for `to`.
    fn chain(&self, from: &Member, to: Handle, limit: Duration) -> String {
        let mut chain = format!("after {} ms: {} waits for ", limit.as_millis(), from.title());
        let mut seen = Vec::new();
        let mut next = Some(to);
        while let Some(handle) = next {
            let member = self.member(handle);
            chain.push_str(&member.as_ref().map_or_else(|| format!("{handle}, which has ended"), |it| it.title()));
            if seen.contains(&handle) || seen.len() >= MAX_CHAIN {
                break;
            }
            seen.push(handle);
            next = member.and_then(|member| member.waited_for());
            if next.is_some() {
                chain.push_str(", which waits for ");
            }
        }
        chain
    }

    /// Answers a request; where nobody waits for it any more, that is a dead letter.
    pub fn answer(&self, by: Handle, request: Request, answer: Answer) {
        let (asker, bytes) = (request.source, answer.as_ref().map_or(0, Bytes::len));
        if !request.answer(answer) {
            self.late_answer(by, asker, bytes);
        }
    }

    /// Notes an answer that came after its asker had given up or ended.
    pub fn late_answer(&self, by: Handle, to: Handle, bytes: usize) {
        self.shared.dead_letters.note(by, to, bytes, "nobody waits for this answer any more");
    }

    /// Ends all services, lets none be started, and returns when all are gone or `limit` has passed.
    pub async fn stop(&self, limit: Duration) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        for member in &self.shared.directory {
            if member.kind == MemberKind::Service {
                member.kill();
            }
        }
        let all_gone = async {
            loop {
                let ended = self.shared.ended.notified();
                // Its place is free a moment before it has left the figures, and both are waited for.
                if self.shared.running.load(Ordering::SeqCst) == 0 && self.shared.counters.running() == 0 {
                    return;
                }
                ended.await;
            }
        };
        if tokio::time::timeout(limit, all_gone).await.is_err() {
            let running = self.shared.running.load(Ordering::SeqCst);
            tracing::warn!(running, "services did not end in time; they are dropped");
        }
    }

    /// Whether services may be started.
    pub(super) fn is_stopping(&self) -> bool {
        self.shared.is_stopping.load(Ordering::SeqCst)
    }
}

/// The answer, where it has come while its time ended. Whoever answers from here on learns that nobody waits.
pub(super) fn last_look(mut answer: oneshot::Receiver<Answer>) -> Option<Answer> {
    answer.close();
    answer.try_recv().ok()
}

/// An error of the contract as a line for the log.
pub fn describe(error: &ServiceError) -> String {
    match error {
        ServiceError::Gone(what) => what.clone(),
        ServiceError::MailboxFull(limit) => format!("its mailbox is full: service.mailbox_capacity is {limit}"),
        ServiceError::TooLarge(limit) => format!("it is longer than {limit} bytes"),
        ServiceError::TimedOut(chain) => format!("no answer {chain}"),
        ServiceError::Refused(reason) => format!("refused: {reason}"),
        ServiceError::Failed(reason) => format!("failed: {reason}"),
        ServiceError::NameTaken => "the name is taken".to_owned(),
        ServiceError::NoSuchGuest => "no guest of kind service has that name".to_owned(),
        ServiceError::TooMany(limit) => format!("there are {limit} already, as many as may be"),
        ServiceError::NotYours => "session and source are not those of a message in hand".to_owned(),
    }
}
