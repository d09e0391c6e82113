//! A game that notices whatever a swap could lose, double or reorder. What it counts is in `kv`, which no swap touches;
//! what a swap carries over is in its memory: what each NPC has last said, and a note about it.
//!
//! | packet | answers |
//! | --- | --- |
//! | `n NUMBER` | `n NUMBER VERSION`, or `gap LAST NUMBER` where the number is not the one behind the last |
//! | `ask NUMBER MESSAGE` | asks the service `counter`; `a NUMBER COUNT` when that answers |
//! | `herd COUNT` | spawns NPCs around the player; `herd COUNT` |
//! | `later COUNT` | sets timers that fire once, and schedules events; `later COUNT` |
//! | `start GUEST ARGUMENTS` | starts a task; `ended OUTCOME` when it has |
//! | `remember TEXT`, `recall` | keeps a text in memory; answers with it |
//! | `report` | what it has found out, as `name=value` |

mod counts;

use std::collections::BTreeMap;
use std::time::Duration;

use changeling::{Mark, Marked};
use counts::{add, count};
use serde::{Deserialize, Serialize};
use wheelhouse_guest::events::MissedRuns;
use wheelhouse_guest::prelude::*;

/// How often the timer and the event that repeat do so.
const TICK: Duration = Duration::from_millis(50);
const TOCK: Duration = Duration::from_millis(200);

/// Between two things that an NPC says it thinks so often.
const THINKS_PER_ACT: u32 = 16;

/// When timers and events that happen once do so.
const LATER: Duration = Duration::from_millis(300);

/// Players stand so far apart that each has NPCs of its own.
const PLAYERS_APART: i32 = 100;
const PLAYERS_IN_A_ROW: u64 = 10;

#[derive(Serialize, Deserialize)]
struct Changeling {
    marked: Marked,
    text: String,
    npcs: BTreeMap<EntityId, Npc>,
    /// How often one has said something else than was due.
    torn: u32,
}

/// What is known of an NPC.
#[derive(Serialize, Deserialize)]
struct Npc {
    /// What it has said last.
    said: u32,
    note: String,
}

/// A note that tells whether it is whole. Those of ten thousand NPCs are about a MiB.
fn note(npc: EntityId) -> String {
    format!("{npc:0>96}")
}

impl Game for Changeling {
    type Config = ();

    fn init(_config: (), occasion: Occasion) -> Result<Self, Refusal> {
        Mark::read().misbehave("init")?;
        if matches!(occasion, Occasion::First | Occasion::Resumed) {
            timers::every("tick", TICK, &[])?;
            kv::set("tick/since", &nanoseconds(clock::now()))?;
            kv::set("tick/runs", &0u64)?;
        }
        if occasion == Occasion::First {
            events::every("tock", TOCK, MissedRuns::Coalesce, &[])?;
            kv::set("tock/since", &nanoseconds(clock::wall()))?;
        }
        Ok(Self { marked: Marked, text: String::new(), npcs: BTreeMap::new(), torn: 0 })
    }

    fn restored(&mut self, _fresh: Self) {
        if Mark::read().harm.starts_with("restore:schedule") {
            set_later("restored").expect("there is room for a timer and an event");
        }
    }

    fn on_connect(&mut self, connection: ConnectionId, _address: &str) -> Result<(), Refusal> {
        let player = count("players")?;
        add("players", 1)?;
        let (column, row) = ((player % PLAYERS_IN_A_ROW) as i32, (player / PLAYERS_IN_A_ROW) as i32);
        let place = Position::new(0, column * PLAYERS_APART, row * PLAYERS_APART);
        let id = entities::spawn(1, place, None)?;
        entities::set_connection(id, Some(connection))?;
        kv::set(&format!("player/{connection}"), &id)?;
        Ok(())
    }

    fn on_packet(&mut self, connection: ConnectionId, packet: &[u8]) -> Result<(), Refusal> {
        Mark::read().count();
        let packet = std::str::from_utf8(packet)?;
        let (word, rest) = packet.split_once(' ').unwrap_or((packet, ""));
        match word {
            "n" => return self.number(connection, rest.parse()?),
            "ask" => {
                let (number, message) = rest.split_once(' ').unwrap_or((rest, ""));
                return ask(connection, number.parse()?, message);
            }
            "herd" => herd(connection, rest.parse()?)?,
            "later" => (0..rest.parse::<u32>()?).try_for_each(|_| set_later("once"))?,
            "start" => {
                let (guest, arguments) = rest.split_once(' ').unwrap_or((rest, ""));
                let task = tasks::start(guest, arguments.as_bytes())?;
                kv::set(&format!("task/{task}"), &connection)?;
                return Ok(());
            }
            "remember" => self.text = rest.into(),
            "recall" => {
                gate::send(connection, &self.text)?;
                return Ok(());
            }
            "report" => {
                gate::send(connection, self.report()?)?;
                return Ok(());
            }
            _ => refuse!("this game cannot do {packet:?}"),
        }
        gate::send(connection, packet)?;
        Ok(())
    }

