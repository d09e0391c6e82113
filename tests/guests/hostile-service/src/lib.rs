//! A service that misbehaves as it is told: by a message, by the arguments of its launch, or by `init` in its
//! configuration. The last two name a harm of `mischief` or `refuse`, and are done in `init`.
//!
//! | message | does |
//! | --- | --- |
//! | the name of a harm in `mischief` | does it |
//! | `echo TEXT` | answers the text |
//! | `refuse TEXT` | refuses with it |
//! | `answer-twice` | answers `first`, and then again; `heard` tells what came of the second |
//! | `forge SESSION` | answers a request that it may not have: `true` or `false` |
//! | `forge-forward HANDLE SOURCE SESSION` | passes on a message that it never had |
//! | `forge-subject HANDLE ID` | passes this message on as if it were of a timeout |
//! | `compute MS` | computes for so long |
//! | `defer-and-die`, `defer-for-ever` | keeps the answer back, and fails at once or not |
//! | `answer-deferred` | answers the oldest of those that it kept back |
//! | `launch-many GUEST` | launches until it may not: `N then ERROR` |
//! | `call MS HANDLE TEXT` | calls somebody, at most so long |
//! | `call-self MS` | calls itself |
//! | `flood N HANDLE` | sends so many messages: `N then ERROR`, or `N` |
//! | `sleep MS` | waits |
//! | `nap SOCKET MS` | says `asleep` on the socket, and waits |
//! | `exit` | ends |
//! | `connect HOST PORT` | opens a connection; answers its id or the error, `heard` tells the rest |
//! | `socket-send ID TEXT`, `socket-close ID` | sends on it, closes it |
//! | `timeout MS` | sets one, which rings |
//! | `timeouts`, `subscriptions` | sets timeouts, subscribes, until it may not |
//! | `publish CHANNEL TEXT`, `subscribe CHANNEL`, `watch NAME` | does so |
//! | `put KIB`, `big-answer KIB`, `big-send HANDLE KIB` | hands that much to the host |
//! | `pass-on HANDLE` | from here on what comes beside orders goes to another |
//! | `heard` | what it has heard beside such messages, a line each |

mod harm;

use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Config {
    init: String,
}

#[derive(Default, Serialize, Deserialize)]
struct Hostile {
    deferred: Vec<Session>,
    heard: Vec<String>,
    /// Who hears what comes beside orders in its place.
    heir: Option<Handle>,
}

impl Service for Hostile {
    type Config = Config;

    fn init(config: Config, arguments: Vec<u8>) -> Result<Self, Refusal> {
        for name in [config.init.as_str(), std::str::from_utf8(&arguments)?] {
            if name == "refuse" {
                refuse!("this service does not start, as it was told");
            }
            mischief::commit(name);
        }
        Ok(Self::default())
    }

    fn handle(&mut self, message: Message) -> Result<Vec<u8>, Refusal> {
        if message.subject != Subject::Plain {
            if let Some(heir) = self.heir {
                actor::forward(heir, message)?;
                return Ok(Vec::new());
            }
            self.heard.push(format!("{:?} {}", message.subject, String::from_utf8_lossy(&message.payload)));
            return Ok(Vec::new());
        }
        let text = message.text()?;
        let (name, mut rest) = text.split_once(' ').unwrap_or((text, ""));
        let answer = match name {
            "refuse" => refuse!("{rest}"),
            "pass-on" => {
                self.heir = Some(rest.parse()?);
                "passes on".into()
            }
            "heard" => self.heard.join("\n"),
            "answer-twice" => {
                let session = session(&message)?;
                let answers = ["first", "second"].map(|answer| actor::reply(session, Ok(answer.into())));
                self.heard.push(format!("answered {answers:?}"));
                "third".into()
            }
            "forge-subject" => {
                let (to, id) = rest.split_once(' ').ok_or_else(|| Refusal::new("the order is cut short"))?;
                let forged = Message { subject: Subject::Timeout(id.parse()?), ..message.clone() };
                format!("{:?}", actor::forward(to.parse()?, forged))
            }
            "compute" => {
                let until = clock::now() + std::time::Duration::from_millis(rest.parse()?);
                while clock::now() < until {}
                String::new()
            }
            "defer-and-die" => {
                actor::defer(session(&message)?);
                panic!("this service dies with an answer open, as it was told")
            }
            "defer-for-ever" => {
                self.deferred.push(session(&message)?);
                actor::defer(session(&message)?).to_string()
            }
            "answer-deferred" if self.deferred.is_empty() => refuse!("nobody waits"),
            "answer-deferred" => actor::reply(self.deferred.remove(0), Ok(b"at last".to_vec())).to_string(),
            name => harm::commit(name, &mut rest)?,
        };
        Ok(answer.into_bytes())
    }
}

fn session(message: &Message) -> Result<Session, Refusal> {
    message.session.ok_or_else(|| Refusal::new("this wants to be asked, not told"))
}

wheelhouse_guest::service!(Hostile);
