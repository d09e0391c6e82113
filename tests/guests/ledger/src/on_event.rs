//! What an event does when it is due, by its kind. Every kind that returns notes its run in the books.
//!
//! | kind | payload | does |
//! | --- | --- | --- |
//! | `note` | anything | nothing more |
//! | `bump` | `NAME` | adds one to the ledger |
//! | `tell` | `CONNECTION TEXT` | sends `told TEXT` |
//! | `chain` | `COUNT NAME` | adds one to the ledger and, while COUNT is above 1, schedules itself with one less, due at once |
//! | `fail` | `COUNT` | refuses so many times first; the times are counted in memory, which a refusal does not take back |
//! | `late` | `MS` | traps until it is so late |
//! | `half` | `NAME` | adds one to the ledger, schedules a `note`, sends nothing to nobody, and refuses |
//! | `refuse`, `trap`, `loop` | anything | does so, every time |

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Duration;

use wheelhouse_guest::prelude::*;

use crate::{answer, books, pair};

/// How often each event, by its sequence, has refused in this instance.
pub type Refusals = HashMap<u64, u32>;

/// Does what the kind says.
pub fn run(event: &DueEvent, refusals: &mut Refusals) -> Result<(), Refusal> {
    let payload = std::str::from_utf8(&event.payload)?;
    match event.kind.as_str() {
        "note" => {}
        "bump" => _ = books::bump(payload)?,
        "tell" => {
            let (connection, text) = pair(payload)?;
            answer(connection.parse()?, format!("told {text}"))?;
        }
        "chain" => chain(payload)?,
        "fail" => {
            let refused = refusals.entry(event.id.sequence).or_default();
            if *refused < payload.parse()? {
                *refused += 1;
                refuse!("this event refuses for the time number {refused}");
            }
        }
        "late" => {
            let wanted_ms: u64 = payload.parse()?;
            assert!(event.late_ms >= wanted_ms, "this event is {} ms late and not yet {wanted_ms}", event.late_ms);
        }
        "half" => {
            books::bump(payload)?;
            events::after("note", Duration::ZERO, b"half")?;
            refuse!("this event refuses half-way");
        }
        "refuse" => refuse!("this event refuses"),
        "trap" => panic!("this event panics"),
        "loop" => endless(),
        other => refuse!("there is no kind {other:?}"),
    }
    books::note_run(event)
}

fn chain(payload: &str) -> Result<(), Refusal> {
    let (count, name) = pair(payload)?;
    let count: u64 = count.parse()?;
    books::bump(name)?;
    if count > 1 {
        events::after("chain", Duration::ZERO, format!("{} {name}", count - 1).as_bytes())?;
    }
    Ok(())
}

fn endless() -> ! {
    let mut rounds = 0_u64;
    loop {
        rounds = black_box(rounds.wrapping_add(1));
    }
}
