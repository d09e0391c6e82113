//! What services have in common: their names, the channels that they publish in, and shared blobs. The part of
//! [`Services`] that guests' imports, the loop and operators use for it. Whatever is given to a member is given under the
//! directory's lock, so that a member which ends meanwhile takes it along.

use std::sync::Arc;

use bytes::Bytes;

use super::handle::Handle;
use super::message::{Message, ServiceError, Subject};
use super::services::Services;
use super::shared_data::{Published, SharedData, SharedError};
use crate::guest::service_limits::{MAX_NAME_BYTES, MAX_SUBSCRIPTIONS, nobody};

impl Services {
    /// Gives a name to a member.
    pub fn register(&self, name: &str, handle: Handle) -> Result<(), ServiceError> {
        let held = self.shared.directory.get(&handle).ok_or_else(|| nobody(handle.0))?;
        self.shared.names.register(name, held.handle)
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
        if channel.len() > MAX_NAME_BYTES {
            return Err(ServiceError::TooLarge(MAX_NAME_BYTES as u32));
        }
        self.check_payload(bytes)
    }

    /// Sends a payload to all subscribers of a channel, and says how many have it.
    pub fn publish(&self, source: Handle, channel: &str, payload: &Bytes) -> Result<u32, ServiceError> {
        self.check_publication(channel, payload.len())?;
        let mut reached = 0;
        // Those that are subscribed now; nobody who subscribes meanwhile waits for this.
        for subscription in self.shared.groups.subscriptions(channel).iter() {
            let subject = Subject::Published(subscription.id);
            match self.deliver(subscription.subscriber, Message::new(source, subject, payload.clone())) {
                Ok(()) => reached += 1,
                Err(ServiceError::MailboxFull(_)) => {
                    let reason = format!("its mailbox was full when {channel:?} was published");
                    self.shared.dead_letters.note(source, subscription.subscriber, payload.len(), reason);
                }
                Err(_) => {}
            }
        }
        Ok(reached)
    }

    /// How many are subscribed to a channel.
    pub fn subscribers(&self, channel: &str) -> u32 {
        self.shared.groups.subscriptions(channel).len() as u32
    }

    /// Subscribes a member to a channel under an id from [`new_number`](Self::new_number).
    pub fn subscribe(&self, id: u64, subscriber: Handle, channel: &str) -> Result<(), ServiceError> {
        self.check_publication(channel, 0)?;
        let held = self.shared.directory.get(&subscriber).ok_or_else(|| nobody(subscriber.0))?;
        if self.shared.groups.subscribe(id, held.handle, channel) {
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

    /// Has a member told of what is published under a name; false when it watches too many, or has ended.
    pub fn watch(&self, watcher: Handle, name: &str) -> bool {
        let held = self.shared.directory.get(&watcher);
        held.is_some_and(|member| self.shared.data.watch(member.handle, name))
    }

    /// Publishes a shared blob that came in one piece, and tells who watches it.
    pub fn put(&self, by: Handle, name: &str, bytes: &[u8]) -> Result<(), SharedError> {
        let published = self.shared.data.put(name, bytes)?;
        self.tell_watchers(by, name, &published);
        Ok(())
    }

    /// Publishes a shared blob that is whole already, and tells who watches it.
    pub fn put_whole(&self, by: Handle, name: &str, bytes: Arc<[u8]>) -> Result<(), SharedError> {
        let published = self.shared.data.put_whole(name, bytes)?;
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
}

#[cfg(test)]
#[path = "commons_tests.rs"]
mod tests;
