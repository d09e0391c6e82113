//! A game that tells services and other games what its packets say, and its clients what it hears.
//!
//! | packet | does and answers |
//! | --- | --- |
//! | `ping TEXT` | reads and writes nothing; `pong TEXT` |
//! | `who` | `NAME CONNECTION`, the game's name and the client's own connection |
//! | `find NAME` | `found HANDLE`, or `found nobody` |
//! | `listen` | from here on this client hears of other clients that come and go; `listening` |
//! | `read KEY`, `bump KEY` | reads the count under that key, or adds one; `KEY COUNT` |
//! | `tell NAME TEXT` | sends a text to whoever has that name; nothing |
//! | `post NAME TEXT` | the same, and adds one to the count `posted` |
//! | `half NAME TEXT` | sends the text, and then panics |
//! | `request LIMIT NAME TEXT` | asks for an answer within so many ms; `reply TEXT` when there is one, or `none WHY` |
//! | `bump-request LIMIT NAME TEXT` | the same, and adds one to the count `asked` |
//! | `launch GUEST NAME TEXT` | launches a service, names it and asks it; `called BOOL`, then as `request` |
//! | `name NEW NAME` | gives whoever has a name another; `named`, or `none WHY` |
//! | `subscribe CHANNEL`, `watch NAME` | what comes of it is a message to this game; `done` |
//! | `publish CHANNEL TEXT`, `put NAME TEXT` | publishes; `done` |
//! | `shared NAME` | `shared TEXT`, the blob, or `shared nothing` |
//! | `put-kib NAME KIB` | publishes so much under a name; `done` |
//! | `measure NAME` | `measured BYTES` of the blob, or `measured nothing` |
//! | `add SERVICE OBJECT N` | adds to a tally of that service; `sum N`, or `none WHY` |
//! | `bind NAME`, `bump-bind NAME` | binds this client to whoever has that name; nothing, or `none WHY` |
//! | `trap` | panics |
//!
//! | message | does and answers |
//! | --- | --- |
//! | `show CONNECTION TEXT` | sends the client `plain TEXT`, or `published TEXT`; nothing |
//! | `read KEY`, `bump KEY`, `refuse TEXT`, `trap` | as the words say; `KEY COUNT`, an error, a panic |
//!
//! That a blob has changed is told to whoever listens: `changed NAME`. Configuration: `name`.

use std::collections::BTreeMap;
use std::time::Duration;

use orders::next;
use orders::tally::TallyRef;
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Settings {
    name: String,
}

#[derive(Default, Serialize, Deserialize)]
struct Postman {
    name: String,
    listener: Option<ConnectionId>,
    /// Who wants to know what becomes of a request.
    asked: BTreeMap<Session, ConnectionId>,
    /// Who wants to know what a sum comes to.
    sums: BTreeMap<Session, ConnectionId>,
}

impl Game for Postman {
    type Config = Settings;

    fn init(settings: Settings, _occasion: Occasion) -> Result<Self, Refusal> {
        Ok(Self { name: settings.name, ..Self::default() })
    }

    fn on_connect(&mut self, connection: ConnectionId, _address: &str) -> Result<(), Refusal> {
        self.tell_listener(format!("connected {connection}"))
    }

    fn on_disconnect(&mut self, connection: ConnectionId) -> Result<(), Refusal> {
        self.tell_listener(format!("disconnected {connection}"))
    }

    fn on_packet(&mut self, connection: ConnectionId, packet: &[u8]) -> Result<(), Refusal> {
        let packet = std::str::from_utf8(packet)?;
        let (word, rest) = packet.split_once(' ').unwrap_or((packet, ""));
        let answer = match word {
            "ping" => format!("pong {rest}"),
            "who" => format!("{} {connection}", self.name),
            "find" => services::query(rest).map_or("found nobody".into(), |handle| format!("found {handle}")),
            "listen" => {
                self.listener = Some(connection);
                "listening".into()
            }
            "read" | "bump" => count(word, rest)?,
            "tell" | "post" | "half" => return send(word, rest),
            "request" | "bump-request" => return self.request(connection, word, rest),
            "launch" => return self.launch(connection, rest),
            "name" => {
                let (new, name) = pair(rest)?;
                match services::register(new, find(name)?) {
                    Ok(()) => "named".into(),
                    Err(error) => format!("none {error}"),
                }
            }
            "bind" | "bump-bind" => {
                if word == "bump-bind" {
                    count("bump", "bound")?;
                }
                gate::bind(connection, find(rest)?)?;
                return Ok(());
            }
            "add" => return self.add(connection, rest),
            "trap" => panic!("as the client wants it"),
            _ => of_everybody(word, rest)?,
        };
        Ok(gate::tell(connection, answer)?)
    }

