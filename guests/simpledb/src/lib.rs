//! A service of the lobby: an in-memory key-value service, found under the name `simpledb`.
//!
//! A request is a line of text. `GET KEY` answers the value, or `(none)`; `SET KEY VALUE` answers `OK`. A key is one
//! word, a value is the rest of the line. What it keeps is kept in memory only: one that is started again begins empty.
//!
//! Configuration: `max_kb` (16384) is how much it keeps, keys, values and 64 bytes of its own for each key; the guest's
//! memory limit, `guest.max_memory_mb`, must leave room for that.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

/// The longest key in bytes.
const MAX_KEY_BYTES: usize = 256;

/// What a key costs beside its own bytes and those of its value.
const KEY_COST_BYTES: usize = 64;

#[derive(Deserialize)]
#[serde(default)]
struct Config {
    max_kb: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_kb: 16_384 }
    }
}

impl Config {
    fn max_bytes(&self) -> usize {
        self.max_kb.saturating_mul(1024)
    }
}

/// What it holds goes over to new code, as long as that is no longer than a saved state may be (`guest.max_payload_kb`).
#[derive(Default, Serialize, Deserialize)]
struct Database {
    values: BTreeMap<String, String>,
    used_bytes: usize,
    #[serde(skip)]
    max_bytes: usize,
}

impl Service for Database {
    type Config = Config;

    fn init(config: Config, _arguments: Vec<u8>) -> Result<Self, Refusal> {
        services::register("simpledb", actor::this())?;
        Ok(Self::new(config))
    }

    fn handle(&mut self, message: Message) -> Result<Vec<u8>, Refusal> {
        self.answer(message.text()?).map(String::into_bytes)
    }

    fn restored(&mut self, config: Config) {
        self.max_bytes = config.max_bytes();
    }
}

impl Database {
    fn new(config: Config) -> Self {
        Self { max_bytes: config.max_bytes(), ..Self::default() }
    }

    fn answer(&mut self, line: &str) -> Result<String, Refusal> {
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (command, rest.split_once(' ').unwrap_or((rest, ""))) {
            ("GET", (key, "")) if !key.is_empty() => {
                Ok(self.values.get(key).map_or_else(|| "(none)".into(), String::clone))
            }
            ("SET", (key, value)) if !key.is_empty() => {
                self.set(key, value)?;
                Ok("OK".into())
            }
            _ => refuse!("simpledb takes GET KEY and SET KEY VALUE"),
        }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), Refusal> {
        if key.len() > MAX_KEY_BYTES {
            refuse!("a key has at most {MAX_KEY_BYTES} bytes, and this one {}", key.len());
        }
        let freed_bytes = self.values.get(key).map_or(0, |before| cost(key, before));
        let used_bytes = self.used_bytes - freed_bytes + cost(key, value);
        if used_bytes > self.max_bytes {
            refuse!("simpledb is full: it keeps {} KiB (max_kb)", self.max_bytes / 1024);
        }
        self.values.insert(key.into(), value.into());
        self.used_bytes = used_bytes;
        Ok(())
    }
}

fn cost(key: &str, value: &str) -> usize {
    key.len() + value.len() + KEY_COST_BYTES
}

wheelhouse_guest::service!(Database);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_is_got_and_what_was_not_is_none() {
        let mut database = Database::new(Config::default());
        assert_eq!(database.answer("GET sheep").unwrap(), "(none)");
        assert_eq!(database.answer("SET sheep a white one").unwrap(), "OK");
        assert_eq!(database.answer("GET sheep").unwrap(), "a white one");
        assert_eq!(database.answer("SET sheep").unwrap(), "OK");
        assert_eq!(database.answer("GET sheep").unwrap(), "");
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let mut database = Database::new(Config::default());
        for line in ["", "GET", "SET", "GET ", "GET one two", "get sheep", "DROP sheep"] {
            assert!(database.answer(line).is_err(), "{line:?}");
        }
        assert!(database.answer(&format!("SET {} x", "k".repeat(257))).is_err());
    }

    #[test]
    fn it_keeps_no_more_than_it_may_however_often_a_key_is_set() {
        let mut database = Database::new(Config { max_kb: 1 });
        let value = "x".repeat(400);
        for _ in 0..10 {
            assert_eq!(database.answer(&format!("SET a {value}")).unwrap(), "OK");
            assert_eq!(database.answer(&format!("SET b {value}")).unwrap(), "OK");
        }
        assert!(database.answer(&format!("SET c {value}")).unwrap_err().message().contains("full"));
        database.answer("SET a").unwrap();
        assert_eq!(database.answer(&format!("SET c {value}")).unwrap(), "OK");
    }
}
