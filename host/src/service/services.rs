//! All services of a host: who there is, and how a message reaches whom it is for. Guests' imports, the loop, the gate and
//! operators all work on this handle, from any thread; nothing here waits but for an answer.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use rustc_hash::{FxBuildHasher, FxHashMap};
use tokio::sync::{Notify, oneshot};

use super::dead_letters::{DeadLetter, DeadLetters};
use super::gate_port::GatePort;
use super::groups::{Groups, MAX_SUBSCRIPTIONS};
use super::handle::{Handle, Handles};
use super::life;
use super::mailbox::Refused;
use super::member::{Member, MemberKind};
use super::message::{Answer, Message, Request, ServiceError, Subject};
use super::names::Names;
use super::options::ServiceOptions;
use super::service_guest::ServiceGuest;
use super::shared_data::{Published, SharedData, SharedError};
use super::snapshot::{Counters, ServiceEntry, ServicesSnapshot};

/// How far a chain of services that wait for each other is followed.
const MAX_CHAIN: usize = 8;

/// The longest name of a channel in bytes.
const MAX_CHANNEL_BYTES: usize = 64;

/// The handle to all services. Clones are the same handle.
#[derive(Clone)]
pub struct Services {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub options: ServiceOptions,
    pub max_payload_bytes: usize,
    pub guests: FxHashMap<String, Arc<ServiceGuest>>,
    directory: DashMap<Handle, Arc<Member>, FxBuildHasher>,
    pub names: Names,
    pub groups: Groups,
    pub data: SharedData,
    pub dead_letters: DeadLetters,
    pub counters: Counters,
    handles: Handles,
    next_session: AtomicU64,
    /// For subscriptions, timeouts and sockets.
    next_number: AtomicU64,
    running: AtomicU32,
    /// Told whenever a service has ended.
    ended: Notify,
    is_stopping: AtomicBool,
    gate: OnceLock<Arc<dyn GatePort>>,
    pub runtime: tokio::runtime::Handle,
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
        let shared = Shared {
            data: SharedData::new(options.max_shared_bytes()),
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
            runtime,
        };
        Self { shared: Arc::new(shared) }
    }

    /// The options that they were made with.
    pub fn options(&self) -> &ServiceOptions {
        &self.shared.options
    }

    /// The most bytes of one payload.
    pub fn max_payload_bytes(&self) -> usize {
        self.shared.max_payload_bytes
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

    /// A session, subscription, timeout or socket that nobody has.
    pub fn new_session(&self) -> u64 {
        self.shared.next_session.fetch_add(1, Ordering::Relaxed)
    }

    /// A number for a subscription, a timeout or a socket.
    pub fn new_number(&self) -> u64 {
        self.shared.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds a member that is no service: a game, or a part of the host, which reads the mailbox itself. It has its label as
    /// a name, where that is free.
    pub fn add_member(&self, kind: MemberKind, label: &str) -> Arc<Member> {
        let capacity = self.shared.options.mailbox_capacity;
        let member = Arc::new(Member::new(self.new_handle(), kind, Arc::from(label), capacity));
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
        let capacity = self.shared.options.mailbox_capacity;
        let member = Arc::new(Member::new(handle, MemberKind::Service, Arc::clone(label), capacity));
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
        self.give_place_back();
        // Only now does it run no more in the figures.
        Counters::count(if has_failed { &counters.failed } else { &counters.exited });
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
        self.check_payload(message.payload.len())?;
        match self.shared.directory.get(&to) {
            Some(member) => self.deliver_to(&member, message),
            None => Err(self.nobody(to, &message)),
        }
    }

    /// Whom a message with such a payload could be sent to under a handle.
    pub(super) fn find(&self, to: Handle, bytes: usize) -> Result<Arc<Member>, ServiceError> {
        self.check_payload(bytes)?;
        self.member(to).ok_or_else(|| gone(to))
    }

    /// [`deliver`](Self::deliver) to a member that was looked up before, however long ago.
    pub fn deliver_to(&self, member: &Member, message: Message) -> Result<(), ServiceError> {
        self.push(member, message).map_err(|(error, message)| {
            if matches!(error, ServiceError::Gone(_)) { self.nobody(member.handle, &message) } else { error }
        })
    }

    /// Puts a message into a member's mailbox; an error comes with the message.
    pub(super) fn push(&self, member: &Member, message: Message) -> Result<(), (ServiceError, Message)> {
        match member.mailbox.push(message) {
            Ok(taken) => {
                if let Some(length) = taken.overload {
                    let (guest, handle) = (&*member.label, member.handle.0);
                    tracing::warn!(guest, handle, length, "a mailbox is overloaded");
                }
                Ok(())
            }
            Err(Refused::Full(message)) => Err((ServiceError::MailboxFull(member.mailbox.capacity() as u32), message)),
            Err(Refused::Closed(message)) => Err((gone(member.handle), message)),
        }
    }

    fn nobody(&self, to: Handle, message: &Message) -> ServiceError {
        let error = gone(to);
        if message.request.is_none() {
            self.shared.dead_letters.note(message.source, to, message.payload.len(), describe(&error));
        }
        error
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
        answer: oneshot::Receiver<Answer>,
        limit: Duration,
    ) -> Answer {
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(gone(to)),
            Err(_) => Err(ServiceError::TimedOut(self.chain(from, to, limit))),
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

    /// Notes an answer that came after its asker had gone, or a second one.
    pub(super) fn late_answer(&self, by: Handle, to: Handle, bytes: usize) {
        self.shared.dead_letters.note(by, to, bytes, "nobody waits for this answer any more");
    }

    /// Gives a name to a member.
    pub fn register(&self, name: &str, handle: Handle) -> Result<(), ServiceError> {
        // Under the directory's lock, so that a member which ends meanwhile takes the name along.
        match self.shared.directory.entry(handle) {
            Entry::Occupied(_) => self.shared.names.register(name, handle),
            Entry::Vacant(_) => Err(gone(handle)),
        }
    }

    /// The member with that name.
    pub fn query(&self, name: &str) -> Option<Handle> {
        self.shared.names.query(name)
    }

    /// Takes a name away; false when nobody has it.
    pub fn unregister(&self, name: &str) -> bool {
        self.shared.names.unregister(name)
    }

    /// The names of a member that has ended are free: nobody comes in its place.
    pub fn free_names(&self, handle: Handle) {
        self.shared.names.remove(handle);
    }

    /// Checks a channel's name and a payload before they are published.
    pub fn check_publication(&self, channel: &str, bytes: usize) -> Result<(), ServiceError> {
        if channel.len() > MAX_CHANNEL_BYTES {
            return Err(ServiceError::TooLarge(MAX_CHANNEL_BYTES as u32));
        }
        self.check_payload(bytes)
    }

    /// Sends a payload to all subscribers of a channel, and says how many have it.
    pub fn publish(&self, source: Handle, channel: &str, payload: &Bytes) -> Result<u32, ServiceError> {
        self.check_publication(channel, payload.len())?;
        let mut reached = 0;
        self.shared.groups.for_each(channel, |subscription| {
            let subject = Subject::Published(subscription.id);
            let sent = self.deliver(subscription.subscriber, Message::new(source, subject, payload.clone()));
            match sent {
                Ok(()) => reached += 1,
                Err(ServiceError::MailboxFull(_)) => {
                    let reason = format!("its mailbox was full when {channel:?} was published");
                    self.shared.dead_letters.note(source, subscription.subscriber, payload.len(), reason);
                }
                Err(_) => {}
            }
        });
        Ok(reached)
    }

    /// How many are subscribed to a channel.
    pub fn subscribers(&self, channel: &str) -> u32 {
        let mut count = 0;
        self.shared.groups.for_each(channel, |_| count += 1);
        count
    }

    /// Subscribes a member to a channel under an id from [`new_number`](Self::new_number).
    pub fn subscribe(&self, id: u64, subscriber: Handle, channel: &str) -> Result<(), ServiceError> {
        self.check_publication(channel, 0)?;
        if self.shared.groups.subscribe(id, subscriber, channel) {
            Ok(())
        } else {
            Err(ServiceError::TooMany(MAX_SUBSCRIPTIONS as u32))
        }
    }

    /// How many subscriptions a member has.
    pub fn subscriptions_of(&self, subscriber: Handle) -> usize {
        self.shared.groups.count_of(subscriber)
    }

    /// Ends a subscription; false when that member has none with that id.
    pub fn unsubscribe(&self, id: u64, subscriber: Handle) -> bool {
        self.shared.groups.unsubscribe(id, subscriber)
    }

    /// The shared blobs, to read and to put together.
    pub fn data(&self) -> &SharedData {
        &self.shared.data
    }

    /// Publishes a shared blob and tells who watches it.
    pub fn put(&self, by: Handle, name: &str, bytes: &[u8]) -> Result<(), SharedError> {
        let published = self.shared.data.put(name, bytes)?;
        self.tell_watchers(by, name, &published);
        Ok(())
    }

    /// Publishes what `by` has put together under a name; false when there is nothing.
    pub fn finish(&self, by: Handle, name: &str) -> bool {
        let published = self.shared.data.finish(by, name);
        if let Some(published) = &published {
            self.tell_watchers(by, name, published);
        }
        published.is_some()
    }

    fn tell_watchers(&self, by: Handle, name: &str, published: &Published) {
        let name = Bytes::copy_from_slice(name.as_bytes());
        for watcher in &published.watchers {
            // One that is gone or overloaded misses it; the next version tells it again.
            let _ = self.deliver(*watcher, Message::new(by, Subject::Changed(published.version), name.clone()));
        }
    }

    /// The figures.
    pub fn snapshot(&self) -> ServicesSnapshot {
        let counters = &self.shared.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        // Those that have ended are read first: whoever has ended was launched before.
        let (exited, failed) = (read(&counters.exited), read(&counters.failed));
        let launched = read(&counters.launched);
        let mut snapshot = ServicesSnapshot {
            running: launched - exited - failed,
            launched,
            exited,
            failed,
            messages: read(&counters.handled_by_ended),
            dead_letters: self.shared.dead_letters.count(),
            mailbox_max: read(&counters.longest_of_ended),
        };
        for member in &self.shared.directory {
            snapshot.messages += member.handled.load(Ordering::Relaxed);
            snapshot.mailbox_max = snapshot.mailbox_max.max(member.mailbox.lengths().1 as u64);
        }
        snapshot
    }

    /// A line for each member, oldest first.
    pub fn list(&self) -> Vec<ServiceEntry> {
        let mut entries: Vec<_> = self.shared.directory.iter().map(|member| self.entry(&member)).collect();
        entries.sort_unstable_by_key(|entry| entry.handle);
        entries
    }

    fn entry(&self, member: &Member) -> ServiceEntry {
        ServiceEntry {
            handle: member.handle.0,
            guest: member.label.to_string(),
            kind: member.kind,
            names: self.shared.names.of(member.handle),
            mailbox: member.mailbox.lengths().0,
            in_hand: member.in_hand.load(Ordering::Relaxed),
            messages: member.handled.load(Ordering::Relaxed),
            memory_bytes: member.memory_bytes.load(Ordering::Relaxed),
            used_ms: member.used_ns.load(Ordering::Relaxed) / 1_000_000,
        }
    }

    /// The last messages that reached nobody, oldest first.
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.shared.dead_letters.last()
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
                if self.shared.running.load(Ordering::SeqCst) == 0 {
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

/// There is nobody with that handle.
fn gone(handle: Handle) -> ServiceError {
    ServiceError::Gone(format!("there is no service {handle} (any more)"))
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