    fn on_disconnect(&mut self, connection: ConnectionId) -> Result<(), Refusal> {
        if let Some(player) = kv::get(&format!("player/{connection}"))? {
            entities::despawn(player)?;
        }
        Ok(())
    }

    fn on_timer(&mut self, timer: FiredTimer) -> Result<(), Refusal> {
        match timer.name.as_str() {
            "tick" => add("tick/runs", 1 + u64::from(timer.missed)),
            name => add(&format!("{name}/timers"), 1),
        }
    }

    fn on_event(&mut self, event: DueEvent) -> Result<(), Refusal> {
        match event.kind.as_str() {
            "tock" => add("tock/runs", 1 + u64::from(event.missed)),
            kind => add(&format!("{kind}/events"), 1),
        }
    }

    fn on_reply(&mut self, session: Session, answer: Result<Vec<u8>, ServiceError>) -> Result<(), Refusal> {
        let key = format!("asked/{session}");
        let Some((connection, number)) = kv::get::<(ConnectionId, u64)>(&key)? else {
            refuse!("nobody has asked in session {session}")
        };
        kv::delete(&key)?;
        match answer {
            Ok(count) => gate::tell(connection, format!("a {number} {}", String::from_utf8_lossy(&count)))?,
            Err(error) => gate::tell(connection, format!("a {number} error {error:?}"))?,
        };
        Ok(())
    }

    fn on_task(&mut self, id: TaskId, outcome: Result<Vec<u8>, TaskFailure>) -> Result<(), Refusal> {
        let Some(connection) = kv::get::<ConnectionId>(&format!("task/{id}"))? else { return Ok(()) };
        let outcome = match outcome {
            Ok(result) => String::from_utf8_lossy(&result).into_owned(),
            Err(failure) => format!("{failure:?}"),
        };
        gate::tell(connection, format!("ended {outcome}"))?;
        Ok(())
    }

    fn on_intent(&mut self, intent: Intent) -> Result<(), Refusal> {
        let npc = self.npcs.entry(intent.npc).or_insert_with(|| Npc { said: 0, note: note(intent.npc) });
        if intent.argument != npc.said + THINKS_PER_ACT {
            self.torn += 1;
        }
        npc.said = intent.argument;
        Ok(())
    }
}

impl Changeling {
    fn number(&self, connection: ConnectionId, number: u64) -> Result<(), Refusal> {
        let key = format!("number/{connection}");
        let last = count(&key)?;
        if number != last + 1 {
            gate::send(connection, format!("gap {last} {number}"))?;
            return Ok(());
        }
        kv::set(&key, &number)?;
        gate::send(connection, format!("n {number} {}", Mark::read().version))?;
        Ok(())
    }

    /// What was found out, and what should have been.
    fn report(&self) -> Result<String, Refusal> {
        let elapsed =
            |since: &str, now: Duration| Ok::<_, Refusal>(now.saturating_sub(Duration::from_nanos(count(since)?)));
        let ticks_due = elapsed("tick/since", clock::now())?.as_nanos() / TICK.as_nanos();
        let tocks_due = elapsed("tock/since", clock::wall())?.as_nanos() / TOCK.as_nanos();
        let is_whole = self.npcs.iter().all(|(id, npc)| npc.note == note(*id));
        Ok(format!(
            "ticks={} ticks_due={ticks_due} tocks={} tocks_due={tocks_due} once_set={} once_timers={} once_events={} \
             restored_timers={} restored_events={} npcs={} torn={} whole={is_whole} version={}",
            count("tick/runs")?,
            count("tock/runs")?,
            count("once/set")?,
            count("once/timers")?,
            count("once/events")?,
            count("restored/timers")?,
            count("restored/events")?,
            self.npcs.len(),
            self.torn,
            Mark::read().version,
        ))
    }
}

fn set_later(name: &str) -> Result<(), Refusal> {
    timers::once(name, LATER, &[])?;
    events::after(name, LATER, &[])?;
    add(&format!("{name}/set"), 1)
}

fn ask(connection: ConnectionId, number: u64, message: &str) -> Result<(), Refusal> {
    let Some(counter) = services::query("counter") else {
        gate::send(connection, format!("a {number} error there is no counter"))?;
        return Ok(());
    };
    let session = requests::request(counter, message, Duration::from_secs(20))?;
    kv::set(&format!("asked/{session}"), &(connection, number))?;
    Ok(())
}

fn herd(connection: ConnectionId, count: i32) -> Result<(), Refusal> {
    let Some(player) = kv::get(&format!("player/{connection}"))?.and_then(entities::find) else {
        refuse!("there is no player")
    };
    for number in 0..count {
        let Position { map, x, y } = player.position;
        let place = Position::new(map, x + number % 16 - 8, y + number / 16 % 16 - 8);
        entities::spawn(2, place, Some("changeling-thinker"))?;
    }
    Ok(())
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos() as u64
}

wheelhouse_guest::game!(Changeling);
