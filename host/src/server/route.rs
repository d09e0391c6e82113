//! To whom one connection is bound, and what is still to be told of that. Whoever is to be told may have no room just now;
//! so what happens to a connection is noted here, and the [`Router`](super::router::Router) tells it step by step. Whoever
//! tells holds `delivery`, and so does whoever hands a packet on: no packet comes before its receiver has heard of the
//! connection, or after it has heard that it is gone.
//!
//! Whoever it is bound to hears of it and of its end, however short that was. It hears of it only when the one before has
//! handled the packet that it had in hand, which it may pass on; packets that waited there are given back, and go to the
//! new one before all later ones.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{Notify, Semaphore};

use crate::guest::GuestId;
use crate::net::ConnectionId;
use crate::service::Member;

/// Packets of one connection that may wait where it is bound to: a client in a hurry waits for itself.
pub const MAX_WAITING_PACKETS: usize = 4;

/// What may wait to be told of one connection. A guest that binds it back and forth faster than others can hear of it
/// loses it.
const MAX_NOTICES: usize = 64;

/// To whom a connection is bound.
#[derive(Clone, Debug)]
pub enum Bound {
    /// To nobody: it is gone.
    Nobody,
    /// To a game on the loop.
    Game(GuestId),
    /// To a service.
    Member(Arc<Member>),
}

impl PartialEq for Bound {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Bound::Nobody, Bound::Nobody) => true,
            (Bound::Game(one), Bound::Game(other)) => one == other,
            (Bound::Member(one), Bound::Member(other)) => one.handle == other.handle,
            _ => false,
        }
    }
}

/// One connection.
#[derive(Debug)]
pub struct Route {
    pub connection: ConnectionId,
    /// The client's address, for whoever hears of it next.
    pub address: String,
    /// Held by whoever delivers anything to whom the connection is bound.
    pub delivery: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    closing: Notify,
}

#[derive(Debug)]
struct State {
    bound: Bound,
    /// What is still to be told, in order.
    notices: VecDeque<Notice>,
    is_open: bool,
    /// For packets to `bound`.
    room: Arc<Semaphore>,
    /// The rooms of those who had it before, as far as they have packets of it yet.
    rooms_before: Vec<Arc<Semaphore>>,
    /// Packets that came back from them.
    given_back: VecDeque<Bytes>,
}

/// What is to be told.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// It is this one's from here on.
    Connected(Bound),
    /// It is this one's no more; also whether the client is gone.
    Disconnected(Bound, bool),
}

impl Route {
    /// A connection that has just come, of which nobody has heard.
    pub fn new(connection: ConnectionId, address: String, bound: Bound) -> Self {
        let state = State {
            notices: VecDeque::from([Notice::Connected(bound.clone())]),
            bound,
            is_open: true,
            room: room(),
            rooms_before: Vec::new(),
            given_back: VecDeque::new(),
        };
        Self {
            connection,
            address,
            delivery: tokio::sync::Mutex::new(()),
            state: Mutex::new(state),
            closing: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What it guards is whole between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Binds it to another; `changed` is told who had it, before anybody else can bind it.
    pub fn bind(&self, to: &Bound, changed: impl FnOnce(&Bound)) -> Binding {
        let mut state = self.lock();
        if !state.is_open {
            return Binding::Closed;
        }
        if state.notices.len() >= MAX_NOTICES {
            return Binding::TooOften;
        }
        if state.bound != *to {
            changed(&state.bound);
            let before = std::mem::replace(&mut state.bound, to.clone());
            state.notices.extend([Notice::Disconnected(before, false), Notice::Connected(to.clone())]);
            let before = std::mem::replace(&mut state.room, room());
            if !is_empty(&before) {
                state.rooms_before.push(before);
            }
        }
        Binding::Done
    }

    /// The client is gone; `changed` is told who had it.
    pub fn close(&self, changed: impl FnOnce(&Bound)) {
        let mut state = self.lock();
        changed(&state.bound);
        state.is_open = false;
        let before = std::mem::replace(&mut state.bound, Bound::Nobody);
        state.notices.push_back(Notice::Disconnected(before, true));
        state.given_back.clear();
        state.rooms_before.clear();
        drop(state);
        self.closing.notify_one();
    }

    /// Ends when the client is gone. For whoever holds `delivery`.
    pub async fn until_closed(&self) {
        while self.lock().is_open {
            self.closing.notified().await;
        }
    }

    /// Those who had it before take too long with what they have: they are waited for no more.
    pub fn wait_no_more(&self) {
        self.lock().rooms_before.clear();
    }

    /// To whom it is bound.
    pub fn bound(&self) -> Bound {
        self.lock().bound.clone()
    }

    /// Who is to have its packets and the room for them there; none while there is something to be told.
    pub fn receiver(&self) -> Option<(Bound, Arc<Semaphore>)> {
        let state = self.lock();
        state.notices.is_empty().then(|| (state.bound.clone(), Arc::clone(&state.room)))
    }

    /// Takes a packet back that somebody had who has it no more. False when it is still that one's.
    pub fn give_back(&self, from: &Bound, packet: &Bytes) -> bool {
        let mut state = self.lock();
        if state.bound == *from {
            return false;
        }
        if state.is_open {
            state.given_back.push_back(packet.clone());
        }
        true
    }

    /// Whether packets came back that are to be handed on.
    pub fn has_given_back(&self) -> bool {
        !self.lock().given_back.is_empty()
    }

    /// A packet that came back and is to be handed on before all others.
    pub fn next_given_back(&self) -> Option<Bytes> {
        self.lock().given_back.pop_front()
    }

    /// Whether packets to whom it is bound still take their places in that room.
    pub fn has_room(&self, room: &Arc<Semaphore>) -> bool {
        Arc::ptr_eq(&self.lock().room, room)
    }

    /// A room of somebody who had it before and has packets of it yet.
    pub fn room_before(&self) -> Option<Arc<Semaphore>> {
        let mut state = self.lock();
        state.rooms_before.retain(|room| !is_empty(room));
        state.rooms_before.first().map(Arc::clone)
    }

    /// What is to be told next, if anything.
    pub fn next_notice(&self) -> Option<Notice> {
        self.lock().notices.front().cloned()
    }

    /// That was told.
    pub fn told(&self) {
        self.lock().notices.pop_front();
    }
}

/// What came of binding a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    Done,
    /// The client is gone.
    Closed,
    /// It was bound elsewhere faster than could be told.
    TooOften,
}

fn room() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MAX_WAITING_PACKETS))
}

