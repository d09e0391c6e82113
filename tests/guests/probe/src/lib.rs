//! An async service that does for clients what only a service can, as the watchdog of a host or started by its name. A
//! packet is `TAG ORDER`, and is answered `TAG ok ANSWER` or `TAG error WHY`; several may be under way. A message is the
//! same without a tag.
//!
//! | order | answer |
//! | --- | --- |
//! | `launch GUEST ARGUMENTS` | the handle |
//! | `kill HANDLE` | `true` or `false` |
//! | `query NAME` | the handle, or `none` |
//! | `register NAME HANDLE`, `unregister NAME` | `ok`; `true` or `false` |
//! | `call HANDLE TEXT`, `within MS HANDLE TEXT` | the answer |
//! | `calls N HANDLE TEXT` | calls N times at once: `N answered M failed`, and the last error |
//! | `send HANDLE TEXT` | `ok` |
//! | `publish CHANNEL TEXT` | how many heard it |
//! | `put NAME KIB`, `read NAME` | `ok`; `VERSION BYTES` |
//! | `export NUMBER` | exports a tally under the name `tally` at `root`: the reference |
//! | `add N` | adds to the tally that `root` knows: the sum |
//! | `withdraw` | takes back the tally that `root` knows, where it is its own |

use std::time::Duration;

use orders::next;
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

wheelhouse_guest::remote! {
    /// A sum.
    trait Tally as TallyRef {
        /// Adds, and says what it comes to.
        fn add(&mut self, number: u64) -> u64;
    }
}

#[derive(Default)]
struct Sum(u64);

impl Tally for Sum {
    fn add(&mut self, number: u64) -> u64 {
        self.0 += number;
        self.0
    }
}

#[derive(Serialize, Deserialize)]
struct Probe;

impl AsyncService for Probe {
    type Config = ();

    async fn init(_config: (), _arguments: Vec<u8>) -> Result<Self, Refusal> {
        Ok(Self)
    }

    async fn handle(&self, message: Message<'static>) -> Result<Vec<u8>, Refusal> {
        let text = message.text()?;
        match message.subject {
            Subject::Packet(connection) => {
                let (tag, order) = text.split_once(' ').unwrap_or((text, ""));
                let answer = match carry_out(order).await {
                    Ok(answer) => format!("{tag} ok {answer}"),
                    Err(refusal) => format!("{tag} error {refusal}"),
                };
                gate::tell(connection, answer)?;
                Ok(Vec::new())
            }
            Subject::Plain => carry_out(text).await.map(String::into_bytes),
            _ => Ok(Vec::new()),
        }
    }
}

async fn carry_out(mut order: &str) -> Result<String, Refusal> {
    let order = &mut order;
    Ok(match next::<String>(order)?.as_str() {
        "launch" => services::launch(&next::<String>(order)?, *order)?.to_string(),
        "kill" => services::kill(next(order)?).to_string(),
        "query" => services::query(order).map_or_else(|| "none".into(), |handle| handle.to_string()),
        "register" => {
            services::register(&next::<String>(order)?, next(order)?)?;
            "ok".into()
        }
        "unregister" => services::unregister(order).to_string(),
        "call" => String::from_utf8(async_calls::call(next(order)?, *order, None).await?)?,
        "within" => {
            let limit = Duration::from_millis(next(order)?);
            String::from_utf8(async_calls::call(next(order)?, *order, limit).await?)?
        }
        "calls" => call_many(next(order)?, next(order)?, order).await,
        "send" => {
            services::send(next(order)?, *order)?;
            "ok".into()
        }
        "publish" => groups::publish(&next::<String>(order)?, *order)?.to_string(),
        "put" => {
            shared::put(&next::<String>(order)?, vec![b'x'; next::<usize>(order)? * 1024])?;
            "ok".into()
        }
        "read" => match shared::read(order) {
            Some(blob) => format!("{} {}", blob.version, blob.bytes.len()),
            None => "none".into(),
        },
        "export" => {
            let tally = TallyRef::export_as(next(order)?, Sum::default());
            root()?.awaited().replace("tally".into(), tally.into()).await??;
            format!("{tally:?}")
        }
        "add" => tally().await?.awaited().add(next(order)?).await?.to_string(),
        "withdraw" => tally().await?.withdraw().to_string(),
        other => refuse!("a probe cannot {other}"),
    })
}

async fn call_many(count: u32, to: Handle, text: &str) -> String {
    let answers = async_calls::join_all((0..count).map(|_| async_calls::call(to, text, None))).await;
    let failed: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
    let last = failed.last().map(|error| format!(": {error}")).unwrap_or_default();
    format!("{} answered {} failed{last}", answers.len() - failed.len(), failed.len())
}

fn root() -> Result<objects::RootRef, Refusal> {
    objects::root().ok_or_else(|| Refusal::new("there is no root"))
}

async fn tally() -> Result<TallyRef, Refusal> {
    let Some(tally) = root()?.awaited().lookup("tally".into()).await? else { refuse!("root knows no tally") };
    Ok(tally.into())
}

wheelhouse_guest::async_service!(Probe);
