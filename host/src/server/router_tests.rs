//! Connections that come, are bound here and there, and go: who hears what, in which order.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use tokio::runtime::Runtime;

use super::*;
use crate::clock::ManualClock;
use crate::net::GateOptions;
use crate::service::{Handles, ServiceOptions};
use crate::sim::{Firing, LoopContext, LoopCore, SimOptions, Simulation};

const GAME: GuestId = GuestId(3);
const ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 1);

/// Writes down what the loop hears.
#[derive(Default)]
struct Hearing(Vec<String>);

impl Simulation for Hearing {
    type Item = Item;
    type Timer = ();

    fn run_item(&mut self, item: Item, _cx: &mut LoopContext<'_, Self>) -> anyhow::Result<()> {
        self.0.push(match item {
            Item::Connected { game, .. } => format!("{} connected", game.0),
            Item::Packet { game, packet, .. } => format!("{} {}", game.0, String::from_utf8_lossy(&packet)),
            Item::Disconnected { game, is_gone, .. } => format!("{} disconnected {is_gone}", game.0),
            _ => "something else".to_owned(),
        });
        Ok(())
    }

    fn fire_timer(&mut self, _: Firing, _: &mut (), _: &mut LoopContext<'_, Self>) -> anyhow::Result<()> {
        Ok(())
    }
}

struct World {
    core: LoopCore<Hearing>,
    router: Arc<Router>,
    services: Services,
    connections: Connections,
    game: Arc<Member>,
    runtime: Runtime,
}

impl World {
    fn new(watchdog: Option<&str>) -> Self {
        Self::of(watchdog, 100)
    }

    fn of(watchdog: Option<&str>, mailbox_capacity: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let options = ServiceOptions { mailbox_capacity, ..ServiceOptions::default() };
        let services = Services::new(options, 1 << 20, Vec::new(), Handles::beginning_at(1), runtime.handle().clone());
        let game = services.add_member(MemberKind::Game, "rules");
        let core = LoopCore::new(Hearing::default(), SimOptions::default(), ManualClock::shared()).unwrap();
        let connections = Connections::new(&GateOptions::default(), 1);
        let routing = Routing {
            watchdog: watchdog.map(str::to_owned),
            game: Some(GAME),
            games: [(game.handle, GAME)].into_iter().collect(),
            max_packet_bytes: 16,
        };
        let router = Router::start(core.handle(), &services, connections.clone(), routing);
        Self { core, router, services, connections, game, runtime }
    }

    fn member(&self, name: &str) -> Arc<Member> {
        self.services.add_member(MemberKind::Service, name)
    }

    fn gate(&self) -> &Arc<dyn GatePort> {
        self.services.gate().unwrap()
    }

    fn connect(&self, connection: u64) {
        assert_eq!(now(self.router.connected(connection, ADDRESS.into())), Some(Ok(())));
    }

    fn send(&self, connection: u64, packet: &'static str) {
        assert_eq!(now(self.router.packet(connection, Bytes::from_static(packet.as_bytes()))), Some(Ok(())));
    }

    fn leave(&self, connection: u64) {
        assert_eq!(now(self.router.disconnected(connection, CloseReason::ClientLeft)), Some(()));
    }

    /// What the loop has heard.
    fn heard_by_loop(&mut self) -> Vec<String> {
        self.core.turn();
        std::mem::take(&mut self.core.simulation().0)
    }

    /// Lets tasks that were begun go on until they wait.
    fn let_tasks_run(&self) {
        self.runtime.block_on(async {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        });
    }
}

/// What a future comes to at once, if it does.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Takes all messages of a member.
fn take(member: &Member) -> VecDeque<Message> {
    let mut taken = VecDeque::new();
    let _ = member.mailbox.poll_take(&mut Context::from_waker(Waker::noop()), &mut taken, usize::MAX);
    taken
}

