//! The way of everything that clients do to whom it is for: the game at the gate, or a service. It is the gate's sink, and
//! the port by which services send to clients, close them and bind them elsewhere. It never looks into a packet.
//!
//! A new connection goes to the service that `gate.watchdog` names, or where there is no such key to the game at the gate;
//! from there it may be bound elsewhere. Games hear of their connections by work items, services by messages. A full queue
//! or mailbox makes the gate wait, and with it the client's socket; and so does a client with many packets that have yet
//! to be handled.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use dashmap::DashMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::config::Config;
use super::route::{Binding, Bound, MAX_WAITING_PACKETS, Notice, Route};
use super::simulation::{HostSimulation, Item};
use crate::guest::GuestId;
use crate::net::{CloseReason, ConnectionId, Connections, GateSink, SendError, SinkClosed};
use crate::service::mailbox::Refused;
use crate::service::{GatePort, Handle, Member, MemberKind, Message, PacketRefused, Place, Services, Subject};
use crate::sim::LoopHandle;

/// How long whoever had a connection may take to handle the packets that it has in hand before the next one hears of it: as
/// long as a service may compute.
const HANDOVER_LIMIT: Duration = Duration::from_secs(1);

/// Where connections go.
pub struct Router {
    handle: LoopHandle<Item>,
    services: Services,
    connections: Connections,
    routing: Routing,
    /// The gate itself, as the source of what services hear of connections. It takes no messages.
    gate: Handle,
    routes: DashMap<ConnectionId, Arc<Route>, FxBuildHasher>,
    /// The connections of each service: pairs of its handle and a connection.
    of_members: Mutex<BTreeSet<(u64, ConnectionId)>>,
    turned_away: AtomicU64,
    itself: Weak<Router>,
}

/// Who is at the gate.
pub struct Routing {
    /// The name of the service that hears of new connections.
    pub watchdog: Option<String>,
    /// The game that hears of them where no service does.
    pub game: Option<GuestId>,
    /// The games, as services know them.
    pub games: FxHashMap<Handle, GuestId>,
    /// Bytes of one packet to a client.
    pub max_packet_bytes: usize,
}

impl HostSimulation {
    /// Who is at the gate of a host with these games.
    pub(super) fn routing(&self, config: &Config) -> Routing {
        Routing {
            watchdog: config.gate.watchdog.clone(),
            game: self.guests.at_the_gate,
            games: self.letters.members().map(|(game, member)| (member.handle, game)).collect(),
            max_packet_bytes: config.gate.options.max_frame_bytes,
        }
    }
}

impl Router {
    /// A router over the loop behind `handle` and over services, which reach their clients by it from now on.
    pub fn start(
        handle: LoopHandle<Item>,
        services: &Services,
        connections: Connections,
        routing: Routing,
    ) -> Arc<Self> {
        let gate = services.add_member(MemberKind::Native, "gate");
        // Whatever is sent to it is a dead letter.
        gate.mailbox.close();
        let router = Arc::new_cyclic(|itself| Self {
            handle,
            services: services.clone(),
            connections,
            routing,
            gate: gate.handle,
            routes: DashMap::default(),
            of_members: Mutex::default(),
            turned_away: AtomicU64::new(0),
            itself: Weak::clone(itself),
        });
        // Services must not keep alive what keeps them alive.
        services.set_gate(Arc::new(Port { router: Arc::downgrade(&router) }));
        router
    }

    /// Whoever hears of a connection that comes now.
    fn newcomers_go_to(&self) -> Option<Bound> {
        match &self.routing.watchdog {
            Some(name) => {
                let member = self.services.query(name).and_then(|handle| self.services.member(handle));
                member.filter(|member| member.takes_connections()).map(|member| self.to(&member))
            }
            None => self.routing.game.map(Bound::Game),
        }
    }

    fn to(&self, member: &Arc<Member>) -> Bound {
        match self.routing.games.get(&member.handle) {
            Some(game) => Bound::Game(*game),
            None => Bound::Member(Arc::clone(member)),
        }
    }

    fn turn_away(&self, connection: ConnectionId) {
        self.connections.close(connection);
        let clients = self.turned_away.fetch_add(1, Ordering::Relaxed) + 1;
        // Told at each doubling, since clients decide how many there are.
        if clients.is_power_of_two() {
            match &self.routing.watchdog {
                Some(name) => tracing::warn!(
                    clients,
                    "clients are turned away: gate.watchdog is {name:?}, and no service has that name; start it, or mend the key"
                ),
                None => {
                    tracing::warn!(clients, "clients are turned away: there is no game that runs and no gate.watchdog")
                }
            }
        }
    }

    /// Has a service, but no game, in the list of those whose end closes a connection; and whoever had it no more.
    fn list(&self, connection: ConnectionId, before: &Bound, now: &Bound) {
        let mut of_members = self.of_members();
        if let Bound::Member(member) = before {
            of_members.remove(&(member.handle.0, connection));
        }
        if let Bound::Member(member) = now {
            of_members.insert((member.handle.0, connection));
        }
    }

