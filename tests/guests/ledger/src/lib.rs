//! A game that keeps ledgers in `kv` and schedules events, all as its packets say: what the tests of durable state hold
//! against what they were told. What its events do is in `on_event`, what it writes down in `books`.
//!
//! | packet | does and answers |
//! | --- | --- |
//! | `ping TEXT` | reads and writes nothing; `pong TEXT` |
//! | `read NAME` | reads the ledger; `NAME COUNT` |
//! | `bump NAME` | adds one to the ledger; `NAME COUNT` |
//! | `bump2 A B` | adds one to each of both; `A COUNT B COUNT` |
//! | `put KEY KB` | stores so many kilobytes under `filler/KEY`; `put KEY` |
//! | `size KEY` | `size BYTES` of the value; 0 where there is none |
//! | `after MS KIND PAYLOAD`, `at MS KIND PAYLOAD` | schedules an event; `scheduled DUE SEQUENCE` |
//! | `every MS coalesce KIND PAYLOAD`, `every MS catch-up …` | schedules a repeating event; the same |
//! | `half KIND PAYLOAD` | schedules an event, adds one to the ledger `half`, sends `half`; then traps |
//! | `cancel DUE SEQUENCE` | `cancelled true` or `cancelled false` |
//! | `cancel-kind KIND` | cancels every pending event of that kind; `cancelled COUNT` |
//! | `get DUE SEQUENCE` | the event as a line, or `none` |
//! | `pending LIMIT`, `pending LIMIT DUE SEQUENCE` | one page; `pending COUNT`, then a line for each event |
//! | `walk` | every page; `pending COUNT` |
//! | `dump PREFIX`, `dump PREFIX AFTER` | one page of `kv`; `dump COUNT`, then lines `KEY VALUE` |
//! | `who` | `you CONNECTION` |
//! | `stand X Y` | spawns a player for this connection; `spawned ID` |
//! | `spawn THINKER X Y` | spawns an NPC; `spawned ID` |
//! | `place ID` | `at X Y`, or `nobody` |
//! | `mark ID TEXT`, `marked ID` | keeps a text as data of the entity; `marked TEXT` |
//! | `remember TEXT`, `recall` | keeps a text in memory, not in `kv`; `recalled TEXT`. The text `trap` traps when it is saved |
//! | `timer MS NAME` | sets a timer that adds one to the ledger; `timer set` |
//! | `beat MS NAME` | sets a repeating one, which adds one for each of its times, also those that it missed; `timer set` |
//!
//! An event as a line is `DUE SEQUENCE KIND REPETITION ATTEMPTS STATE PAYLOAD`: a repetition is `once`, `coalesce:MS` or
//! `catch-up:MS`, a state `waiting` or `parked`.
//!
//! Configuration: an instance that replaces another cancels, in its `init`, every event of the kind `cancel_when_replaced`.

mod books;
mod on_event;

use std::fmt::Write;
use std::time::Duration;

use on_event::Refusals;
use serde::{Deserialize, Serialize, Serializer};
use wheelhouse_guest::events::{MissedRuns, PendingEvent, Repetition};
use wheelhouse_guest::prelude::*;

/// Entries of one page of `dump`, which must fit into a frame.
const DUMP_PAGE: u32 = 128;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Settings {
    cancel_when_replaced: String,
}

#[derive(Default, Serialize, Deserialize)]
struct Ledger {
    #[serde(serialize_with = "save_or_trap")]
    remembered: String,
    #[serde(skip)]
    refusals: Refusals,
}

impl Game for Ledger {
    type Config = Settings;

    fn init(settings: Settings, occasion: Occasion) -> Result<Self, Refusal> {
        if occasion == Occasion::Replaced && !settings.cancel_when_replaced.is_empty() {
            cancel_kind(&settings.cancel_when_replaced);
        }
        Ok(Self::default())
    }