/// What a member has heard.
fn heard(member: &Member) -> Vec<String> {
    let heard = take(member).into_iter().map(|message| match message.subject {
        Subject::Connected(_) => format!("connected {}", String::from_utf8_lossy(&message.payload)),
        Subject::Packet(_) => String::from_utf8_lossy(&message.payload).into_owned(),
        Subject::Disconnected(_) => "disconnected".to_owned(),
        other => format!("{other:?}"),
    });
    heard.collect()
}

#[test]
fn a_client_in_a_hurry_waits_for_its_own_packets_and_others_do_not_wait_for_them() {
    let mut world = World::new(None);
    [1, 2].iter().for_each(|connection| world.connect(*connection));
    (0..4).for_each(|_| world.send(1, "x"));
    assert_eq!(now(world.router.packet(1, Bytes::new())), None);
    world.send(2, "y");
    world.heard_by_loop();
    world.send(1, "z");
    world.leave(1);
    assert_eq!(world.heard_by_loop(), ["3 z", "3 disconnected true"]);
}

#[test]
fn with_a_watchdog_new_clients_are_its_own_with_the_same_patience() {
    let mut world = World::new(Some("watchdog"));
    let watchdog = world.member("watchdog");
    world.connect(1);
    (0..4).for_each(|_| world.send(1, "x"));
    assert_eq!(now(world.router.packet(1, Bytes::new())), None);
    let messages = take(&watchdog);
    assert_eq!(messages[0].payload, "127.0.0.1:1");
    assert_eq!(world.services.member(messages[0].source).unwrap().label.as_ref(), "gate");
    assert_eq!(now(world.router.packet(1, Bytes::new())), None, "they are in hand, but not handled yet");
    drop(messages);
    world.send(1, "y");
    world.leave(1);
    assert_eq!(heard(&watchdog), ["y", "disconnected"]);
    assert!(world.heard_by_loop().is_empty());
}

#[test]
fn where_there_is_no_watchdog_by_that_name_clients_are_turned_away_until_there_is() {
    let world = World::new(Some("watchdog"));
    let (early, late) = (world.connections.register(), world.connections.register());
    let _ = (&early, &late);
    world.connect(1);
    assert!(!world.connections.is_open(1) && world.connections.is_open(2));
    world.leave(1);
    let watchdog = world.member("watchdog");
    world.connect(2);
    assert_eq!(heard(&watchdog), ["connected 127.0.0.1:1"]);
}

#[test]
fn whoever_a_connection_is_bound_to_hears_its_packets_and_nobody_else() {
    let mut world = World::new(None);
    let _held = world.connections.register();
    let agent = world.member("agent");
    world.connect(1);
    world.send(1, "to the game");
    assert!(world.gate().bind(1, &agent));
    assert_eq!(world.heard_by_loop(), ["3 connected", "3 to the game", "3 disconnected false"]);
    world.let_tasks_run();
    world.send(1, "to the agent");
    assert!(world.gate().bind(1, &agent), "it has it already");
    assert_eq!(heard(&agent), ["connected 127.0.0.1:1", "to the agent"]);
    assert!(world.gate().bind(1, &world.game));
    world.send(1, "back");
    assert_eq!(heard(&agent), ["disconnected"]);
    assert_eq!(world.heard_by_loop(), ["3 connected", "3 back"]);
    world.leave(1);
    assert_eq!(world.heard_by_loop(), ["3 disconnected true"]);
    assert!(!world.gate().bind(1, &agent));
}

