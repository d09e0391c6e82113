//! An async service that has many requests under way. `ask N M HANDLE` asks a `counter` `ping` N times, M of them at a
//! time, and answers how many nanoseconds that took. Large numbers need a large `service.deadline_ms`.

use std::cell::Cell;

use orders::next;
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

#[derive(Serialize, Deserialize)]
struct Pinger;

impl AsyncService for Pinger {
    type Config = ();

    async fn init(_config: (), _arguments: Vec<u8>) -> Result<Self, Refusal> {
        Ok(Self)
    }

    async fn handle(&self, message: Message<'static>) -> Result<Vec<u8>, Refusal> {
        let order = &mut message.text()?;
        let ("ask", count, at_a_time) = (next::<String>(order)?.as_str(), next::<u32>(order)?, next::<u32>(order)?)
        else {
            refuse!("this pinger can ask");
        };
        let to = next::<Handle>(order)?;
        let begin = clock::now();
        let left = Cell::new(count);
        let outcomes = async_calls::join_all((0..at_a_time).map(|_| ask(&left, to))).await;
        outcomes.into_iter().collect::<Result<Vec<()>, _>>()?;
        Ok((clock::now() - begin).as_nanos().to_string().into_bytes())
    }
}

/// Asks one after another while there are any left.
async fn ask(left: &Cell<u32>, to: Handle) -> Result<(), ServiceError> {
    while left.get() > 0 {
        left.set(left.get() - 1);
        async_calls::call(to, "ping", None).await?;
    }
    Ok(())
}

wheelhouse_guest::async_service!(Pinger);
