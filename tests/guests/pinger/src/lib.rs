//! A plain service that sends and asks as fast as it can, and answers how many nanoseconds that took. All of it is
//! computing time of one message: large numbers need a large `service.deadline_ms`.
//!
//! | message | does |
//! | --- | --- |
//! | `send N HANDLE` | sends a `counter` N messages, and asks it for a `report`: `NS counted …` |
//! | `ask N HANDLE` | asks a `counter` `ping` N times, one after another: `NS` |
//! | `launch N GUEST` | launches N services of a guest: `NS HANDLE …` |
//! | `timeouts N` | sets N timeouts of an hour: `NS` |

use std::collections::BTreeMap;
use std::time::Duration;

use orders::next;
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

#[derive(Serialize, Deserialize)]
struct Pinger {
    /// How many messages each counter was sent: it knows a source by its handle, and counts on from the last.
    sent: BTreeMap<Handle, u64>,
}

impl Service for Pinger {
    type Config = ();

    fn init(_config: (), _arguments: Vec<u8>) -> Result<Self, Refusal> {
        Ok(Self { sent: BTreeMap::new() })
    }

    fn handle(&mut self, message: Message) -> Result<Vec<u8>, Refusal> {
        if message.subject != Subject::Plain {
            return Ok(Vec::new());
        }
        let order = &mut message.text()?;
        let (kind, count) = (next::<String>(order)?, next::<u32>(order)?);
        let begin = clock::now();
        let outcome = match kind.as_str() {
            "send" => self.send(count, next(order)?)?,
            "ask" => ask(count, next(order)?)?,
            "launch" => launch(count, order)?,
            "timeouts" => timeouts(count)?,
            other => refuse!("a pinger cannot {other}"),
        };
        Ok(format!("{} {outcome}", (clock::now() - begin).as_nanos()).into_bytes())
    }
}

impl Pinger {
    /// Waits a moment where the mailbox is full.
    fn send(&mut self, count: u32, to: Handle) -> Result<String, Refusal> {
        let sequence = self.sent.entry(to).or_default();
        for _ in 0..count {
            while let Err(error) = services::send(to, sequence.to_le_bytes()) {
                let ServiceError::MailboxFull(_) = error else { return Err(error.into()) };
                calls::sleep(Duration::ZERO);
            }
            *sequence += 1;
        }
        // Behind them in the same mailbox.
        Ok(String::from_utf8(calls::call(to, "report", Duration::from_secs(60))?)?)
    }
}

fn ask(count: u32, to: Handle) -> Result<String, Refusal> {
    for _ in 0..count {
        calls::call(to, "ping", None)?;
    }
    Ok(String::new())
}

fn launch(count: u32, guest: &str) -> Result<String, Refusal> {
    let handles: Result<Vec<_>, _> = (0..count).map(|_| services::launch(guest, b"")).collect();
    Ok(handles?.iter().map(Handle::to_string).collect::<Vec<_>>().join(" "))
}

fn timeouts(count: u32) -> Result<String, Refusal> {
    for _ in 0..count {
        actor::timeout(Duration::from_secs(3_600), b"")?;
    }
    Ok(String::new())
}

wheelhouse_guest::service!(Pinger);
