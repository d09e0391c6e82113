//! A service that counts the messages it is sent, and answers each with how many there were: at once, or, where the message
//! is a number of milliseconds, after it has slept for so long.

use std::time::Duration;

use changeling::{Mark, Marked};
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

#[derive(Default, Serialize, Deserialize)]
struct Counter {
    count: u64,
    ballast: Vec<u8>,
    marked: Marked,
}

impl Service for Counter {
    type Config = ();

    fn init(_config: (), _arguments: Vec<u8>) -> Result<Self, Refusal> {
        Mark::read().misbehave("init")?;
        Ok(Self { ballast: vec![7; 500_000], ..Self::default() })
    }

    fn handle(&mut self, message: Message) -> Result<Vec<u8>, Refusal> {
        Mark::read().count();
        self.count += 1;
        if let Ok(milliseconds) = message.text()?.parse() {
            calls::sleep(Duration::from_millis(milliseconds));
        }
        Ok(self.count.to_string().into_bytes())
    }
}

wheelhouse_guest::service!(Counter);
