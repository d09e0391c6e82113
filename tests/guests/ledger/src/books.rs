//! What the ledger writes down, all of it in `kv` and as text, so that `dump` shows it as it is.
//!
//! `ledger/NAME` is a count. `ran/SEQUENCE/DUE` says of an event how often it ran, by which kind and payload it was
//! called, how late it was the last time and how many runs it stood for: `COUNT KIND LATE MISSED PAYLOAD`. `order/NUMBER`
//! says which event was the NUMBER-th that ran, `SEQUENCE/DUE`. Numbers in keys have leading zeros, so that keys are in
//! the order of numbers.

use std::fmt::Display;
use std::str::FromStr;

use wheelhouse_guest::prelude::*;

/// The number in a ledger.
pub fn read(name: &str) -> Result<u64, Refusal> {
    number_at(&ledger(name))
}

/// Adds one to a ledger, and answers what is in it then.
pub fn bump(name: &str) -> Result<u64, Refusal> {
    count_up(&ledger(name))
}

/// Notes that an event ran, and in which order.
pub fn note_run(event: &DueEvent) -> Result<(), Refusal> {
    let DueEvent { id, kind, payload, late_ms, missed } = event;
    let name = format!("{:012}/{:015}", id.sequence, id.due_ms);
    let key = format!("ran/{name}");
    let before = text_at(&key)?.and_then(|text| text.split(' ').next()?.parse::<u64>().ok()).unwrap_or_default();
    let payload = std::str::from_utf8(payload)?;
    put(&key, format_args!("{} {kind} {late_ms} {missed} {payload}", before + 1))?;
    let number = count_up("ran-in-all")?;
    put(&format!("order/{number:012}"), name)
}

/// Stores a text.
pub fn put(key: &str, text: impl Display) -> Result<(), Refusal> {
    Ok(kv::set_bytes(key, text.to_string().as_bytes())?)
}

fn ledger(name: &str) -> String {
    format!("ledger/{name}")
}

fn count_up(key: &str) -> Result<u64, Refusal> {
    let number = number_at(key)? + 1;
    put(key, number)?;
    Ok(number)
}

fn number_at(key: &str) -> Result<u64, Refusal> {
    match text_at(key)? {
        Some(text) => Ok(u64::from_str(&text)?),
        None => Ok(0),
    }
}

fn text_at(key: &str) -> Result<Option<String>, Refusal> {
    Ok(kv::get_bytes(key).map(String::from_utf8).transpose()?)
}
