//! A game that misbehaves as a packet or its configuration says.
//!
//! Configuration: `misbehave` is the name of a harm (see `mischief` and `harm`), `when` the call in which it is done:
//! `init` (the default), `connect`, `disconnect`, `timer`, `intent`, `task`. `save:NAME` and `restore:NAME` as
//! `misbehave` do it while the state is saved or restored.
//!
//! Packets: the name of a harm, or
//!
//! | packet | does |
//! | --- | --- |
//! | `ping TEXT` | answers `pong TEXT` |
//! | `half` | changes world and kv, sets a timer, sends `changed`; then traps |
//! | `refuse` | the same, then returns an error |
//! | `whole` | the same, then returns |
//! | `count` | answers `entities E kv K timers T`: how many entities, what `whole` counted, how often its timer fired |
//! | `where` | answers `at X Y` |
//! | `spawn THINKER KIND COUNT` | spawns NPCs around (8, 8), where players stand; answers with their ids |
//! | `start GUEST ARGUMENTS` | starts a task; answers `task ID`, and when it has ended `ended ID OUTCOME` |
//! | `cancel ID` | cancels a task; answers `cancelled true` or `cancelled false` |
//! | `remember TEXT` | keeps a text in memory, not in kv; answers `ok` |
//! | `recall` | answers with the text |

mod harm;
mod memory;

use std::time::Duration;

use memory::Memory;
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

const WHOLE_KEY: &str = "whole";
const FIRED_KEY: &str = "fired";

/// Where players stand.
const HOME: Position = Position { map: 0, x: 8, y: 8 };

#[derive(Deserialize)]
#[serde(default)]
struct Config {
    misbehave: String,
    when: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { misbehave: String::new(), when: "init".into() }
    }
}

#[derive(Serialize, Deserialize)]
struct Hostile {
    #[serde(skip)]
    config: Config,
    memory: Memory,
}

impl Game for Hostile {
    type Config = Config;

    fn init(config: Config, _occasion: Occasion) -> Result<Self, Refusal> {
        let on_state = config.misbehave.starts_with("save:") || config.misbehave.starts_with("restore:");
        let memory = Memory(if on_state { config.misbehave.clone() } else { String::new() });
        let hostile = Self { config, memory };
        hostile.misbehave("init", 0)?;
        if hostile.config.when == "timer" {
            timers::every("misbehave", Duration::from_millis(50), &[])?;
        }
        Ok(hostile)
    }

    fn restored(&mut self, fresh: Self) {
        self.config = fresh.config;
    }

    fn on_connect(&mut self, connection: ConnectionId, _address: &str) -> Result<(), Refusal> {
        self.misbehave("connect", connection)?;
        let id = entities::spawn(1, HOME, None)?;
        entities::set_connection(id, Some(connection))?;
        kv::set_bytes(&harm::player_key(connection), &id.to_le_bytes())?;
        Ok(())
    }

    fn on_packet(&mut self, connection: ConnectionId, packet: &[u8]) -> Result<(), Refusal> {
        let packet = std::str::from_utf8(packet)?;
        let (word, rest) = packet.split_once(' ').unwrap_or((packet, ""));
        match word {
            "ping" => answer(connection, format!("pong {rest}")),
            "half" => {
                change(connection)?;
                panic!("this handler panics half-way as it was told");
            }
            "refuse" => {
                change(connection)?;
                refuse!("this handler refuses as it was told")
            }
            "whole" => change(connection),
            "count" => {
                let (whole, fired) = (counted(WHOLE_KEY)?, counted(FIRED_KEY)?);
                answer(connection, format!("entities {} kv {whole} timers {fired}", entities::count()))
            }
            "where" => {
                let Some(player) = entities::find(harm::player(connection)?) else { refuse!("there is no player") };
                answer(connection, format!("at {} {}", player.position.x, player.position.y))
            }
            "spawn" => spawn(connection, rest),
            "start" => start(connection, rest),
            "cancel" => answer(connection, format!("cancelled {}", tasks::cancel(rest.parse()?))),
            "remember" => {
                self.memory = Memory(rest.into());
                answer(connection, "ok")
            }
            "recall" => answer(connection, &self.memory.0),
            name => match harm::commit(name, connection) {
                Some(outcome) => answer(connection, outcome),
                None => answer(connection, format!("this game cannot do {name:?}")),
            },
        }
    }

