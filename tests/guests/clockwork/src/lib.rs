//! A game that schedules events by the thousand, as its packets say, and counts in `kv` what has run: what the benchmark
//! of the store drives.
//!
//! | packet | does and answers |
//! | --- | --- |
//! | `scatter COUNT BYTES` | schedules events with so many bytes each, at random times of the next day but not in its first hour; `scattered COUNT` |
//! | `march START PER_MS FIRST COUNT` | schedules the events numbered `FIRST` and on, `PER_MS` of which are due in each millisecond from `START` on; `marching COUNT` |
//! | `sum` | adds up all ledgers; `sum COUNT` |
//!
//! An event that runs adds one to a ledger. There are [`LEDGERS`] of them.

use serde::{Deserialize, Serialize};
use wheelhouse_guest::events::When;
use wheelhouse_guest::prelude::*;
use wheelhouse_guest::random::Random;

const LEDGERS: u64 = 1000;
const HOUR_MS: u64 = 3_600_000;

#[derive(Serialize, Deserialize)]
struct Clockwork;

impl Game for Clockwork {
    type Config = ();

    fn init(_config: (), _occasion: Occasion) -> Result<Self, Refusal> {
        Ok(Self)
    }

    fn on_packet(&mut self, connection: ConnectionId, packet: &[u8]) -> Result<(), Refusal> {
        let mut words = std::str::from_utf8(packet)?.split(' ');
        let word = words.next().unwrap_or_default();
        let numbers: Vec<u64> = words.map(str::parse).collect::<Result<_, _>>()?;
        let answer = match (word, &numbers[..]) {
            ("scatter", &[count, bytes]) => scatter(count, bytes)?,
            ("march", &[start_ms, per_ms, first, count]) => march(start_ms, per_ms, first, count)?,
            ("sum", []) => sum()?,
            _ => refuse!("this game cannot do {word:?} with {numbers:?}"),
        };
        gate::send(connection, answer)?;
        Ok(())
    }

    fn on_event(&mut self, event: DueEvent) -> Result<(), Refusal> {
        let ledger = ledger(event.payload.first_chunk().map_or(0, |number| u64::from_le_bytes(*number)));
        kv::set(&ledger, &(read(&ledger)? + 1))?;
        Ok(())
    }
}

fn scatter(count: u64, bytes: u64) -> Result<String, Refusal> {
    let now_ms = clock::wall().as_millis() as u64;
    let mut random = Random::seeded(random::number());
    let payload = vec![7; usize::try_from(bytes)?];
    for _ in 0..count {
        let wait_ms = HOUR_MS + u64::from(random.below(23 * HOUR_MS as u32));
        events::schedule("tick", When::AtMs(now_ms + wait_ms), &payload, None)?;
    }
    Ok(format!("scattered {count}"))
}

fn march(start_ms: u64, per_ms: u64, first: u64, count: u64) -> Result<String, Refusal> {
    for number in first..first + count {
        events::schedule("tick", When::AtMs(start_ms + number / per_ms), &number.to_le_bytes(), None)?;
    }
    Ok(format!("marching {count}"))
}

fn sum() -> Result<String, Refusal> {
    let counts = (0..LEDGERS).map(|number| read(&ledger(number)));
    Ok(format!("sum {}", counts.sum::<Result<u64, _>>()?))
}

fn read(ledger: &str) -> Result<u64, Refusal> {
    Ok(kv::get(ledger)?.unwrap_or(0))
}

fn ledger(number: u64) -> String {
    format!("ledger/{}", number % LEDGERS)
}

wheelhouse_guest::game!(Clockwork);
