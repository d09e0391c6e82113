//! A service that counts the messages it is sent, and answers each with how many there were.

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

    fn handle(&mut self, _message: Message) -> Result<Vec<u8>, Refusal> {
        Mark::read().count();
        self.count += 1;
        Ok(self.count.to_string().into_bytes())
    }
}

wheelhouse_guest::service!(Counter);
