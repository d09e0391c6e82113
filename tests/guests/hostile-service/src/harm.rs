//! The harm that only a service can do, and what shows how its host takes it.

use std::borrow::Cow;
use std::fmt::Debug;
use std::str::FromStr;
use std::time::Duration;

use wheelhouse_guest::prelude::*;

/// More than any limit on how many there may be.
const FLOOD: u32 = 10_000_000;

/// Does the named harm, and says how far it came.
pub fn commit(name: &str, rest: &mut &str) -> Result<String, Refusal> {
    Ok(match name {
        "echo" => (*rest).to_owned(),
        "forge" => actor::reply(next(rest)?, Ok(b"forged".to_vec())).to_string(),
        "forge-forward" => forge_forward(next(rest)?, next(rest)?, next(rest)?),
        "launch-many" => flood(FLOOD, |_| services::launch(rest, b"")),
        "call" => {
            let limit = Duration::from_millis(next(rest)?);
            String::from_utf8(calls::call(next(rest)?, *rest, limit)?)?
        }
        "call-self" => said(calls::call(actor::this(), "echo", Duration::from_millis(next(rest)?))),
        "flood" => {
            let (count, to) = (next(rest)?, next(rest)?);
            flood(count, |number| services::send(to, format!("echo {number}")))
        }
        "sleep" => {
            calls::sleep(Duration::from_millis(next(rest)?));
            "awake".into()
        }
        "nap" => {
            sockets::send(next(rest)?, "asleep")?;
            calls::sleep(Duration::from_millis(next(rest)?));
            "awake".into()
        }
        "exit" => {
            actor::exit();
            "exits".into()
        }
        "connect" => said(sockets::connect(&next::<String>(rest)?, next(rest)?)),
        "socket-send" => said(sockets::send(next(rest)?, *rest)),
        "socket-close" => sockets::close(next(rest)?).to_string(),
        "timeout" => said(actor::timeout(Duration::from_millis(next(rest)?), b"ring")),
        "timeouts" => flood(FLOOD, |_| actor::timeout(Duration::from_secs(3_600), b"")),
        "subscriptions" => flood(FLOOD, |number| groups::subscribe(&number.to_string())),
        "subscribe" => said(groups::subscribe(rest)),
        "publish" => said(groups::publish(&next::<String>(rest)?, *rest)),
        "watch" => shared::watch(rest).to_string(),
        "put" => said(shared::put("hostile", kib(next(rest)?))),
        "big-answer" => String::from_utf8(kib(next(rest)?))?,
        "big-send" => said(services::send(next(rest)?, kib(next(rest)?))),
        "long-name" => said(services::register(&mischief::too_long_text(), actor::this())),
        _ if mischief::commit(name) => "done".into(),
        _ => refuse!("this service cannot do {name:?}"),
    })
}

/// A message that somebody else has, or nobody.
fn forge_forward(to: Handle, source: Handle, session: Session) -> String {
    let payload = Cow::Borrowed(b"echo forged".as_slice());
    said(actor::forward(to, Message { source, session: Some(session), subject: Subject::Plain, payload }))
}

fn kib(count: usize) -> Vec<u8> {
    vec![b'x'; count * 1024]
}

/// Does it again and again until the host has had enough; says how often that was, and the error.
fn flood<T, E: Debug>(count: u32, mut harm: impl FnMut(u32) -> Result<T, E>) -> String {
    for number in 0..count {
        if let Err(error) = harm(number) {
            return format!("{number} then {error:?}");
        }
    }
    count.to_string()
}

fn said<T: Debug, E: Debug>(outcome: Result<T, E>) -> String {
    format!("{outcome:?}")
}

fn next<T: FromStr<Err: std::error::Error>>(rest: &mut &str) -> Result<T, Refusal> {
    let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
    *rest = behind;
    Ok(word.parse::<T>()?)
}
