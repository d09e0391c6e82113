//! Who is subscribed to which channel. Publishing itself is the business of [`Services`](super::Services), which has the
//! mailboxes.

use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use rustc_hash::FxHashMap;

use super::handle::Handle;
use crate::guest::service_limits::MAX_SUBSCRIPTIONS;

/// A subscription, as the channel sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription {
    pub id: u64,
    pub subscriber: Handle,
}

/// All channels.
#[derive(Debug, Default)]
pub struct Groups {
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whoever publishes takes a hold of the list, and keeps nobody waiting while it does.
    channels: FxHashMap<Arc<str>, Arc<Vec<Subscription>>>,
    of: FxHashMap<Handle, FxHashMap<u64, Arc<str>>>,
}

impl Groups {
    /// Adds a subscription under that id; false when the subscriber has too many.
    pub fn subscribe(&self, id: u64, subscriber: Handle, channel: &str) -> bool {
        let mut state = self.write();
        let channel = match state.channels.get_key_value(channel) {
            Some((channel, _)) => Arc::clone(channel),
            None => Arc::from(channel),
        };
        let own = state.of.entry(subscriber).or_default();
        if own.len() >= MAX_SUBSCRIPTIONS {
            return false;
        }
        own.insert(id, Arc::clone(&channel));
        Arc::make_mut(state.channels.entry(channel).or_default()).push(Subscription { id, subscriber });
        true
    }

    /// How many subscriptions a member has.
    pub fn count_of(&self, subscriber: Handle) -> usize {
        self.state.read().unwrap_or_else(PoisonError::into_inner).of.get(&subscriber).map_or(0, FxHashMap::len)
    }

    /// Removes a subscription; false when that member has none with that id.
    pub fn unsubscribe(&self, id: u64, subscriber: Handle) -> bool {
        let mut state = self.write();
        let channel = state.of.get_mut(&subscriber).and_then(|own| own.remove(&id));
        channel.is_some_and(|channel| {
            state.leave(&channel, |subscription| subscription.id == id);
            true
        })
    }

    /// A member has ended.
    pub fn remove(&self, subscriber: Handle) {
        let mut state = self.write();
        for channel in state.of.remove(&subscriber).unwrap_or_default().into_values() {
            state.leave(&channel, |subscription| subscription.subscriber == subscriber);
        }
    }

    /// The subscriptions to a channel as they are now, in order of age.
    pub fn subscriptions(&self, channel: &str) -> Arc<Vec<Subscription>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.channels.get(channel).map(Arc::clone).unwrap_or_default()
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn leave(&mut self, channel: &str, is_left: impl Fn(&Subscription) -> bool) {
        if let Some(subscriptions) = self.channels.get_mut(channel) {
            Arc::make_mut(subscriptions).retain(|subscription| !is_left(subscription));
            if subscriptions.is_empty() {
                self.channels.remove(channel);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscribers(groups: &Groups, channel: &str) -> Vec<u64> {
        groups.subscriptions(channel).iter().map(|subscription| subscription.id).collect()
    }

    #[test]
    fn what_is_published_reaches_each_subscription_until_it_ends() {
        let groups = Groups::default();
        assert!(groups.subscribe(1, Handle(7), "hall"));
        assert!(groups.subscribe(2, Handle(8), "hall"));
        assert!(groups.subscribe(3, Handle(7), "hall"), "a second subscription gets its own copy");
        assert_eq!(subscribers(&groups, "hall"), [1, 2, 3]);
        assert!(!groups.unsubscribe(1, Handle(8)), "it is another's");
        assert!(groups.unsubscribe(1, Handle(7)) && !groups.unsubscribe(1, Handle(7)));
        groups.remove(Handle(7));
        assert_eq!(subscribers(&groups, "hall"), [2]);
    }

    #[test]
    fn whoever_publishes_goes_by_the_subscriptions_of_its_beginning_and_keeps_nobody_waiting() {
        let groups = Groups::default();
        groups.subscribe(1, Handle(7), "hall");
        let taken = groups.subscriptions("hall");
        // While the list is held, others come and go.
        groups.subscribe(2, Handle(8), "hall");
        groups.remove(Handle(7));
        assert_eq!(taken.iter().map(|subscription| subscription.id).collect::<Vec<_>>(), [1]);
        assert_eq!(subscribers(&groups, "hall"), [2]);
    }

    #[test]
    fn a_channel_that_nobody_is_subscribed_to_takes_no_memory() {
        let groups = Groups::default();
        groups.subscribe(1, Handle(7), "hall");
        groups.remove(Handle(7));
        let state = groups.write();
        assert!(state.channels.is_empty() && state.of.is_empty());
    }

    #[test]
    fn one_member_has_only_so_many_subscriptions() {
        let groups = Groups::default();
        assert!((0..MAX_SUBSCRIPTIONS as u64).all(|id| groups.subscribe(id, Handle(7), "hall")));
        assert!(!groups.subscribe(5000, Handle(7), "hall") && groups.subscribe(5000, Handle(8), "hall"));
    }
}