#[test]
fn a_packet_that_waits_for_a_place_goes_to_whom_the_connection_is_bound_then() {
    let world = World::new(Some("watchdog"));
    let _held = world.connections.register();
    let (watchdog, agent) = (world.member("watchdog"), world.member("agent"));
    world.connect(1);
    (0..4).for_each(|_| world.send(1, "x"));
    let mut waiting = pin!(world.router.packet(1, Bytes::from_static(b"late")));
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::as_mut(&mut waiting).poll(&mut context).is_pending());
    world.gate().bind(1, &agent);
    world.let_tasks_run();
    assert!(Pin::as_mut(&mut waiting).poll(&mut context).is_pending());
    assert_eq!(heard(&agent), [] as [&str; 0], "the watchdog may yet pass on what it has");
    assert_eq!(heard(&watchdog), ["connected 127.0.0.1:1", "x", "x", "x", "x"]);
    assert!(Pin::as_mut(&mut waiting).poll(&mut context).is_pending());
    world.let_tasks_run();
    assert_eq!(heard(&watchdog), ["disconnected"]);
    assert!(Pin::as_mut(&mut waiting).poll(&mut context).is_ready());
    assert_eq!(heard(&agent), ["connected 127.0.0.1:1", "late"]);
}

#[test]
fn a_notice_that_finds_a_full_mailbox_comes_later_and_before_any_packet() {
    let world = World::of(Some("watchdog"), 2);
    let _held = world.connections.register();
    let (watchdog, agent) = (world.member("watchdog"), world.member("agent"));
    for _ in 0..2 {
        world.services.deliver_to(&agent, Message::new(Handle::HOST, Subject::Plain, Bytes::new())).unwrap();
    }
    world.connect(1);
    assert!(world.gate().bind(1, &agent));
    assert_eq!(heard(&watchdog), ["connected 127.0.0.1:1", "disconnected"]);
    // Before the task that is to tell the agent has run.
    let mut waiting = pin!(world.router.packet(1, Bytes::from_static(b"packet")));
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::as_mut(&mut waiting).poll(&mut context).is_pending());
    assert_eq!(heard(&agent), ["Subject::Plain", "Subject::Plain"]);
    world.let_tasks_run();
    assert!(Pin::as_mut(&mut waiting).poll(&mut context).is_ready());
    assert_eq!(heard(&agent), ["connected 127.0.0.1:1", "packet"]);
}

#[test]
fn the_connections_of_a_service_that_ends_are_closed_and_no_others() {
    let world = World::new(Some("watchdog"));
    let held = [(); 3].map(|()| world.connections.register());
    let _ = &held;
    let (_watchdog, agent, other) = (world.member("watchdog"), world.member("agent"), world.member("other"));
    (1..=3).for_each(|connection| world.connect(connection));
    (1..=2).for_each(|connection| assert!(world.gate().bind(connection, &agent)));
    world.gate().bind(2, &other);
    world.services.remove(&agent, VecDeque::new(), &crate::service::ServiceError::Failed(String::new()));
    assert_eq!([1, 2, 3].map(|connection| world.connections.is_open(connection)), [false, true, true]);
    world.leave(1);
    // Bound to one that has ended meanwhile.
    world.gate().bind(3, &agent);
    assert!(!world.connections.is_open(3));
    world.leave(3);
    assert_eq!(world.router.of_members().iter().map(|(_, connection)| *connection).collect::<Vec<_>>(), [2]);
}

#[test]
fn services_send_packets_that_fit_to_clients_that_are_there() {
    let world = World::new(Some("watchdog"));
    let _held = world.connections.register();
    assert_eq!(world.gate().send(1, b"sixteen bytes ok"), Ok(()));
    assert_eq!(world.gate().send(1, b"seventeen byte no"), Err(PacketRefused::TooLarge(16)));
    assert_eq!(world.gate().send(2, b"nobody"), Err(PacketRefused::Closed));
    assert!(world.gate().close(1) && !world.gate().close(1));
    assert_eq!(world.gate().send(1, b"late"), Err(PacketRefused::Closed));
}

#[test]
fn what_is_sent_to_the_gate_itself_reaches_nobody() {
    let world = World::new(None);
    let gate = world.services.query("gate").unwrap();
    assert!(world.services.deliver(gate, Message::new(Handle(9), Subject::Plain, Bytes::new())).is_err());
    assert_eq!(world.services.snapshot().dead_letters, 1);
}
