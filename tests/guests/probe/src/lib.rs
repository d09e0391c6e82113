//! An async service that does for others what only a service can, and keeps what it hears.
//!
//! | order | does and answers |
//! | --- | --- |
//! | `call NAME TEXT` | asks whoever has that name; the answer |
//! | `export NUMBER` | exports a tally, and names it at `root`; `SERVICE OBJECT` |
//! | `add N` | adds to the tally that `root` knows, its own or another's; the sum |
//! | `withdraw` | takes back the tally that `root` knows; whether it was its own |
//! | `subscribe CHANNEL`, `watch NAME` | what comes of it is heard; `done` |
//! | `publish CHANNEL TEXT` | how many heard it |
//! | `put NAME KIB` | publishes so much under a name; `done` |
//! | `measure NAME` | `BYTES` of the blob, or `nothing` |
//! | `heard` | what has come beside orders, a line each |

use std::cell::RefCell;

use orders::next;
use orders::tally::{Sum, TALLY, TallyRef, the_root};
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

#[derive(Serialize, Deserialize)]
struct Probe {
    heard: RefCell<Vec<String>>,
}

impl AsyncService for Probe {
    type Config = ();

    async fn init(_config: (), _arguments: Vec<u8>) -> Result<Self, Refusal> {
        Ok(Self { heard: RefCell::default() })
    }

    async fn handle(&self, message: Message<'static>) -> Result<Vec<u8>, Refusal> {
        let text = message.text()?;
        let answer = match message.subject {
            Subject::Plain if text == "heard" => self.heard.borrow().join("\n"),
            Subject::Plain => carry_out(text).await?,
            Subject::Published(_) => self.keep("published", text),
            Subject::Changed(_) => self.keep("changed", text),
            ref other => refuse!("nobody should tell a probe of {other:?}"),
        };
        Ok(answer.into_bytes())
    }
}

impl Probe {
    fn keep(&self, what: &str, text: &str) -> String {
        self.heard.borrow_mut().push(format!("{what} {text}"));
        String::new()
    }
}

async fn carry_out(mut order: &str) -> Result<String, Refusal> {
    let order = &mut order;
    Ok(match next::<String>(order)?.as_str() {
        "call" => {
            let name: String = next(order)?;
            let Some(to) = services::query(&name) else { refuse!("nobody is called {name}") };
            String::from_utf8(async_calls::call(to, *order, None).await?)?
        }
        "export" => {
            let tally = Reference::from(TallyRef::export_as(next(order)?, Sum::default()));
            the_root()?.awaited().replace(TALLY.into(), tally).await??;
            format!("{} {}", tally.service, tally.object)
        }
        "add" => tally().await?.awaited().add(next(order)?).await?.to_string(),
        "withdraw" => tally().await?.withdraw().to_string(),
        "subscribe" => {
            groups::subscribe(order)?;
            "done".into()
        }
        "watch" if shared::watch(order) => "done".into(),
        "publish" => groups::publish(&next::<String>(order)?, *order)?.to_string(),
        "put" => {
            shared::put(&next::<String>(order)?, vec![b'x'; next::<usize>(order)? * 1024])?;
            "done".into()
        }
        "measure" => shared::read(order).map_or("nothing".into(), |blob| blob.bytes.len().to_string()),
        other => refuse!("a probe cannot {other}"),
    })
}

async fn tally() -> Result<TallyRef, Refusal> {
    let Some(tally) = the_root()?.awaited().lookup(TALLY.into()).await? else { refuse!("root knows no tally") };
    Ok(tally.into())
}

wheelhouse_guest::async_service!(Probe);
