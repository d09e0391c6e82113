//! A game that sends and asks as its clients want, and answers what it is asked. A packet is `TAG ORDER`, and is answered
//! `TAG ok ANSWER` or `TAG error WHY`. A message is an order without a tag.
//!
//! | order | does |
//! | --- | --- |
//! | `echo TEXT` | answers it |
//! | `count` | answers how many `note`s took effect |
//! | `note TEXT` | counts one in `kv`, and tells all clients `noted SOURCE TEXT` |
//! | `note-and-refuse TEXT`, `note-and-panic TEXT` | the same, and then leaves no trace of it |
//! | `send HANDLE TEXT` | sends a message |
//! | `send-and-refuse HANDLE TEXT` | sends one that must never arrive |
//! | `query NAME`, `launch GUEST ARGUMENTS`, `register NAME HANDLE`, `kill HANDLE` | the same with `services` |
//! | `publish CHANNEL TEXT`, `subscribe CHANNEL` | the same with `groups`; what comes is told to all clients |
//! | `put NAME KIB`, `read NAME` | the same with `shared` |
//! | `bind NAME` | gives the client to the service of that name |
//! | `ask MS HANDLE TEXT` | asks; `TAG reply ANSWER` or `TAG no-reply WHY` comes later. Packets only |
//! | `ask-and-refuse MS HANDLE TEXT` | asks, and takes it back: no reply ever comes. Packets only |

use std::time::Duration;

use orders::next;
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

const NOTES: &str = "notes";

#[derive(Serialize, Deserialize)]
struct Correspondent;

impl Game for Correspondent {
    type Config = ();

    fn init(_config: (), _occasion: Occasion) -> Result<Self, Refusal> {
        Ok(Self)
    }

    fn on_connect(&mut self, connection: ConnectionId, _address: &str) -> Result<(), Refusal> {
        kv::set(&client_key(connection), &connection)?;
        Ok(())
    }

    fn on_disconnect(&mut self, connection: ConnectionId) -> Result<(), Refusal> {
        kv::delete(&client_key(connection))?;
        Ok(())
    }

    /// What an order refuses is told to the client, and undone with the handler only where the order says so.
    fn on_packet(&mut self, connection: ConnectionId, packet: &[u8]) -> Result<(), Refusal> {
        let (tag, order) = std::str::from_utf8(packet)?.split_once(' ').unwrap_or_default();
        let answer = match order.split_once(' ') {
            Some(("ask", mut rest)) => ask(connection, tag, &mut rest).map(|()| None),
            Some(("ask-and-refuse", mut rest)) => {
                ask(connection, tag, &mut rest)?;
                refuse!("this is taken back, as it was told")
            }
            Some(("bind", name)) => bind(connection, name).map(|()| None),
            _ if order.contains("-and-refuse ") => return Err(carry_out(0, order).err().unwrap_or(not_refused())),
            _ => carry_out(0, order).map(Some),
        };
        match answer {
            Ok(None) => {}
            Ok(Some(answer)) => gate::tell(connection, format!("{tag} ok {answer}"))?,
            Err(refusal) => gate::tell(connection, format!("{tag} error {refusal}"))?,
        }
        Ok(())
    }

    fn on_message(&mut self, message: Message) -> Result<Vec<u8>, Refusal> {
        let text = message.text()?;
        if message.subject != Subject::Plain {
            tell_all(&format!("heard {:?} {text}", message.subject))?;
            return Ok(Vec::new());
        }
        carry_out(message.source, text).map(String::into_bytes)
    }

    fn on_reply(&mut self, session: Session, answer: Result<Vec<u8>, ServiceError>) -> Result<(), Refusal> {
        let key = asked_key(session);
        let Some((connection, tag)) = kv::get::<(ConnectionId, String)>(&key)? else {
            refuse!("a reply to {session}, which nobody asked")
        };
        kv::delete(&key)?;
        let line = match answer {
            Ok(answer) => format!("{tag} reply {}", String::from_utf8_lossy(&answer)),
            Err(error) => format!("{tag} no-reply {error}"),
        };
        Ok(gate::tell(connection, line)?)
    }
}

fn carry_out(source: Handle, mut order: &str) -> Result<String, Refusal> {
    let order = &mut order;
    Ok(match next::<String>(order)?.as_str() {
        "echo" => (*order).to_owned(),
        "count" => kv::get::<u64>(NOTES)?.unwrap_or_default().to_string(),
        "note" => note(source, order)?,
        "note-and-refuse" => {
            note(source, order)?;
            refuse!("this is refused, as it was told")
        }
        "note-and-panic" => {
            note(source, order)?;
            panic!("this game panics, as it was told")
        }
        "send" => sent(services::send(next(order)?, *order))?,
        "send-and-refuse" => {
            services::send(next(order)?, *order)?;
            refuse!("this is refused, as it was told")
        }
        "query" => services::query(order).map_or_else(|| "none".into(), |handle| handle.to_string()),
        "launch" => services::launch(&next::<String>(order)?, *order)?.to_string(),
        "register" => sent(services::register(&next::<String>(order)?, next(order)?))?,
        "kill" => services::kill(next(order)?).to_string(),
        "publish" => groups::publish(&next::<String>(order)?, *order)?.to_string(),
        "subscribe" => groups::subscribe(order)?.to_string(),
        "put" => {
            shared::put(&next::<String>(order)?, vec![b'x'; next::<usize>(order)? * 1024])?;
            "ok".into()
        }
        "read" => match shared::read(order) {
            Some(blob) => format!("{} {}", blob.version, blob.bytes.len()),
            None => "none".into(),
        },
        other => refuse!("a correspondent cannot {other}"),
    })
}

fn sent(outcome: Result<(), ServiceError>) -> Result<String, Refusal> {
    Ok(outcome.map(|()| "ok".into())?)
}

fn not_refused() -> Refusal {
    Refusal::new("this was to be refused")
}

fn note(source: Handle, text: &str) -> Result<String, Refusal> {
    let count = kv::get::<u64>(NOTES)?.unwrap_or_default() + 1;
    kv::set(NOTES, &count)?;
    tell_all(&format!("noted {source} {text}"))?;
    Ok(count.to_string())
}

fn ask(connection: ConnectionId, tag: &str, order: &mut &str) -> Result<(), Refusal> {
    let limit = Duration::from_millis(next(order)?);
    let session = requests::request(next(order)?, *order, limit)?;
    Ok(kv::set(&asked_key(session), &(connection, tag))?)
}

fn bind(connection: ConnectionId, name: &str) -> Result<(), Refusal> {
    let Some(service) = services::query(name) else { refuse!("{name} is not there") };
    Ok(gate::bind(connection, service)?)
}

fn tell_all(line: &str) -> Result<(), Refusal> {
    let clients = kv::scan("client/", None, 1_000);
    let connections: Result<Vec<ConnectionId>, _> =
        clients.iter().map(|client| client.key["client/".len()..].parse()).collect();
    gate::send_all(&connections?, line)?;
    Ok(())
}

fn client_key(connection: ConnectionId) -> String {
    format!("client/{connection}")
}

fn asked_key(session: Session) -> String {
    format!("asked/{session}")
}

wheelhouse_guest::game!(Correspondent);
