//! Letters: what a handler asks of services. Like other effects they are noted and leave when the handler has returned, so
//! this book answers for them meanwhile: who would be there, and who would have which name, had they left already. What
//! only the game itself can know of, its subscriptions, the names it watches and the blobs it puts together, is here too.
//! Who there really is tells a [`ServiceView`], which the server implements.

use std::sync::Arc;

use bytes::Bytes;
use rustc_hash::{FxHashMap, FxHashSet};

use super::contract::sim::services::ServiceError;
use super::contract::sim::shared::SharedError;
use super::layered::Layered;
use super::service_limits::{MAX_BLOB_NAMES, MAX_SUBSCRIPTIONS, check_name, nobody};
use super::shared_reads::SharedBlob;
use super::stage::GuestId;
use super::unfinished::Unfinished;

/// Something that a handler asks of services, carried out in the order asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Letter {
    /// A message that wants no answer.
    Send {
        to: u64,
        payload: Bytes,
    },
    /// A request; with an object, the call of one of its methods.
    Request {
        to: u64,
        session: u64,
        object: Option<u64>,
        payload: Bytes,
        limit_ms: Option<u32>,
    },
    /// Start a service under this handle.
    Launch {
        handle: u64,
        guest: String,
        arguments: Bytes,
    },
    /// End a service.
    Kill(u64),
    Register {
        name: String,
        service: u64,
    },
    Unregister(String),
    Publish {
        channel: String,
        payload: Bytes,
    },
    Subscribe {
        id: u64,
        channel: String,
    },
    Unsubscribe(u64),
    /// Publish a shared blob.
    PutShared {
        name: String,
        blob: Arc<[u8]>,
    },
    RemoveShared(String),
    Watch(String),
    Unwatch(String),
    /// Bind a connection to a member.
    Bind {
        connection: u64,
        to: u64,
    },
}

impl Letter {
    /// Bytes of its payload.
    pub fn bytes(&self) -> usize {
        match self {
            Letter::Send { payload, .. } | Letter::Request { payload, .. } | Letter::Publish { payload, .. } => {
                payload.len()
            }
            Letter::Launch { arguments, .. } => arguments.len(),
            Letter::PutShared { blob, .. } => blob.len(),
            _ => 0,
        }
    }
}

/// Services and connections as they are now. Nothing here waits or changes anything but the next number.
pub trait ServiceView: Send {
    /// Whether somebody has that handle.
    fn is_there(&self, handle: u64) -> bool;

    /// Whether it is a service, which can be ended.
    fn is_service(&self, handle: u64) -> bool;

    /// Whether it is a service or a game, which connections may be bound to.
    fn takes_connections(&self, handle: u64) -> bool;

    /// Whether a member would take a message; an error is `gone` or `mailbox-full`.
    fn check_receiver(&self, to: u64) -> Result<(), ServiceError>;

    /// Whether a guest of kind `service` has that name.
    fn has_guest(&self, guest: &str) -> bool;

    /// Who has a name.
    fn query(&self, name: &str) -> Option<u64>;

    /// Whether so much may be published in that channel.
    fn check_publication(&self, channel: &str, bytes: usize) -> Result<(), ServiceError>;

    /// How many are subscribed to a channel.
    fn subscribers(&self, channel: &str) -> u32;

    /// A shared blob.
    fn blob(&self, name: &str) -> Option<SharedBlob>;

    /// Whether a blob of that length could be published under that name.
    fn check_blob(&self, name: &str, bytes: usize) -> Result<(), SharedError>;

    /// The most that all shared blobs may count together.
    fn max_shared_bytes(&self) -> usize;

    /// Whether a connection is open, to whomever it is bound.
    fn is_open(&self, connection: u64) -> bool;

    /// A handle that nobody has.
    fn new_handle(&self) -> u64;

    /// A session that nobody has.
    fn new_session(&self) -> u64;

    /// The id of a subscription that nobody has.
    fn new_subscription(&self) -> u64;

    /// Requests of one guest that may wait for an answer.
    fn max_waiting(&self) -> u32;
}