    fn on_disconnect(&mut self, connection: ConnectionId) -> Result<(), Refusal> {
        self.misbehave("disconnect", connection)?;
        entities::despawn(harm::player(connection)?)?;
        kv::delete(&harm::player_key(connection))?;
        Ok(())
    }

    fn on_timer(&mut self, timer: FiredTimer) -> Result<(), Refusal> {
        match timer.name.as_str() {
            "misbehave" => self.misbehave("timer", 0),
            "whole" => count_up(FIRED_KEY),
            _ => Ok(()),
        }
    }

    fn on_task(&mut self, id: TaskId, outcome: Result<Vec<u8>, TaskFailure>) -> Result<(), Refusal> {
        self.misbehave("task", 0)?;
        let key = format!("task/{id}");
        let Some(connection) = kv::get::<ConnectionId>(&key)? else { return Ok(()) };
        kv::delete(&key)?;
        let outcome = match outcome {
            Ok(result) => format!("finished {}", String::from_utf8_lossy(&result)),
            Err(TaskFailure::Failed(message)) => format!("failed {message}"),
            Err(TaskFailure::Crashed(line)) => format!("crashed {line}"),
            Err(TaskFailure::Cancelled) => "cancelled".into(),
        };
        answer(connection, format!("ended {id} {outcome}"))
    }

    fn on_intent(&mut self, _intent: Intent) -> Result<(), Refusal> {
        self.misbehave("intent", 0)
    }
}

impl Hostile {
    /// Does the configured harm if this is the call for it.
    fn misbehave(&self, when: &str, connection: ConnectionId) -> Result<(), Refusal> {
        if self.config.when != when {
            return Ok(());
        }
        if self.config.misbehave == "fail" {
            refuse!("this game refuses as it was told");
        }
        harm::commit(&self.config.misbehave, connection);
        Ok(())
    }
}

/// One change of each kind that must hold or vanish together.
fn change(connection: ConnectionId) -> Result<(), Refusal> {
    let player = harm::player(connection)?;
    entities::spawn(9, Position { x: 100, ..HOME }, None)?;
    if let Some(entity) = entities::find(player) {
        entities::move_to(player, Position { x: entity.position.x + 1, ..entity.position })?;
    }
    entities::set(player, "changed", &true)?;
    count_up(WHOLE_KEY)?;
    timers::once("whole", Duration::from_millis(20), &[])?;
    gate::send(connection, "changed")?;
    Ok(())
}

fn counted(key: &str) -> Result<u64, Refusal> {
    Ok(kv::get(key)?.unwrap_or_default())
}

fn count_up(key: &str) -> Result<(), Refusal> {
    Ok(kv::set(key, &(counted(key)? + 1))?)
}

fn spawn(connection: ConnectionId, arguments: &str) -> Result<(), Refusal> {
    let words: Vec<_> = arguments.split_whitespace().collect();
    let [thinker, kind, count] = words[..] else { refuse!("spawn THINKER KIND COUNT") };
    let (kind, count) = (kind.parse()?, count.parse::<i32>()?);
    let mut ids = Vec::new();
    for number in 0..count {
        let place = Position { x: number % 16, y: number / 16 % 16, ..HOME };
        ids.push(entities::spawn(kind, place, Some(thinker))?.to_string());
    }
    answer(connection, format!("spawned {}", ids.join(" ")))
}

fn start(connection: ConnectionId, arguments: &str) -> Result<(), Refusal> {
    let (guest, arguments) = arguments.split_once(' ').unwrap_or((arguments, ""));
    match tasks::start(guest, arguments.as_bytes()) {
        Ok(id) => {
            kv::set(&format!("task/{id}"), &connection)?;
            answer(connection, format!("task {id}"))
        }
        Err(error) => answer(connection, format!("no task: {error:?}")),
    }
}

fn answer(connection: ConnectionId, line: impl AsRef<[u8]>) -> Result<(), Refusal> {
    Ok(gate::send(connection, line)?)
}

wheelhouse_guest::game!(Hostile);
