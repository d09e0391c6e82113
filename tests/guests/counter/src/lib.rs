//! A plain service that looks whether messages come in order and one at a time: `orders::Judge` has what it is sent and
//! what it answers.

use orders::{Counted, Judge};
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

#[derive(Serialize, Deserialize)]
struct Counter {
    judge: Judge,
}

impl Service for Counter {
    type Config = ();

    fn init(_config: (), _arguments: Vec<u8>) -> Result<Self, Refusal> {
        Ok(Self { judge: Judge::default() })
    }

    fn handle(&mut self, message: Message) -> Result<Vec<u8>, Refusal> {
        self.judge.enter();
        let answer = match Counted::read(&message.payload) {
            Some(counted) => {
                self.judge.count(message.source, counted.sequence);
                Ok(Vec::new())
            }
            None => message.text().and_then(|order| self.judge.answer(order)),
        };
        self.judge.leave();
        answer
    }
}

wheelhouse_guest::service!(Counter);