/// What letters will have changed once they are delivered.
#[derive(Debug, Default)]
struct Ahead {
    /// Who will have a name.
    names: FxHashMap<String, Last<Option<u64>>>,
    /// Whether there will be a shared blob.
    blobs: FxHashMap<String, Last<bool>>,
    launched: FxHashSet<u64>,
    ended: FxHashSet<u64>,
}

/// What the last of so many letters about one thing says of it.
#[derive(Debug, Default)]
struct Last<T> {
    what: T,
    letters: u32,
}

/// Notes letters of which the last says that of a name.
fn note<T: Default>(ahead: &mut FxHashMap<String, Last<T>>, name: &str, what: T, letters: u32) {
    let last = ahead.entry(name.to_owned()).or_default();
    last.what = what;
    last.letters += letters;
}

/// One of the letters about a name is delivered.
fn note_delivered<T>(ahead: &mut FxHashMap<String, Last<T>>, name: &str) {
    let Some(last) = ahead.get_mut(name) else { return };
    last.letters -= 1;
    if last.letters == 0 {
        ahead.remove(name);
    }
}

/// What is a game's own.
#[derive(Debug, Default)]
struct Own {
    subscriptions: Layered<u64>,
    watched: Layered<String>,
    unfinished: Unfinished,
    /// Requests that wait for an answer, or whose answer the game has yet to hear.
    open_requests: u32,
}

/// The book.
#[derive(Default)]
pub struct LetterBook {
    /// Absent where there are no services.
    view: Option<Box<dyn ServiceView>>,
    own: FxHashMap<GuestId, Own>,
    /// By letters that wait until what they tell is on disk.
    waiting: Ahead,
    /// By those of the handler that runs.
    noted: Ahead,
    /// Services that delivered letters have ended, and that are still there for a moment.
    ending: FxHashSet<u64>,
    noted_requests: u32,
    /// Whose handler it is, once it has noted anything.
    guest: Option<GuestId>,
}

impl LetterBook {
    /// A book over the services that there are.
    pub fn new(view: Box<dyn ServiceView>) -> Self {
        Self { view: Some(view), ..Self::default() }
    }

    /// Services as they are now.
    pub(super) fn view(&self) -> wasmtime::Result<&dyn ServiceView> {
        self.view.as_deref().ok_or_else(|| wasmtime::format_err!("there are no services here"))
    }

    /// Whether services will be otherwise once letters are delivered that wait.
    pub(super) fn has_waiting(&self) -> bool {
        let Ahead { names, blobs, launched, ended } = &self.waiting;
        !(names.is_empty() && blobs.is_empty() && launched.is_empty() && ended.is_empty())
    }

    fn own(&mut self, guest: GuestId) -> &mut Own {
        self.guest = Some(guest);
        self.own.entry(guest).or_default()
    }

    /// Whether somebody has that handle, as the handler that runs sees it.
    pub(super) fn is_there(&self, handle: u64) -> bool {
        self.of_letters(handle).unwrap_or_else(|| self.view.as_ref().is_some_and(|view| view.is_there(handle)))
    }

    /// Whether a connection may be bound to that handle, as the handler that runs sees it.
    pub(super) fn takes_connections(&self, handle: u64) -> bool {
        let is_there = || self.view.as_ref().is_some_and(|view| view.takes_connections(handle));
        self.of_letters(handle).unwrap_or_else(is_there)
    }

    /// Whether letters have launched or ended that service.
    fn of_letters(&self, handle: u64) -> Option<bool> {
        let both = [&self.noted, &self.waiting];
        if self.ending.contains(&handle) || both.iter().any(|ahead| ahead.ended.contains(&handle)) {
            return Some(false);
        }
        both.iter().any(|ahead| ahead.launched.contains(&handle)).then_some(true)
    }

    /// Whether a message can be sent to that handle.
    pub(super) fn check_receiver(&self, to: u64) -> wasmtime::Result<Result<(), ServiceError>> {
        match self.of_letters(to) {
            Some(true) => Ok(Ok(())),
            Some(false) => Ok(Err(ServiceError::Gone(format!("the service {to} is being ended")))),
            None => Ok(self.view()?.check_receiver(to)),
        }
    }

