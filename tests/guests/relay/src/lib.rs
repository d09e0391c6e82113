//! A plain service that calls others, and passes messages on, as `orders::Relay` says. With `add N` it adds to the tally
//! that `root` knows, and answers the sum.

use orders::Relay;
use orders::tally::{TALLY, TallyRef, the_root};
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
        let text = message.text()?;
        if let Some(number) = text.strip_prefix("add ") {
            return Ok(add(number.parse()?)?.to_string().into_bytes());
        }
        let mut order = Relay::parse(text)?;
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

fn add(number: u64) -> Result<u64, Refusal> {
    let Some(tally) = the_root()?.lookup(TALLY.into())? else { refuse!("root knows no tally") };
    Ok(TallyRef::from(tally).add(number)?)
}

wheelhouse_guest::service!(Plain);
