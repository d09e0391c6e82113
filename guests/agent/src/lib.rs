//! A service of the lobby: one for each client. It reads the client's lines, asks other services, and answers.
//!
//! A packet is one line of UTF-8 text, and so is each answer; `command` has the list. It ends when its client leaves.
//!
//! Configuration: `game` (`rules`) is the game guest to which `PLAY` takes the client. That game can send the client back
//! with `gate::bind` to the service `watchdog`, who launches a new agent.

mod command;

use std::time::Duration;

use command::Command;
use lobby::{AGENT_ENDS, AgentArguments, ChatRequest, Joined};
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

/// How long a client waits for another service.
const LIMIT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
struct Config {
    game: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { game: "rules".into() }
    }
}

/// A plain service: it does one thing at a time for its client, and there are many of it.
#[derive(Serialize, Deserialize)]
struct Agent {
    config: Config,
    arguments: AgentArguments,
    /// The channel that the client is in, with the subscription to what is said there.
    joined: Option<(String, SubscriptionId)>,
}

impl Service for Agent {
    type Config = Config;

    fn init(config: Config, arguments: Vec<u8>) -> Result<Self, Refusal> {
        let arguments = services::decode(&arguments)
            .map_err(|error| Refusal::new(format_args!("an agent is launched by the watchdog: {error}")))?;
        Ok(Self { config, arguments, joined: None })
    }

    fn handle(&mut self, message: Message) -> Result<Vec<u8>, Refusal> {
        match message.subject {
            Subject::Packet(_) => self.answer(&message)?,
            Subject::Published(_) => gate::tell(self.arguments.connection, &message.payload)?,
            Subject::Disconnected(_) => self.end()?,
            // The watchdog and the chat ask in this way whether this agent is still there.
            Subject::Connected(_) | Subject::Plain => {}
            other => refuse!("an agent hears of its client and of its channel, and got {other:?}"),
        }
        Ok(Vec::new())
    }
}

impl Agent {
    /// Answers a line. What goes wrong is told to the client, who can do something about it.
    fn answer(&mut self, message: &Message) -> Result<(), Refusal> {
        let answer = match message.text() {
            Ok(line) => self.carry_out(Command::parse(line)),
            Err(_) => Err(Refusal::new("a line is UTF-8 text")),
        };
        match answer {
            Ok(Some(line)) => gate::tell(self.arguments.connection, line)?,
            Ok(None) => {}
            Err(refusal) => gate::tell(self.arguments.connection, format!("error: {refusal}"))?,
        }
        Ok(())
    }

    /// Does what the client wants; the answer, if there is one at once.
    fn carry_out(&mut self, command: Command) -> Result<Option<String>, Refusal> {
        match command {
            Command::Echo(text) => Ok(Some(text.into())),
            Command::Database(line) => {
                let simpledb = self.find(&self.arguments.simpledb)?;
                Ok(Some(String::from_utf8(calls::call(simpledb, line, LIMIT)?)?))
            }
            Command::Join(channel) => self.join(channel).map(Some),
            Command::Leave => {
                let Some(channel) = self.leave()? else { refuse!("you are in no channel") };
                Ok(Some(format!("you left {channel}")))
            }
            Command::Say(text) => {
                let channel = self.channel()?;
                self.ask_chat::<()>(&ChatRequest::Say { channel, text: text.into() })?;
                Ok(None)
            }
            Command::Who => {
                let channel = self.channel()?;
                let names: Vec<String> = self.ask_chat(&ChatRequest::Who { channel })?;
                Ok(Some(names.join(", ")))
            }
            Command::Play => {
                // The client is gone from here with that, and this agent hears so next.
                gate::bind(self.arguments.connection, self.find(&self.config.game)?)?;
                Ok(None)
            }
            Command::Quit => {
                gate::close(self.arguments.connection);
                Ok(None)
            }
            Command::Unknown(word) => Ok(Some(command::help(word))),
        }
    }

    /// Subscribes first, so that nothing said in between is missed; what is said twice then is seen twice.
    fn join(&mut self, channel: &str) -> Result<String, Refusal> {
        self.leave()?;
        if channel.len() > lobby::MAX_CHANNEL_BYTES {
            refuse!("a channel's name has at most {} bytes", lobby::MAX_CHANNEL_BYTES);
        }
        let subscription = groups::subscribe(&lobby::group(channel))?;
        let name = format!("guest-{}", self.arguments.connection);
        let joined = self.ask_chat::<Joined>(&ChatRequest::Join { channel: channel.into(), name: name.clone() });
        let joined = joined.inspect_err(|_| _ = groups::unsubscribe(subscription))?;
        self.joined = Some((channel.into(), subscription));
        let topic = joined.topic.map(|topic| format!(", about {topic}")).unwrap_or_default();
        let heading = format!("you are {name} in {channel}{topic}");
        Ok([heading].into_iter().chain(joined.lines).collect::<Vec<_>>().join("\n"))
    }

    /// Leaves the channel that the client is in, if there is one.
    fn leave(&mut self) -> Result<Option<String>, Refusal> {
        let Some((channel, subscription)) = self.joined.take() else { return Ok(None) };
        groups::unsubscribe(subscription);
        self.ask_chat::<()>(&ChatRequest::Leave { channel: channel.clone() })?;
        Ok(Some(channel))
    }

    /// The client is gone. Whom this tells may be gone as well.
    fn end(&mut self) -> Result<(), Refusal> {
        actor::exit();
        if let (Some((channel, _)), Some(chat)) = (self.joined.take(), services::query(&self.arguments.chat)) {
            let left = services::send_value(chat, &ChatRequest::Leave { channel });
            left.unwrap_or_else(|error| debug!("the chat did not hear of it: {error}"));
        }
        let told = services::send(self.arguments.watchdog, AGENT_ENDS);
        told.unwrap_or_else(|error| debug!("the watchdog did not hear of it: {error}"));
        Ok(())
    }

    fn channel(&self) -> Result<String, Refusal> {
        match &self.joined {
            Some((channel, _)) => Ok(channel.clone()),
            None => refuse!("you are in no channel: JOIN one"),
        }
    }

    fn ask_chat<A: serde::de::DeserializeOwned>(&self, request: &ChatRequest) -> Result<A, Refusal> {
        Ok(calls::call_value(self.find(&self.arguments.chat)?, request, LIMIT)?)
    }

    /// The service with that name now: it may have been started anew since the last line.
    fn find(&self, name: &str) -> Result<Handle, Refusal> {
        services::query(name).ok_or_else(|| Refusal::new(format_args!("{name} is not there")))
    }
}

wheelhouse_guest::service!(Agent);
