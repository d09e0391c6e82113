//! The rules of a game: the trait that a `game` guest implements, and the macro that makes it one.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::game as exports;
use crate::bindings::services::{Message as ContractMessage, ServiceError};
use crate::bindings::tasks::TaskFailure;
use crate::instance::{self, Hosted};
use crate::message::Message;
use crate::{ConnectionId, DueEvent, Intent, Occasion, Refusal, Session, TaskId, TimerId, config};

/// The rules of a game. One instance runs on the host's loop, and it alone changes the world.
///
/// Each handler is a transaction: what it did to entities, `kv`, timers, events, tasks, and what it sent, takes effect
/// when it returns `Ok`, and leaves no trace when it returns an error or panics. An error is a deliberate refusal and
/// keeps the instance, a panic costs it.
///
/// The struct's own fields are **not** rolled back, and a replaced instance begins with what was last saved. What must
/// not be lost belongs in [`entities`](crate::entities) and [`kv`](crate::kv).
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use wheelhouse_guest::prelude::*;
///
/// #[derive(Deserialize)]
/// struct Settings {
///     greeting: String,
/// }
///
/// #[derive(Serialize, Deserialize)]
/// struct Hall {
///     greeting: String,
///     greeted: u64,
/// }
///
/// impl Game for Hall {
///     type Config = Settings;
///
///     fn init(config: Settings, _occasion: Occasion) -> Result<Self, Refusal> {
///         Ok(Self { greeting: config.greeting, greeted: 0 })
///     }
///
///     fn on_packet(&mut self, connection: ConnectionId, packet: &[u8]) -> Result<(), Refusal> {
///         let name = std::str::from_utf8(packet)?;
///         info!("{name} came in");
///         self.greeted += 1;
///         gate::send(connection, format!("{}, {name}!", self.greeting))?;
///         Ok(())
///     }
///
///     fn restored(&mut self, fresh: Self) {
///         self.greeting = fresh.greeting; // the configuration may have changed since
///     }
/// }
///
/// wheelhouse_guest::game!(Hall);
/// # fn main() {}
/// ```
#[allow(unused_variables)]
pub trait Game: Serialize + DeserializeOwned + 'static {
    /// What the guest's own table of the configuration is read into; `()` for none.
    type Config: DeserializeOwned + 'static;

    /// The version of this struct's saved form. Raise it when fields change, and let [`migrate`](Self::migrate) read
    /// the older forms.
    const STATE_VERSION: u32 = 1;

    /// Starts the game. `occasion` says what is there already: on [`Occasion::First`] the world is empty, and only on
    /// [`Occasion::First`] and [`Occasion::Resumed`] are timers missing.
    ///
    /// An instance that is `Replaced` finds entities, `kv` and timers as they are, so that making things must ask first
    /// whether they exist.
    fn init(config: Self::Config, occasion: Occasion) -> Result<Self, Refusal>;

    /// A client connected, from the network address `address`. An error closes the connection.
    fn on_connect(&mut self, connection: ConnectionId, address: &str) -> Result<(), Refusal> {
        Ok(())
    }

    /// A client sent a packet. Packets of one client come in order.
    fn on_packet(&mut self, connection: ConnectionId, packet: &[u8]) -> Result<(), Refusal> {
        Ok(())
    }

    /// A client is gone; the last that is heard of this connection.
    fn on_disconnect(&mut self, connection: ConnectionId) -> Result<(), Refusal> {
        Ok(())
    }

    /// A timer fired.
    fn on_timer(&mut self, timer: FiredTimer) -> Result<(), Refusal> {
        Ok(())
    }

    /// A delayed event is due; a game that schedules [`events`](crate::events) handles them here.
    ///
    /// What this handler changes and that the event has run are kept together: after a crash there is either both of it
    /// or neither, and in the second case the event runs again. An error or a panic leaves the event pending: it is
    /// tried again after a pause, which doubles, and after `events.max_attempts` failures it is parked, until an
    /// operator lets it run again or drops it. Others are not held up meanwhile.
    ///
    /// `event.late_ms` says how long ago it was due, which may be days where the host was down; `event.missed` how many
    /// earlier runs of a repeating event this one stands for as well.
    ///
    /// ```
    /// # use serde::{Deserialize, Serialize};
    /// # use wheelhouse_guest::prelude::*;
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Farm;
    /// # impl Game for Farm {
    /// #     type Config = ();
    /// #     fn init(_config: (), _occasion: Occasion) -> Result<Self, Refusal> { Ok(Self) }
    /// fn on_event(&mut self, event: DueEvent) -> Result<(), Refusal> {
    ///     match event.kind.as_str() {
    ///         "ripen" => {
    ///             let field: u32 = event.read()?;
    ///             kv::set(&format!("ripe/{field}"), &true)?;
    ///             Ok(())
    ///         }
    ///         other => refuse!("nobody scheduled an event {other:?}"),
    ///     }
    /// }
    /// # }
    /// ```
    fn on_event(&mut self, event: DueEvent) -> Result<(), Refusal> {
        refuse!("this game handles no events, and got one of the kind {:?}", event.kind)
    }

    /// A service, or another game, sent a message. Where it asked for an answer, the result is the answer.
    ///
    /// A connection that is [bound](crate::gate::bind) to this game is not heard of here: it comes to
    /// [`on_connect`](Self::on_connect) like others.
    fn on_message(&mut self, message: Message) -> Result<Vec<u8>, Refusal> {
        refuse!("this game takes no messages, and got one from {}", message.source)
    }

    /// The answer to one of this game's [`requests`](crate::requests), or why there is none.
    fn on_reply(&mut self, session: Session, answer: Result<Vec<u8>, ServiceError>) -> Result<(), Refusal> {
        Ok(())
    }

    /// A task that this game started has ended.
    fn on_task(&mut self, id: TaskId, outcome: Result<Vec<u8>, TaskFailure>) -> Result<(), Refusal> {
        Ok(())
    }

    /// An NPC wants to act, as its thinker decided.
    fn on_intent(&mut self, intent: Intent) -> Result<(), Refusal> {
        Ok(())
    }

    /// The saved form of another version as this one. Refusing it makes the instance begin afresh, or, at a swap,
    /// keeps the old code.
    fn migrate(version: u32, state: &[u8]) -> Result<Self, Refusal> {
        refuse!("the saved state has version {version}, this game has version {}", Self::STATE_VERSION)
    }

    /// Called after a saved state took the place of what `init` made. `self` is what was saved, `fresh` what `init`
    /// made: take from it what must not come from the past, such as the configuration.
    fn restored(&mut self, fresh: Self) {}
}