    /// A service is launched; the answer is its handle.
    pub(super) fn launch(&mut self, guest: &str) -> wasmtime::Result<Result<u64, ServiceError>> {
        if !self.view()?.has_guest(guest) {
            return Ok(Err(ServiceError::NoSuchGuest));
        }
        let handle = self.view()?.new_handle();
        self.noted.launched.insert(handle);
        Ok(Ok(handle))
    }

    /// A service is ended; false when there is none with that handle.
    pub(super) fn kill(&mut self, handle: u64) -> wasmtime::Result<bool> {
        let is_service = match self.of_letters(handle) {
            Some(is_there) => is_there,
            None => self.view()?.is_service(handle),
        };
        if is_service {
            self.noted.ended.insert(handle);
        }
        Ok(is_service)
    }

    /// Who has a name, as the handler that runs sees it.
    pub(super) fn query(&self, name: &str) -> wasmtime::Result<Option<u64>> {
        match [&self.noted, &self.waiting].iter().find_map(|ahead| ahead.names.get(name)) {
            Some(ahead) => Ok(ahead.what),
            None => Ok(self.view()?.query(name)),
        }
    }

    /// A service gets a name. Whether a letter is needed: not where it has it already.
    pub(super) fn register(&mut self, name: &str, service: u64) -> wasmtime::Result<Result<bool, ServiceError>> {
        if let Err(error) = check_name(name) {
            return Ok(Err(error));
        }
        if !self.is_there(service) {
            return Ok(Err(nobody(service)));
        }
        Ok(match self.query(name)? {
            Some(holder) if holder == service => Ok(false),
            Some(_) => Err(ServiceError::NameTaken),
            None => {
                note(&mut self.noted.names, name, Some(service), 1);
                Ok(true)
            }
        })
    }

    /// A name is taken away; false when nobody has it.
    pub(super) fn unregister(&mut self, name: &str) -> wasmtime::Result<bool> {
        let is_given = self.query(name)?.is_some();
        if is_given {
            note(&mut self.noted.names, name, None, 1);
        }
        Ok(is_given)
    }

    /// A request begins; the answer is its session.
    pub(super) fn begin_request(&mut self, guest: GuestId) -> wasmtime::Result<Result<u64, ServiceError>> {
        let limit = self.view()?.max_waiting();
        let open = self.own(guest).open_requests + self.noted_requests;
        if open >= limit {
            return Ok(Err(ServiceError::TooMany(limit)));
        }
        self.noted_requests += 1;
        Ok(Ok(self.view()?.new_session()))
    }

    /// A guest has heard the answer to a request, or never will.
    pub fn request_is_over(&mut self, guest: GuestId) {
        if let Some(own) = self.own.get_mut(&guest) {
            own.open_requests = own.open_requests.saturating_sub(1);
        }
    }

    /// A guest subscribes to a channel; the answer is the subscription.
    pub(super) fn subscribe(&mut self, guest: GuestId, channel: &str) -> wasmtime::Result<Result<u64, ServiceError>> {
        if let Err(error) = self.view()?.check_publication(channel, 0) {
            return Ok(Err(error));
        }
        if self.own(guest).subscriptions.len() >= MAX_SUBSCRIPTIONS {
            return Ok(Err(ServiceError::TooMany(MAX_SUBSCRIPTIONS as u32)));
        }
        let id = self.view()?.new_subscription();
        self.own(guest).subscriptions.insert(id);
        Ok(Ok(id))
    }

    /// A subscription ends; false when the guest has none with that id.
    pub(super) fn unsubscribe(&mut self, guest: GuestId, id: u64) -> bool {
        self.own(guest).subscriptions.remove(id)
    }

    /// A guest watches a name: whether it was not watching it before. `None` when it watches too many.
    pub(super) fn watch(&mut self, guest: GuestId, name: &str) -> Option<bool> {
        let watched = &mut self.own(guest).watched;
        if watched.len() >= MAX_BLOB_NAMES && !watched.contains(name) {
            return None;
        }
        Some(watched.insert(name.to_owned()))
    }

    /// It watches a name no more; false when it did not.
    pub(super) fn unwatch(&mut self, guest: GuestId, name: &str) -> bool {
        self.own(guest).watched.remove(name.to_owned())
    }

