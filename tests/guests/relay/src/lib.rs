//! A plain service that calls others, and passes messages on, as `orders::Relay` says.

use orders::Relay;
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

#[derive(Serialize, Deserialize)]
struct Plain;

impl Service for Plain {
    type Config = ();

    fn init(_config: (), _arguments: Vec<u8>) -> Result<Self, Refusal> {
        Ok(Self)
    }

    fn handle(&mut self, message: Message) -> Result<Vec<u8>, Refusal> {
        let mut order = Relay::parse(message.text()?)?;
        if let Relay::Sleep { duration, rest } = order {
            calls::sleep(duration);
            order = Relay::parse(rest)?;
        }
        match order {
            Relay::Echo(text) => Ok(text.into()),
            Relay::Call { to, limit, rest } => Ok(calls::call(to, rest, limit)?),
            Relay::Forward { to, rest } => {
                let payload = rest.as_bytes().to_vec().into();
                actor::forward(to, Message { payload, ..message })?;
                Ok(Vec::new())
            }
            Relay::Naps { times, duration, rest } => {
                (0..times).for_each(|_| calls::sleep(duration));
                Ok(rest.into())
            }
            Relay::Spin => loop {
                std::hint::spin_loop();
            },
            Relay::Leave { duration, rest } => {
                actor::exit();
                calls::sleep(duration);
                Ok(rest.into())
            }
            Relay::Sleep { .. } => refuse!("a relay sleeps once"),
        }
    }
}

wheelhouse_guest::service!(Plain);