fn is_empty(room: &Semaphore) -> bool {
    room.available_permits() == MAX_WAITING_PACKETS
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Bound = Bound::Game(GuestId(1));
    const OTHER: Bound = Bound::Game(GuestId(2));

    /// Tells everything, and answers what that was.
    fn tell(route: &Route) -> Vec<Notice> {
        std::iter::from_fn(|| route.next_notice().inspect(|_| route.told())).collect()
    }

    #[test]
    fn who_had_it_hears_that_it_is_gone_before_the_next_hears_of_it() {
        let route = Route::new(7, "client".to_owned(), ONE);
        assert_eq!(tell(&route), [Notice::Connected(ONE)]);
        assert_eq!(route.bind(&OTHER, |before| assert_eq!(*before, ONE)), Binding::Done);
        assert_eq!(tell(&route), [Notice::Disconnected(ONE, false), Notice::Connected(OTHER)]);
        route.close(|before| assert_eq!(*before, OTHER));
        assert_eq!(tell(&route), [Notice::Disconnected(OTHER, true)]);
        assert_eq!(route.bind(&ONE, |_| panic!("it is closed")), Binding::Closed);
        assert_eq!(tell(&route), []);
    }

    #[test]
    fn whoever_had_it_for_a_moment_only_hears_of_that_too() {
        let route = Route::new(7, "client".to_owned(), ONE);
        tell(&route);
        route.bind(&OTHER, |_| {});
        route.bind(&OTHER, |_| panic!("it has it already"));
        route.close(|_| {});
        let expected = [Notice::Disconnected(ONE, false), Notice::Connected(OTHER), Notice::Disconnected(OTHER, true)];
        assert_eq!(tell(&route), expected);
    }

    #[test]
    fn one_that_is_bound_elsewhere_faster_than_can_be_told_is_bound_no_more() {
        let route = Route::new(7, "client".to_owned(), ONE);
        let times =
            (0..1000).take_while(|time| route.bind(if time % 2 == 0 { &OTHER } else { &ONE }, |_| {}) == Binding::Done);
        assert!((10..MAX_NOTICES).contains(&times.count()));
    }

    #[test]
    fn the_room_of_one_is_not_that_of_the_next_and_is_waited_for_until_it_is_empty() {
        let route = Route::new(7, "client".to_owned(), ONE);
        tell(&route);
        let (_, room) = route.receiver().unwrap();
        let taken = Arc::clone(&room).try_acquire_owned().unwrap();
        route.bind(&OTHER, |_| {});
        assert!(!route.has_room(&room), "whoever waits for it looks again");
        assert!(route.receiver().is_none(), "the next one has not heard of it");
        assert!(route.room_before().is_some_and(|before| Arc::ptr_eq(&before, &room)));
        drop(taken);
        assert!(route.room_before().is_none());
        tell(&route);
        assert!(route.receiver().is_some_and(|(to, room)| to == OTHER && room.available_permits() == 4));
    }

    #[test]
    fn packets_that_waited_where_it_was_bound_before_come_back_in_order() {
        let route = Route::new(7, "client".to_owned(), ONE);
        let packets = [Bytes::from("first"), Bytes::from("second")];
        assert!(!route.give_back(&ONE, &packets[0]), "it is that one's");
        route.bind(&OTHER, |_| {});
        assert!(packets.iter().all(|packet| route.give_back(&ONE, packet)));
        assert_eq!([route.next_given_back(), route.next_given_back()], packets.clone().map(Some));
        route.close(|_| {});
        assert!(route.give_back(&OTHER, &packets[0]), "nobody wants it any more");
        assert_eq!(route.next_given_back(), None);
    }
}