    /// A shared blob is published.
    pub(super) fn put(&mut self, name: &str, bytes: usize) -> wasmtime::Result<Result<(), SharedError>> {
        let checked = self.view()?.check_blob(name, bytes);
        if checked.is_ok() {
            note(&mut self.noted.blobs, name, true, 1);
        }
        Ok(checked)
    }

    /// A shared blob is removed; false when there is none, as the handler that runs sees it.
    pub(super) fn remove(&mut self, name: &str) -> wasmtime::Result<bool> {
        let is_there = match [&self.noted, &self.waiting].iter().find_map(|ahead| ahead.blobs.get(name)) {
            Some(ahead) => ahead.what,
            None => self.view()?.blob(name).is_some(),
        };
        if is_there {
            note(&mut self.noted.blobs, name, false, 1);
        }
        Ok(is_there)
    }

    /// Adds to a blob that a guest puts together. An error drops what was added before.
    pub(super) fn append(
        &mut self,
        guest: GuestId,
        name: &str,
        more: &[u8],
    ) -> wasmtime::Result<Result<(), SharedError>> {
        let bytes = self.own(guest).unfinished.bytes().saturating_add(more.len());
        let checked = self.view()?.check_blob(name, bytes);
        let limit = self.view()?.max_shared_bytes() as u64;
        let unfinished = &mut self.own(guest).unfinished;
        if checked.is_ok() && !unfinished.append(name, more) {
            return Ok(Err(SharedError::Full(limit)));
        }
        if checked.is_err() {
            unfinished.discard(name);
        }
        Ok(checked)
    }

    /// The blob that a guest has put together under a name is done: these are its bytes, if there is one.
    pub(super) fn finish(&mut self, guest: GuestId, name: &str) -> Option<Arc<[u8]>> {
        let blob = self.own(guest).unfinished.finish(name)?;
        note(&mut self.noted.blobs, name, true, 1);
        Some(blob)
    }

    /// Whether a connection is open, to whomever it is bound.
    pub(super) fn is_open(&self, connection: u64) -> bool {
        self.view.as_ref().is_some_and(|view| view.is_open(connection))
    }

    /// The handler has returned, and its letters are on their way.
    pub(super) fn commit(&mut self) {
        let Ahead { names, blobs, launched, ended } = &mut self.noted;
        for (name, ahead) in names.drain() {
            note(&mut self.waiting.names, &name, ahead.what, ahead.letters);
        }
        for (name, ahead) in blobs.drain() {
            note(&mut self.waiting.blobs, &name, ahead.what, ahead.letters);
        }
        self.waiting.launched.extend(launched.drain());
        self.waiting.ended.extend(ended.drain());
        if let Some(own) = self.guest.take().and_then(|guest| self.own.get_mut(&guest)) {
            own.subscriptions.commit();
            own.watched.commit();
            own.unfinished.commit();
            own.open_requests += self.noted_requests;
        }
        self.noted_requests = 0;
    }

    /// The handler has failed, and there are no letters.
    pub(super) fn rollback(&mut self) {
        self.noted = Ahead::default();
        if let Some(own) = self.guest.take().and_then(|guest| self.own.get_mut(&guest)) {
            own.subscriptions.rollback();
            own.watched.rollback();
            own.unfinished.rollback();
        }
        self.noted_requests = 0;
    }

    /// A guest will not run again: what only it knew of is forgotten. Its letters that wait stand.
    pub fn forget(&mut self, guest: GuestId) {
        self.own.remove(&guest);
    }

    /// A letter is delivered: from here on it shows in services themselves.
    pub fn delivered(&mut self, letter: &Letter) {
        match letter {
            Letter::Launch { handle, .. } => drop(self.waiting.launched.remove(handle)),
            Letter::Kill(handle) => {
                self.waiting.ended.remove(handle);
                // It has yet to end, and nobody shall see it again; those that have ended are as good as forgotten.
                self.ending.insert(*handle);
                let view = &self.view;
                self.ending.retain(|handle| view.as_ref().is_some_and(|view| view.is_there(*handle)));
            }
            Letter::Register { name, .. } | Letter::Unregister(name) => note_delivered(&mut self.waiting.names, name),
            Letter::PutShared { name, .. } | Letter::RemoveShared(name) => {
                note_delivered(&mut self.waiting.blobs, name);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "letter_book_tests.rs"]
pub(super) mod tests;