/// A timer that fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiredTimer {
    /// Its id.
    pub id: TimerId,
    /// The name that it was set with.
    pub name: String,
    /// The payload that it was set with.
    pub payload: Vec<u8>,
    /// How many earlier runs this one stands for as well.
    pub missed: u32,
}

/// Makes a type that implements [`Game`] the guest that this crate compiles to.
#[macro_export]
macro_rules! game {
    ($game:ty) => {
        const _: () = {
            $crate::__hosted!($game, $game);
            #[allow(dead_code)]
            type Exported = $crate::game::Exported<$game>;
            #[cfg(target_arch = "wasm32")]
            $crate::bindings::game::export_game! { Exported with_types_in $crate::bindings::game }
        };
    };
}

/// What the world `game` exports, over the type `G`.
#[doc(hidden)]
pub struct Exported<G>(PhantomData<G>);

impl<G: Game + Hosted<Instance = G>> exports::Guest for Exported<G> {
    fn init(config: String, occasion: Occasion) -> Result<(), String> {
        instance::start::<G>(|| G::init(config::parse(&config)?, occasion))
    }

    fn on_connect(connection: ConnectionId, address: String) -> Result<(), String> {
        instance::with_instance::<G, _>(|game| game.on_connect(connection, &address))
    }

    fn on_packet(connection: ConnectionId, packet: Vec<u8>) -> Result<(), String> {
        instance::with_instance::<G, _>(|game| game.on_packet(connection, &packet))
    }

    fn on_disconnect(connection: ConnectionId) -> Result<(), String> {
        instance::with_instance::<G, _>(|game| game.on_disconnect(connection))
    }

    fn on_timer(id: TimerId, name: String, payload: Vec<u8>, missed: u32) -> Result<(), String> {
        instance::with_instance::<G, _>(|game| game.on_timer(FiredTimer { id, name, payload, missed }))
    }

    fn on_event(event: DueEvent) -> Result<(), String> {
        instance::with_instance::<G, _>(|game| game.on_event(event))
    }

    fn on_message(message: ContractMessage) -> Result<Vec<u8>, String> {
        instance::with_instance::<G, _>(|game| game.on_message(message.into()))
    }

    fn on_reply(session: Session, answer: Result<Vec<u8>, ServiceError>) -> Result<(), String> {
        instance::with_instance::<G, _>(|game| game.on_reply(session, answer))
    }

    fn on_task(id: TaskId, outcome: Result<Vec<u8>, TaskFailure>) -> Result<(), String> {
        instance::with_instance::<G, _>(|game| game.on_task(id, outcome))
    }

    fn on_intent(intent: Intent) -> Result<(), String> {
        instance::with_instance::<G, _>(|game| game.on_intent(intent))
    }
}

impl<G: Game + Hosted<Instance = G>> exports::exports::wheelhouse::sim::lifecycle::Guest for Exported<G> {
    fn save() -> Vec<u8> {
        instance::save::<G>(|game| instance::encode(G::STATE_VERSION, game))
    }

    fn restore(state: Vec<u8>) -> Result<(), String> {
        instance::with_instance::<G, _>(|game| {
            let saved = instance::read_state(&state, G::STATE_VERSION, G::migrate)?;
            let fresh = std::mem::replace(game, saved);
            game.restored(fresh);
            Ok(())
        })
    }
}
