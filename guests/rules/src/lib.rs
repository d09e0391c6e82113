//! The rules of Meadow: players walk among sheep and wolves, look, talk and fight, plant and harvest, and march to
//! battles that are settled later. A packet is one line of text, so that a person can play by hand.
//!
//! Nothing is kept in memory but the configuration: who plays and how many live is in `kv`, health and crops are in the
//! entities, and what is to happen later waits as an event. So all of it is there after a restart.

mod battles;
mod command;
mod config;
mod crops;
mod errands;
mod fight;
mod persons;
mod players;
mod population;

use std::fmt::Write;

use command::Command;
use config::Config;
use meadow::kind;
use serde::{Deserialize, Serialize};
use wheelhouse_guest::gate::GateError;
use wheelhouse_guest::prelude::*;

/// How far a player sees, in tiles, and how many of what is there.
const SIGHT_TILES: u32 = 8;
const MAX_SEEN: u32 = 16;

/// How far a voice carries, in tiles, and among how many it is looked for who hears.
const VOICE_TILES: u32 = 16;
const MAX_HEARERS: u32 = 1024;

/// The rules.
#[derive(Serialize, Deserialize)]
struct Rules {
    #[serde(skip)]
    config: Config,
}

impl Game for Rules {
    type Config = Config;

    fn init(config: Config, occasion: Occasion) -> Result<Self, Refusal> {
        if matches!(occasion, Occasion::First | Occasion::Resumed) {
            players::clear()?;
            errands::clear()?;
        }
        population::start()?;
        Ok(Self { config })
    }

    fn restored(&mut self, fresh: Self) {
        *self = fresh;
    }

    fn on_connect(&mut self, connection: ConnectionId, _address: &str) -> Result<(), Refusal> {
        players::enter(connection, &self.config)
    }

    fn on_packet(&mut self, connection: ConnectionId, packet: &[u8]) -> Result<(), Refusal> {
        match command::parse(packet) {
            Ok(Command::Ping(text)) => answer(connection, format!("pong {text}")),
            Ok(Command::Look) => look(connection),
            Ok(Command::Walk(dx, dy)) => self.walk(connection, dx, dy),
            Ok(Command::Say(text)) => say(connection, text),
            Ok(Command::Attack(target)) => fight::attack(&self.config, connection, target),
            Ok(Command::Name(name)) => players::introduce(connection, name),
            Ok(Command::Plant) => crops::plant(&self.config, connection),
            Ok(Command::Harvest) => crops::harvest(connection),
            Ok(Command::Challenge(defender)) => battles::challenge(&self.config, connection, defender),
            Ok(Command::Retreat) => battles::retreat(connection),
            Ok(Command::Chronicle) => chronicle(connection),
            Ok(Command::Terrain { seed, size }) => errands::terrain(connection, seed, size),
            Ok(Command::Census) => errands::census(connection),
            Ok(Command::Forecast(days)) => errands::forecast(connection, days),
            Ok(Command::Help) => answer(connection, command::HELP),
            Err(no_command) => answer(connection, no_command.to_string()),
        }
    }

    fn on_disconnect(&mut self, connection: ConnectionId) -> Result<(), Refusal> {
        players::leave(connection)
    }

    fn on_timer(&mut self, timer: FiredTimer) -> Result<(), Refusal> {
        match timer.name.as_str() {
            population::TIMER => population::turn(&self.config, &timer),
            other => refuse!("nobody set a timer {other:?}"),
        }
    }

    fn on_event(&mut self, event: DueEvent) -> Result<(), Refusal> {
        match event.kind.as_str() {
            crops::RIPEN => crops::ripen(&self.config, &event),
            battles::BATTLE => battles::settle(&event),
            other => refuse!("nobody scheduled an event {other:?}"),
        }
    }

    fn on_task(&mut self, id: TaskId, outcome: Result<Vec<u8>, TaskFailure>) -> Result<(), Refusal> {
        errands::ended(id, outcome)
    }

    fn on_intent(&mut self, intent: Intent) -> Result<(), Refusal> {
        fight::act(&self.config, &intent)
    }
}

impl Rules {
    fn walk(&self, connection: ConnectionId, dx: i32, dy: i32) -> Result<(), Refusal> {
        let from = player_entity(connection)?;
        let (x, y) = self.config.field().clamp(from.position.x + dx, from.position.y + dy);
        entities::move_to(from.id, Position { x, y, ..from.position })?;
        answer(connection, format!("at {x} {y}"))
    }
}

/// Tells a player where they are and what is near, nearest first, a line each.
fn look(connection: ConnectionId) -> Result<(), Refusal> {
    let own = player_entity(connection)?;
    let near = entities::within(own.position, SIGHT_TILES, MAX_SEEN + 1);
    let mut view = format!("you {} {} {}", own.id, own.position.x, own.position.y);
    for entity in near.iter().filter(|entity| entity.id != own.id).take(MAX_SEEN as usize) {
        let (name, place) = (kind::name(entity.kind), entity.position);
        write!(view, "\n{name} {} {} {}", entity.id, place.x, place.y)?;
        if entity.kind == kind::CROP {
            write!(view, " {}", crops::stage(entity.id)?)?;
        }
    }
    answer(connection, view)
}

/// Lets every player hear who is near, and the speaker.
fn say(connection: ConnectionId, text: &str) -> Result<(), Refusal> {
    let speaker = player_entity(connection)?;
    let near = entities::within(speaker.position, VOICE_TILES, MAX_HEARERS);
    let hearers: Vec<_> = near.iter().filter_map(|entity| entity.connection).collect();
    gate::send_all(&hearers, format!("{} says {text}", speaker.id))?;
    Ok(())
}

/// Tells a player how their battles ended, the latest last.
fn chronicle(connection: ConnectionId) -> Result<(), Refusal> {
    let Some((_, name)) = players::named(connection)? else {
        return answer(connection, players::NAMELESS);
    };
    let lines = persons::chronicle(&name)?;
    answer(connection, format!("the chronicle of {name}: {}\n{}", lines.len(), lines.join("\n")).trim_end())
}

/// The entity that a connection moves.
fn player_entity(connection: ConnectionId) -> Result<entities::Entity, Refusal> {
    let player = players::find(connection)?;
    match player.and_then(|player| entities::find(player.entity)) {
        Some(entity) => Ok(entity),
        None => refuse!("connection {connection} has no player"),
    }
}

/// Sends a line to a player. One who has just gone needs no answer, which is no reason to undo what happened.
fn answer(connection: ConnectionId, line: impl AsRef<[u8]>) -> Result<(), Refusal> {
    match gate::send(connection, line) {
        Ok(()) | Err(GateError::Closed) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

wheelhouse_guest::game!(Rules);