    fn on_packet(&mut self, connection: ConnectionId, packet: &[u8]) -> Result<(), Refusal> {
        let packet = std::str::from_utf8(packet)?;
        let (word, rest) = packet.split_once(' ').unwrap_or((packet, ""));
        let answered = match word {
            "ping" => format!("pong {rest}"),
            "who" => format!("you {connection}"),
            "remember" | "recall" => {
                if word == "remember" {
                    self.remembered = rest.into();
                }
                format!("recalled {}", self.remembered)
            }
            "half" => {
                let (kind, payload) = pair(rest)?;
                events::after(kind, Duration::ZERO, payload.as_bytes())?;
                books::bump("half")?;
                answer(connection, "half")?;
                panic!("this handler panics half-way");
            }
            "read" | "bump" | "bump2" | "put" | "size" | "dump" => of_ledgers(word, rest)?,
            "after" | "at" | "every" | "cancel" | "cancel-kind" | "get" | "pending" | "walk" => of_events(word, rest)?,
            "timer" | "beat" => {
                let (time, name) = pair(rest)?;
                let set = if word == "timer" { timers::once } else { timers::every };
                set("bump", Duration::from_millis(time.parse()?), name.as_bytes())?;
                "timer set".into()
            }
            _ => of_entities(word, rest, connection)?,
        };
        answer(connection, answered)
    }

    fn on_timer(&mut self, timer: FiredTimer) -> Result<(), Refusal> {
        let name = std::str::from_utf8(&timer.payload)?;
        (0..=timer.missed).try_for_each(|_| books::bump(name).map(drop))
    }

    fn on_event(&mut self, event: DueEvent) -> Result<(), Refusal> {
        on_event::run(&event, &mut self.refusals)
    }
}

fn of_ledgers(word: &str, rest: &str) -> Result<String, Refusal> {
    Ok(match word {
        "read" => format!("{rest} {}", books::read(rest)?),
        "bump" => format!("{rest} {}", books::bump(rest)?),
        "bump2" => {
            let (first, second) = pair(rest)?;
            format!("{first} {} {second} {}", books::bump(first)?, books::bump(second)?)
        }
        "put" => {
            let (key, kilobytes) = pair(rest)?;
            // Bytes that no database stores in less room.
            kv::set_bytes(&format!("filler/{key}"), &random::bytes(kilobytes.parse::<u32>()? * 1024))?;
            format!("put {key}")
        }
        "size" => format!("size {}", kv::get_bytes(rest).map_or(0, |value| value.len())),
        _ => {
            let (prefix, after) = rest.split_once(' ').map_or((rest, None), |(prefix, after)| (prefix, Some(after)));
            let page = kv::scan(prefix, after, DUMP_PAGE);
            let mut answered = format!("dump {}", page.len());
            for entry in page {
                write!(answered, "\n{} {}", entry.key, String::from_utf8_lossy(&entry.value))?;
            }
            answered
        }
    })
}

fn of_events(word: &str, rest: &str) -> Result<String, Refusal> {
    Ok(match word {
        "after" | "at" => {
            let (time, (kind, payload)) = pair(rest).and_then(|(time, rest)| Ok((time, pair(rest)?)))?;
            let time = Duration::from_millis(time.parse()?);
            let schedule = if word == "at" { events::at } else { events::after };
            scheduled(schedule(kind, time, payload.as_bytes())?)
        }
        "every" => {
            let (interval, rest) = pair(rest)?;
            let (missed, rest) = pair(rest)?;
            let (kind, payload) = pair(rest)?;
            let missed = if missed == "coalesce" { MissedRuns::Coalesce } else { MissedRuns::CatchUp };
            let interval = Duration::from_millis(interval.parse()?);
            scheduled(events::every(kind, interval, missed, payload.as_bytes())?)
        }
        "cancel" => format!("cancelled {}", events::cancel(id(rest)?)),
        "cancel-kind" => format!("cancelled {}", cancel_kind(rest)),
        "get" => events::get(id(rest)?).map_or("none".into(), |event| line(&event)),
        "walk" => format!("pending {}", events::pending().count()),
        _ => {
            let (limit, after) = rest.split_once(' ').map_or((rest, None), |(limit, after)| (limit, Some(after)));
            let after = after.map(id).transpose()?;
            let page = wheelhouse_guest::bindings::events::pending(after, limit.parse()?);
            let mut answered = format!("pending {}", page.len());
            for event in &page {
                write!(answered, "\n{}", line(event))?;
            }
            answered
        }
    })
}