    fn of_members(&self) -> MutexGuard<'_, BTreeSet<(u64, ConnectionId)>> {
        self.of_members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells everybody concerned of a route until there is nothing to tell. Its delivery must be held.
    async fn settle(&self, route: &Route) -> Result<(), SinkClosed> {
        while let Some(notice) = route.next_notice() {
            if let (Notice::Connected(_), Some(before)) = (&notice, route.room_before()) {
                self.wait_for(route, &before).await;
                continue;
            }
            match self.delivery_of(route, &notice) {
                Delivery::Member(member, message) => self.push(route, &member, message).await,
                Delivery::Loop(item) => self.handle.post(item).await.map_err(|_| SinkClosed)?,
                Delivery::Nobody => {}
            }
            route.told();
        }
        // There is room for what came back: it is no more than one room holds, and nothing else has come.
        while let (Some((to, room)), Some(packet)) = (route.receiver(), route.next_given_back()) {
            let place = room.acquire_owned().await.map_err(|_| SinkClosed)?;
            self.deliver(route, to, packet, place).await?;
        }
        Ok(())
    }

    /// Waits until somebody who had a connection before has handled what it had of it, for a while.
    async fn wait_for(&self, route: &Route, room_before: &Semaphore) {
        let limit = {
            let _runtime = self.services.runtime().enter();
            tokio::time::sleep(HANDOVER_LIMIT)
        };
        tokio::select! {
            // A room is never closed.
            _ = room_before.acquire_many(MAX_WAITING_PACKETS as u32) => {}
            () = route.until_closed() => {}
            () = limit => {
                tracing::debug!(connection = route.connection, "a connection is handed on before its packets are handled");
                route.wait_no_more();
            }
        }
    }

    /// [`settle`](Self::settle) as far as it needs no waiting, and the rest as a task.
    fn settle_soon(&self, route: Arc<Route>) {
        let is_settled = route.delivery.try_lock().is_ok_and(|_delivering| self.try_settle(&route));
        if let (false, Some(router)) = (is_settled, self.itself.upgrade()) {
            self.services.runtime().spawn(async move {
                let _delivering = route.delivery.lock().await;
                // A loop that takes nothing more has forgotten its connections.
                let _ = router.settle(&route).await;
            });
        }
    }

    fn try_settle(&self, route: &Route) -> bool {
        while let Some(notice) = route.next_notice() {
            if matches!(notice, Notice::Connected(_)) && route.room_before().is_some() {
                return false;
            }
            let is_told = match self.delivery_of(route, &notice) {
                Delivery::Member(member, message) => match member.push(message) {
                    Ok(_) => true,
                    Err(Refused::Full(_)) => false,
                    Err(Refused::Closed(_)) => {
                        self.is_gone(&member, route);
                        true
                    }
                },
                Delivery::Loop(item) => self.handle.try_post(item).is_ok(),
                Delivery::Nobody => true,
            };
            if !is_told {
                return false;
            }
            route.told();
        }
        !route.has_given_back()
    }

    fn delivery_of(&self, route: &Route, notice: &Notice) -> Delivery {
        let connection = route.connection;
        let (bound, subject, payload) = match notice {
            Notice::Connected(to) => {
                (to, Subject::Connected(connection), Bytes::copy_from_slice(route.address.as_bytes()))
            }
            Notice::Disconnected(from, _) => (from, Subject::Disconnected(connection), Bytes::new()),
        };
        match (bound, notice) {
            (Bound::Nobody, _) => Delivery::Nobody,
            (Bound::Member(member), _) => {
                Delivery::Member(Arc::clone(member), Message::new(self.gate, subject, payload))
            }
            (Bound::Game(game), Notice::Connected(_)) => {
                Delivery::Loop(Item::Connected { game: *game, connection, address: route.address.clone() })
            }
            (Bound::Game(game), Notice::Disconnected(_, is_gone)) => {
                Delivery::Loop(Item::Disconnected { game: *game, connection, is_gone: *is_gone })
            }
        }
    }

    /// Puts a message into a service's mailbox once there is room.
    async fn push(&self, route: &Route, member: &Arc<Member>, message: Message) {
        if member.push_when_there_is_room(message).await.is_err() {
            self.is_gone(member, route);
        }
    }

    /// A service takes nothing more: a connection that is bound to it is closed.
    fn is_gone(&self, member: &Arc<Member>, route: &Route) {
        if route.bound() == Bound::Member(Arc::clone(member)) {
            self.connections.close(route.connection);
        }
    }

