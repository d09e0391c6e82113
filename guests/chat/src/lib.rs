//! An async service of the lobby: channels, who is in them, and what was said last. It is found under the name `chat`
//! and asked with `lobby::ChatRequest`; what is said goes to all who are in a channel through the channel's group.
//!
//! It shows why a service is async: who joins a channel hears what the channel is about, which is in the key-value
//! service. While that one looks it up, everybody else can go on talking.
//!
//! Configuration: `simpledb` (`simpledb`) is the name of the key-value service, `keep_lines` (20) how many lines a
//! channel keeps, `max_channels` (1000) how many channels there may be, `max_members` (1000) how many may be in one.

mod channels;

use std::cell::RefCell;
use std::time::Duration;

use channels::Channels;
use lobby::{ChatRequest, Joined, NOTHING, Pace};
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

/// How long somebody who joins waits for the topic at most.
const TOPIC_LIMIT: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
struct Config {
    simpledb: String,
    keep_lines: usize,
    max_channels: usize,
    max_members: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { simpledb: "simpledb".into(), keep_lines: 20, max_channels: 1_000, max_members: 1_000 }
    }
}

/// The channels change while handlers wait: each borrows them for a moment, and never across an `.await`.
#[derive(Serialize, Deserialize)]
struct Chat {
    #[serde(skip)]
    config: Config,
    channels: RefCell<Channels>,
    #[serde(skip)]
    looks: RefCell<Pace>,
}

impl AsyncService for Chat {
    type Config = Config;

    async fn init(config: Config, _arguments: Vec<u8>) -> Result<Self, Refusal> {
        services::register("chat", actor::this())?;
        Ok(Self { config, channels: RefCell::default(), looks: RefCell::default() })
    }

    async fn handle(&self, message: Message<'static>) -> Result<Vec<u8>, Refusal> {
        let speaker = message.source;
        match message.read()? {
            ChatRequest::Join { channel, name } => {
                channels::check(&channel)?;
                let topic = self.topic(&channel).await;
                // Only now: what was said during the wait is among the lines.
                let mut channels = self.channels.borrow_mut();
                if !channels.has_room(&channel, speaker, &self.config) && self.looks.borrow_mut().is_time(clock::now())
                {
                    channels.forget_those_who_are_gone(&channel, is_there);
                }
                let lines = channels.join(&channel, speaker, name, &self.config)?;
                Ok(services::encode(&Joined { topic, lines })?)
            }
            ChatRequest::Leave { channel } => {
                self.channels.borrow_mut().leave(&channel, speaker);
                Ok(Vec::new())
            }
            ChatRequest::Say { channel, text } => {
                let line = self.channels.borrow_mut().say(&channel, speaker, &text, &self.config)?;
                groups::publish(&lobby::group(&channel), line)?;
                Ok(Vec::new())
            }
            ChatRequest::Who { channel } => Ok(services::encode(&self.channels.borrow().who(&channel))?),
        }
    }

    fn restored(&mut self, config: Config) {
        self.config = config;
    }
}

impl Chat {
    /// What a channel is about. That nobody knows, or that the key-value service is not there, is no reason to keep
    /// somebody out.
    async fn topic(&self, channel: &str) -> Option<String> {
        let simpledb = services::query(&self.config.simpledb)?;
        let request = format!("GET {}", lobby::topic_key(channel));
        match async_calls::call(simpledb, request, TOPIC_LIMIT).await {
            Ok(topic) => String::from_utf8(topic).ok().filter(|topic| topic != NOTHING),
            Err(error) => {
                warn!("the topic of {channel} is not known: {error}");
                None
            }
        }
    }
}

/// An agent that fails does not leave the channels that it is in. An empty message is nothing to an agent, and an error
/// if there is none.
fn is_there(speaker: Handle) -> bool {
    !matches!(services::send(speaker, b""), Err(ServiceError::Gone(_)))
}

wheelhouse_guest::async_service!(Chat);