/// Cancels every event of a kind, and answers how many there were.
fn cancel_kind(kind: &str) -> usize {
    events::pending().filter(|event| event.kind == kind).filter(|event| events::cancel(event.id)).count()
}

fn of_entities(word: &str, rest: &str, connection: ConnectionId) -> Result<String, Refusal> {
    Ok(match word {
        "stand" => {
            let id = entities::spawn(1, tile(rest)?, None)?;
            entities::set_connection(id, Some(connection))?;
            format!("spawned {id}")
        }
        "spawn" => {
            let (thinker, place) = pair(rest)?;
            format!("spawned {}", entities::spawn(2, tile(place)?, Some(thinker))?)
        }
        "place" => match entities::find(rest.parse()?) {
            Some(entity) => format!("at {} {}", entity.position.x, entity.position.y),
            None => "nobody".into(),
        },
        "mark" => {
            let (id, text) = pair(rest)?;
            entities::set_data(id.parse()?, "mark", text.as_bytes())?;
            format!("marked {text}")
        }
        "marked" => {
            let text = entities::get_data(rest.parse()?, "mark")?.unwrap_or_default();
            format!("marked {}", String::from_utf8(text)?)
        }
        other => format!("this game cannot do {other:?}"),
    })
}

/// The first word and the rest; both must be there, though the rest may be empty.
fn pair(text: &str) -> Result<(&str, &str), Refusal> {
    text.split_once(' ').ok_or_else(|| Refusal::new(format_args!("there should be more than {text:?}")))
}

fn tile(place: &str) -> Result<Position, Refusal> {
    let (x, y) = pair(place)?;
    Ok(Position::new(0, x.parse()?, y.parse()?))
}

fn id(text: &str) -> Result<EventId, Refusal> {
    let (due, sequence) = pair(text)?;
    Ok(EventId { due_ms: due.parse()?, sequence: sequence.parse()? })
}

fn scheduled(id: EventId) -> String {
    format!("scheduled {} {}", id.due_ms, id.sequence)
}

fn line(event: &PendingEvent) -> String {
    let PendingEvent { id, kind, payload, repeat, attempts, parked } = event;
    let repetition = match repeat {
        None => "once".into(),
        Some(Repetition { interval_ms, missed: MissedRuns::Coalesce }) => format!("coalesce:{interval_ms}"),
        Some(Repetition { interval_ms, missed: MissedRuns::CatchUp }) => format!("catch-up:{interval_ms}"),
    };
    let state = if *parked { "parked" } else { "waiting" };
    let payload = String::from_utf8_lossy(payload);
    format!("{} {} {kind} {repetition} {attempts} {state} {payload}", id.due_ms, id.sequence)
}

fn answer(connection: ConnectionId, line: impl AsRef<[u8]>) -> Result<(), Refusal> {
    match gate::send(connection, line) {
        // One who has gone needs no answer, which is no reason to undo what happened.
        Ok(()) | Err(gate::GateError::Closed) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn save_or_trap<S: Serializer>(remembered: &str, serializer: S) -> Result<S::Ok, S::Error> {
    assert_ne!(remembered, "trap", "this state traps when it is saved");
    serializer.serialize_str(remembered)
}

wheelhouse_guest::game!(Ledger);