    /// Hands a packet to whom its connection is bound, in the place that it has there.
    async fn deliver(
        &self,
        route: &Route,
        to: Bound,
        packet: Bytes,
        place: OwnedSemaphorePermit,
    ) -> Result<(), SinkClosed> {
        let connection = route.connection;
        match to {
            Bound::Game(game) => {
                let item = Item::Packet { game, connection, packet, _place: place };
                self.handle.post(item).await.map_err(|_| SinkClosed)
            }
            Bound::Member(member) => {
                let message = Message::new(self.gate, Subject::Packet(connection), packet);
                let place = Place { permit: place, is_passed_on: false };
                self.push(route, &member, Message { place: Some(place), ..message }).await;
                Ok(())
            }
            Bound::Nobody => Err(SinkClosed),
        }
    }
}

/// What somebody is told of a connection, and by which way.
enum Delivery {
    Loop(Item),
    Member(Arc<Member>, Message),
    Nobody,
}

impl GateSink for Router {
    async fn connected(&self, connection: ConnectionId, peer: SocketAddr) -> Result<(), SinkClosed> {
        let Some(bound) = self.newcomers_go_to() else {
            self.turn_away(connection);
            return Ok(());
        };
        self.list(connection, &Bound::Nobody, &bound);
        let route = Arc::new(Route::new(connection, peer.to_string(), bound));
        self.routes.insert(connection, Arc::clone(&route));
        let _delivering = route.delivery.lock().await;
        let told = self.settle(&route).await;
        if told.is_err() {
            self.routes.remove(&connection);
            route.close(|bound| self.list(connection, bound, &Bound::Nobody));
        }
        told
    }

    async fn packet(&self, connection: ConnectionId, payload: Bytes) -> Result<(), SinkClosed> {
        let route = self.routes.get(&connection).map(|route| Arc::clone(&route)).ok_or(SinkClosed)?;
        loop {
            let _delivering = route.delivery.lock().await;
            self.settle(&route).await?;
            let Some((to, room)) = route.receiver() else { continue };
            if to == Bound::Nobody {
                return Err(SinkClosed);
            }
            let place = Arc::clone(&room).acquire_owned().await.map_err(|_| SinkClosed)?;
            // Where it was bound elsewhere meanwhile there is another room.
            if route.has_room(&room) {
                return self.deliver(&route, to, payload, place).await;
            }
        }
    }

    async fn disconnected(&self, connection: ConnectionId, _reason: CloseReason) {
        let Some((_, route)) = self.routes.remove(&connection) else { return };
        route.close(|bound| self.list(connection, bound, &Bound::Nobody));
        let _delivering = route.delivery.lock().await;
        // A loop that takes nothing more has forgotten its connections already.
        let _ = self.settle(&route).await;
    }
}

/// The router, as services have it.
struct Port {
    router: Weak<Router>,
}

impl GatePort for Port {
    fn send(&self, connection: u64, packet: &[u8]) -> Result<(), PacketRefused> {
        let Some(router) = self.router.upgrade() else { return Err(PacketRefused::Closed) };
        let limit = router.routing.max_packet_bytes;
        if packet.len() > limit {
            return Err(PacketRefused::TooLarge(limit));
        }
        router.connections.send(connection, packet).map_err(|error| match error {
            SendError::TooLarge(_) => PacketRefused::TooLarge(limit),
            SendError::Unknown { .. } | SendError::Closed { .. } | SendError::Backlog { .. } => PacketRefused::Closed,
        })
    }

    fn close(&self, connection: u64) -> bool {
        self.router.upgrade().is_some_and(|router| router.connections.close(connection))
    }

    fn bind(&self, connection: u64, to: &Arc<Member>) -> bool {
        let Some(router) = self.router.upgrade() else { return false };
        let Some(route) = router.routes.get(&connection).map(|route| Arc::clone(&route)) else { return false };
        if !router.connections.is_open(connection) {
            return false;
        }
        let bound = router.to(to);
        match route.bind(&bound, |before| router.list(connection, before, &bound)) {
            Binding::Done => {
                router.settle_soon(route);
                true
            }
            Binding::Closed => false,
            Binding::TooOften => {
                tracing::warn!(
                    connection,
                    "a client is closed: guests bound it back and forth faster than others can hear"
                );
                router.connections.close(connection);
                false
            }
        }
    }

    fn give_back(&self, connection: u64, from: Handle, packet: &Bytes) -> bool {
        let Some(router) = self.router.upgrade() else { return false };
        // Of a client that is gone it is still heard what it has sent before.
        let Some(route) = router.routes.get(&connection).map(|route| Arc::clone(&route)) else { return false };
        let Some(member) = router.services.member(from) else { return false };
        let is_given_back = route.give_back(&router.to(&member), packet);
        if is_given_back {
            router.settle_soon(route);
        }
        is_given_back
    }

    fn member_ended(&self, member: Handle) {
        let Some(router) = self.router.upgrade() else { return };
        let of_member = (member.0, 0)..=(member.0, ConnectionId::MAX);
        let connections: Vec<_> = router.of_members().range(of_member).map(|(_, connection)| *connection).collect();
        for connection in connections {
            router.connections.close(connection);
        }
    }
}

#[cfg(test)]
#[path = "router_tests.rs"]
mod tests;