    fn on_message(&mut self, message: Message) -> Result<Vec<u8>, Refusal> {
        let text = message.text()?;
        let kind = match message.subject {
            Subject::Plain => "plain",
            Subject::Published(_) => "published",
            Subject::Changed(_) => {
                self.tell_listener(format!("changed {text}"))?;
                return Ok(Vec::new());
            }
            ref other => refuse!("nobody should tell this game of {other:?}"),
        };
        match text.split_once(' ').unwrap_or((text, "")) {
            ("show", rest) => {
                let (connection, text) = pair(rest)?;
                gate::tell(connection.parse()?, format!("{kind} {text}"))?;
                Ok(Vec::new())
            }
            (word @ ("read" | "bump"), key) => Ok(count(word, key)?.into_bytes()),
            ("refuse", why) => refuse!("{why}"),
            ("trap", _) => panic!("as the sender wants it"),
            _ => refuse!("{text:?} is nothing to tell a postman"),
        }
    }

    fn on_reply(&mut self, session: Session, answer: Result<Vec<u8>, ServiceError>) -> Result<(), Refusal> {
        if let Some(connection) = self.sums.remove(&session) {
            let sum = objects::answer::<u64>(answer);
            return Ok(gate::tell(
                connection,
                sum.map_or_else(|error| format!("none {error}"), |sum| format!("sum {sum}")),
            )?);
        }
        let Some(connection) = self.asked.remove(&session) else { refuse!("nobody has asked for {session}") };
        let line = match answer {
            Ok(answer) => format!("reply {}", String::from_utf8_lossy(&answer)),
            Err(error) => format!("none {error}"),
        };
        Ok(gate::tell(connection, line)?)
    }
}

impl Postman {
    fn tell_listener(&self, line: String) -> Result<(), Refusal> {
        match self.listener {
            Some(listener) => Ok(gate::tell(listener, line)?),
            None => Ok(()),
        }
    }

    fn request(&mut self, connection: ConnectionId, word: &str, rest: &str) -> Result<(), Refusal> {
        let (limit, rest) = pair(rest)?;
        let (name, text) = pair(rest)?;
        if word == "bump-request" {
            count("bump", "asked")?;
        }
        match requests::request(find(name)?, text, Some(Duration::from_millis(limit.parse()?))) {
            Ok(session) => drop(self.asked.insert(session, connection)),
            Err(error) => gate::tell(connection, format!("none {error}"))?,
        }
        Ok(())
    }

    fn add(&mut self, connection: ConnectionId, mut rest: &str) -> Result<(), Refusal> {
        let tally = Reference { service: next(&mut rest)?, object: next(&mut rest)? };
        match TallyRef::from(tally).requested().add(next(&mut rest)?) {
            Ok(session) => drop(self.sums.insert(session, connection)),
            Err(error) => gate::tell(connection, format!("none {error}"))?,
        }
        Ok(())
    }

    fn launch(&mut self, connection: ConnectionId, rest: &str) -> Result<(), Refusal> {
        let (guest, rest) = pair(rest)?;
        let (name, text) = pair(rest)?;
        let service = services::launch(guest, "")?;
        services::register(name, service)?;
        gate::tell(connection, format!("called {}", services::query(name) == Some(service)))?;
        self.asked.insert(requests::request(service, text, None)?, connection);
        Ok(())
    }
}

fn of_everybody(word: &str, rest: &str) -> Result<String, Refusal> {
    match word {
        "subscribe" => drop(groups::subscribe(rest)?),
        "watch" if shared::watch(rest) => {}
        "publish" => {
            let (channel, text) = pair(rest)?;
            groups::publish(channel, text)?;
        }
        "put" => {
            let (name, text) = pair(rest)?;
            shared::put(name, text)?;
        }
        "put-kib" => {
            let (name, kib) = pair(rest)?;
            shared::put(name, vec![b'x'; kib.parse::<usize>()? * 1024])?;
        }
        "measure" => {
            let bytes = shared::read(rest).map_or("nothing".into(), |blob| blob.bytes.len().to_string());
            return Ok(format!("measured {bytes}"));
        }
        "shared" => {
            let text =
                shared::read(rest).map_or("nothing".into(), |blob| String::from_utf8_lossy(&blob.bytes).into_owned());
            return Ok(format!("shared {text}"));
        }
        _ => refuse!("a postman cannot {word}"),
    }
    Ok("done".into())
}

fn send(word: &str, rest: &str) -> Result<(), Refusal> {
    let (name, text) = pair(rest)?;
    if word == "post" {
        count("bump", "posted")?;
    }
    services::send(find(name)?, text)?;
    assert_ne!(word, "half", "this handler panics half-way");
    Ok(())
}

/// `KEY COUNT`, after one was added where the word is `bump`.
fn count(word: &str, key: &str) -> Result<String, Refusal> {
    let mut count: u64 = kv::get(key)?.unwrap_or_default();
    if word == "bump" {
        count += 1;
        kv::set(key, &count)?;
    }
    Ok(format!("{key} {count}"))
}

fn find(name: &str) -> Result<Handle, Refusal> {
    match services::query(name) {
        Some(handle) => Ok(handle),
        None => refuse!("nobody is called {name}"),
    }
}

fn pair(text: &str) -> Result<(&str, &str), Refusal> {
    match text.split_once(' ') {
        Some(pair) => Ok(pair),
        None => refuse!("there should be more than {text:?}"),
    }
}

wheelhouse_guest::game!(Postman);
