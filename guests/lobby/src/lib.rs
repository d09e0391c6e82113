//! What the guests of the lobby agree on: how an agent is launched, and what the chat is asked.
//!
//! A library that they use; it calls nothing of the host. What is sent goes through postcard.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What the watchdog launches an agent with.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentArguments {
    /// The client's connection, which is bound to the agent next.
    pub connection: u64,
    /// The client's address as text.
    pub address: String,
    /// The handle of the watchdog, who wants to hear when the agent ends.
    pub watchdog: u64,
    /// The name of the key-value service.
    pub simpledb: String,
    /// The name of the chat.
    pub chat: String,
}

/// What an agent sends the watchdog when it ends.
pub const AGENT_ENDS: &[u8] = b"ends";

/// What the chat is asked. It knows a speaker by the service that asks.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub enum ChatRequest {
    /// To be in a channel, under a name. The answer is a [`Joined`]. Who is in a full channel gets an empty message when
    /// somebody else wants to be, by which the chat finds out who is gone.
    Join {
        /// The channel.
        channel: String,
        /// How the speaker is called there.
        name: String,
    },
    /// To be in it no longer. The answer is empty.
    Leave {
        /// The channel.
        channel: String,
    },
    /// To say something to all who are in it. The answer is empty.
    Say {
        /// The channel.
        channel: String,
        /// What.
        text: String,
    },
    /// Who is in it. The answer is their names.
    Who {
        /// The channel.
        channel: String,
    },
}

/// What somebody hears who joins a channel. What is said from then on comes as text through the channel's group.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Joined {
    /// What the channel is about: what the key-value service has under [`topic_key`].
    pub topic: Option<String>,
    /// What was said last, the oldest first.
    pub lines: Vec<String>,
}

/// The group in which what is said in a channel is published.
pub fn group(channel: &str) -> String {
    format!("chat/{channel}")
}

/// The key under which the key-value service has the topic of a channel, if somebody has set one.
pub fn topic_key(channel: &str) -> String {
    format!("topic/{channel}")
}

/// How long the name of a channel may be in bytes: a group's name is at most 64 with what [`group`] puts before it.
pub const MAX_CHANNEL_BYTES: usize = 48;

/// What the key-value service answers where it has nothing.
pub const NOTHING: &str = "(none)";

/// How often those who are counted are asked whether they are still there.
const ASKED_EVERY: Duration = Duration::from_secs(1);

/// Says when it is time to look through all who are counted: where there is no room, everybody who comes is a reason to,
/// and many who come would cost everybody who is there.
#[derive(Debug, Default)]
pub struct Pace {
    last: Option<Duration>,
}

impl Pace {
    /// Whether it is time again. `now` is monotonic time.
    pub fn is_time(&mut self, now: Duration) -> bool {
        let is_time = self.last.is_none_or(|last| now.saturating_sub(last) >= ASKED_EVERY);
        if is_time {
            self.last = Some(now);
        }
        is_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_come_those_who_are_there_are_asked_once_a_second() {
        let mut pace = Pace::default();
        let asked = (0..5_000).filter(|&ms| pace.is_time(Duration::from_millis(ms))).count();
        assert_eq!(asked, 5);
    }
}
