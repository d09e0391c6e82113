//! To whom one connection is bound, and what has been told of it to whom. Between binding and telling lies time: who is to
//! be told may have no room just now. So a route keeps the two apart, and the [`Router`](super::router::Router) tells step
//! by step until they agree. Whoever tells holds `delivery`, and so does whoever hands a packet on: no packet comes before
//! its receiver has heard of the connection, or after it has heard that it is gone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

use crate::guest::GuestId;
use crate::net::ConnectionId;
use crate::service::Member;

/// Packets of one connection that may wait where it is bound to: a client in a hurry waits for itself.
pub const MAX_WAITING_PACKETS: usize = 4;

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
}

#[derive(Debug)]
struct State {
    bound: Bound,
    told: Bound,
    is_open: bool,
    /// For packets to `bound`.
    room: Arc<Semaphore>,
    /// For packets to those who had it since the last that was told of it: what they have yet to handle.
    rooms_before: Vec<Arc<Semaphore>>,
}

/// What is to be told next.
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
        let state = State { bound, told: Bound::Nobody, is_open: true, room: room(), rooms_before: Vec::new() };
        Self { connection, address, delivery: tokio::sync::Mutex::new(()), state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What it guards is whole between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Binds it to another; `changed` is told who had it, before anybody else can bind it. False when it is closed.
    pub fn bind(&self, to: &Bound, changed: impl FnOnce(&Bound)) -> bool {
        let mut state = self.lock();
        if state.is_open && state.bound != *to {
            changed(&state.bound);
            state.bound = to.clone();
            let before = std::mem::replace(&mut state.room, room());
            if before.available_permits() < MAX_WAITING_PACKETS {
                state.rooms_before.push(before);
            }
        }
        state.is_open
    }

    /// The client is gone; `changed` is told who had it.
    pub fn close(&self, changed: impl FnOnce(&Bound)) {
        let mut state = self.lock();
        changed(&state.bound);
        state.is_open = false;
        state.bound = Bound::Nobody;
    }

    /// To whom it is bound.
    pub fn bound(&self) -> Bound {
        self.lock().bound.clone()
    }

    /// Who is to have its packets and the room for them there; none while there is something to be told.
    pub fn receiver(&self) -> Option<(Bound, Arc<Semaphore>)> {
        let state = self.lock();
        (state.told == state.bound).then(|| (state.bound.clone(), Arc::clone(&state.room)))
    }

    /// Whether packets to whom it is bound still take their places in that room.
    pub fn has_room(&self, room: &Arc<Semaphore>) -> bool {
        Arc::ptr_eq(&self.lock().room, room)
    }

    /// A room of somebody who had it before and has packets of it yet to handle.
    pub fn room_before(&self) -> Option<Arc<Semaphore>> {
        let mut state = self.lock();
        state.rooms_before.retain(|room| room.available_permits() < MAX_WAITING_PACKETS);
        state.rooms_before.first().map(Arc::clone)
    }

    /// What is to be told next, if anything.
    pub fn next_notice(&self) -> Option<Notice> {
        let state = self.lock();
        match (&state.told, &state.bound) {
            (told, bound) if told == bound => None,
            (Bound::Nobody, bound) => Some(Notice::Connected(bound.clone())),
            (told, _) => Some(Notice::Disconnected(told.clone(), !state.is_open)),
        }
    }

    /// That was told.
    pub fn told(&self, notice: Notice) {
        self.lock().told = match notice {
            Notice::Connected(to) => to,
            Notice::Disconnected(..) => Bound::Nobody,
        };
    }
}

fn room() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MAX_WAITING_PACKETS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Bound = Bound::Game(GuestId(1));
    const OTHER: Bound = Bound::Game(GuestId(2));

    /// Tells everything, and answers what that was.
    fn tell(route: &Route) -> Vec<Notice> {
        let notices = std::iter::from_fn(|| route.next_notice().inspect(|notice| route.told(notice.clone())));
        notices.collect()
    }

    #[test]
    fn who_had_it_hears_that_it_is_gone_before_the_next_hears_of_it() {
        let route = Route::new(7, "client".to_owned(), ONE);
        assert_eq!(tell(&route), [Notice::Connected(ONE)]);
        assert!(route.bind(&OTHER, |before| assert_eq!(*before, ONE)));
        assert_eq!(tell(&route), [Notice::Disconnected(ONE, false), Notice::Connected(OTHER)]);
        route.close(|before| assert_eq!(*before, OTHER));
        assert_eq!(tell(&route), [Notice::Disconnected(OTHER, true)]);
        assert!(!route.bind(&ONE, |_| panic!("it is closed")));
        assert_eq!(tell(&route), []);
    }

    #[test]
    fn whoever_had_it_only_before_anything_was_told_hears_nothing() {
        let route = Route::new(7, "client".to_owned(), ONE);
        tell(&route);
        route.bind(&OTHER, |_| {});
        route.bind(&ONE, |_| {});
        assert_eq!(tell(&route), []);
        route.bind(&OTHER, |_| {});
        route.close(|_| {});
        assert_eq!(tell(&route), [Notice::Disconnected(ONE, true)]);
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
}
