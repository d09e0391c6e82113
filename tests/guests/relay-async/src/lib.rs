//! An async service that calls others, and passes messages on, as `orders::Relay` says.

use orders::Relay;
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

#[derive(Serialize, Deserialize)]
struct Async;

impl AsyncService for Async {
    type Config = ();

    async fn init(_config: (), _arguments: Vec<u8>) -> Result<Self, Refusal> {
        Ok(Self)
    }

    async fn handle(&self, message: Message<'static>) -> Result<Vec<u8>, Refusal> {
        let mut order = Relay::parse(message.text()?)?;
        if let Relay::Sleep { duration, rest } = order {
            async_calls::sleep(duration).await;
            order = Relay::parse(rest)?;
        }
        match order {
            Relay::Echo(text) => Ok(text.into()),
            Relay::Call { to, limit, rest } => Ok(async_calls::call(to, rest, limit).await?),
            Relay::Forward { to, rest } => {
                let payload = rest.as_bytes().to_vec().into();
                actor::forward(to, Message { payload, ..message })?;
                Ok(Vec::new())
            }
            Relay::Naps { times, duration, rest } => {
                for _ in 0..times {
                    async_calls::sleep(duration).await;
                }
                Ok(rest.into())
            }
            Relay::Spin => loop {
                std::hint::spin_loop();
            },
            Relay::Leave { duration, rest } => {
                actor::exit();
                async_calls::sleep(duration).await;
                Ok(rest.into())
            }
            Relay::Sleep { .. } => refuse!("a relay sleeps once"),
        }
    }
}

wheelhouse_guest::async_service!(Async);
