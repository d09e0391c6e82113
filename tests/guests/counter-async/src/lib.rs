//! An async service that looks whether messages come in order, and whether a handler runs alone between two waits:
//! `orders::Judge` has what it is sent and what it answers.

use std::time::Duration;

use orders::{Counted, Judge};
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

#[derive(Serialize, Deserialize)]
struct Counter {
    judge: Judge,
}

impl AsyncService for Counter {
    type Config = ();

    async fn init(_config: (), _arguments: Vec<u8>) -> Result<Self, Refusal> {
        Ok(Self { judge: Judge::default() })
    }

    async fn handle(&self, message: Message<'static>) -> Result<Vec<u8>, Refusal> {
        self.judge.enter();
        let answer = match Counted::read(&message.payload) {
            Some(counted) => {
                self.judge.count(message.source, counted.sequence);
                if let Some(wait_ms) = counted.wait_ms {
                    self.judge.leave();
                    async_calls::sleep(Duration::from_millis(wait_ms.into())).await;
                    self.judge.enter();
                }
                Ok(Vec::new())
            }
            None => message.text().and_then(|order| self.judge.answer(order)),
        };
        self.judge.leave();
        answer
    }
}

wheelhouse_guest::async_service!(Counter);
