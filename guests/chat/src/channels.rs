//! The channels: who is in each, and what was said last. It calls nothing of the host.

use std::collections::{BTreeMap, VecDeque};

use lobby::MAX_CHANNEL_BYTES;
use serde::{Deserialize, Serialize};
use wheelhouse_guest::{Handle, Refusal, refuse};

use crate::Config;

/// The longest name of a speaker in bytes.
const MAX_NAME_BYTES: usize = 64;

/// The longest text in bytes.
const MAX_TEXT_BYTES: usize = 500;

/// All channels by name. One is there while somebody is in it.
#[derive(Default, Serialize, Deserialize)]
pub struct Channels(BTreeMap<String, Channel>);

#[derive(Default, Serialize, Deserialize)]
struct Channel {
    /// The names of those who are in it, by their services.
    members: BTreeMap<Handle, String>,
    lines: VecDeque<String>,
}

impl Channels {
    /// Lets somebody in, and gives what was said last. Who is in already may change the name.
    pub fn join(
        &mut self,
        channel: &str,
        speaker: Handle,
        name: String,
        config: &Config,
    ) -> Result<Vec<String>, Refusal> {
        check(channel)?;
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            refuse!("a name has 1 to {MAX_NAME_BYTES} bytes");
        }
        if !self.has_room(channel, speaker, config) {
            if self.0.contains_key(channel) {
                refuse!("the channel is full: {} are in it", config.max_members);
            }
            refuse!("there are {} channels already, and there may be no more", config.max_channels);
        }
        let channel = self.0.entry(channel.into()).or_default();
        channel.members.insert(speaker, name);
        Ok(channel.lines.iter().cloned().collect())
    }

    /// Whether somebody who wants to be in a channel finds room there.
    pub fn has_room(&self, channel: &str, speaker: Handle, config: &Config) -> bool {
        match self.0.get(channel) {
            Some(channel) => channel.members.contains_key(&speaker) || channel.members.len() < config.max_members,
            None => self.0.len() < config.max_channels,
        }
    }

    /// Makes room for somebody who wants to be in a channel: out of it, or where there is none yet out of all, go those
    /// who are not there any more.
    pub fn forget_those_who_are_gone(&mut self, channel: &str, is_there: impl Fn(Handle) -> bool) {
        let is_full = self.0.contains_key(channel);
        self.0.retain(|name, looked_at| {
            if !is_full || name == channel {
                looked_at.members.retain(|speaker, _| is_there(*speaker));
            }
            !looked_at.members.is_empty()
        });
    }

    /// Lets somebody out, and forgets a channel in which nobody is left.
    pub fn leave(&mut self, channel: &str, speaker: Handle) {
        if let Some(left) = self.0.get_mut(channel) {
            left.members.remove(&speaker);
            if left.members.is_empty() {
                self.0.remove(channel);
            }
        }
    }

    /// Keeps what somebody says, and gives the line for all.
    pub fn say(&mut self, channel: &str, speaker: Handle, text: &str, config: &Config) -> Result<String, Refusal> {
        if text.len() > MAX_TEXT_BYTES {
            refuse!("a text has at most {MAX_TEXT_BYTES} bytes, and this one {}", text.len());
        }
        let Some(said_in) = self.0.get_mut(channel) else { refuse!("nobody is in {channel}") };
        let Some(name) = said_in.members.get(&speaker) else { refuse!("join {channel} first") };
        let line = format!("[{channel}] {name}: {text}");
        said_in.lines.push_back(line.clone());
        while said_in.lines.len() > config.keep_lines {
            said_in.lines.pop_front();
        }
        Ok(line)
    }

    /// The names of those who are in a channel.
    pub fn who(&self, channel: &str) -> Vec<String> {
        self.0.get(channel).map(|channel| channel.members.values().cloned().collect()).unwrap_or_default()
    }
}

/// Whether a channel may be called that.
pub fn check(channel: &str) -> Result<(), Refusal> {
    if channel.is_empty() || channel.len() > MAX_CHANNEL_BYTES || channel.contains(char::is_whitespace) {
        refuse!("a channel is one word of 1 to {MAX_CHANNEL_BYTES} bytes");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config { keep_lines: 2, max_channels: 2, max_members: 2, ..Config::default() }
    }

    #[test]
    fn who_joins_hears_what_was_said_last() {
        let mut channels = Channels::default();
        assert_eq!(channels.join("inn", 7, "ann".into(), &config()), Ok(vec![]));
        for text in ["one", "two", "three"] {
            channels.say("inn", 7, text, &config()).unwrap();
        }
        assert_eq!(channels.join("inn", 8, "ben".into(), &config()).unwrap(), ["[inn] ann: two", "[inn] ann: three"]);
        assert_eq!(channels.who("inn"), ["ann", "ben"]);
    }

    #[test]
    fn only_who_is_in_a_channel_speaks_there() {
        let mut channels = Channels::default();
        channels.join("inn", 7, "ann".into(), &config()).unwrap();
        assert!(channels.say("inn", 8, "hello", &config()).is_err());
        assert!(channels.say("moor", 7, "hello", &config()).is_err());
    }

    #[test]
    fn a_channel_that_the_last_has_left_is_forgotten() {
        let mut channels = Channels::default();
        channels.join("inn", 7, "ann".into(), &config()).unwrap();
        channels.say("inn", 7, "hello", &config()).unwrap();
        channels.leave("inn", 7);
        assert_eq!(channels.join("inn", 8, "ben".into(), &config()), Ok(vec![]));
    }

    #[test]
    fn those_who_are_gone_make_room_in_a_full_channel_and_for_another() {
        let mut channels = Channels::default();
        for (channel, speaker) in [("inn", 7), ("inn", 8), ("moor", 9)] {
            channels.join(channel, speaker, speaker.to_string(), &config()).unwrap();
        }
        assert!(!channels.has_room("inn", 10, &config()) && channels.has_room("inn", 8, &config()));
        channels.forget_those_who_are_gone("inn", |speaker| speaker != 8 && speaker != 9);
        assert_eq!((channels.who("inn"), channels.who("moor")), (vec!["7".into()], vec!["9".into()]), "only there");
        channels.join("inn", 10, "ben".into(), &config()).unwrap();
        assert!(!channels.has_room("hill", 11, &config()));
        channels.forget_those_who_are_gone("hill", |speaker| speaker != 9);
        channels.join("hill", 11, "eve".into(), &config()).unwrap();
        assert!(channels.who("moor").is_empty(), "a channel of nobody is forgotten");
    }

    #[test]
    fn there_is_an_end_to_channels_members_and_lengths() {
        let mut channels = Channels::default();
        let long = "x".repeat(MAX_CHANNEL_BYTES + 1);
        for (channel, name) in [("", "ann"), ("two words", "ann"), (long.as_str(), "ann"), ("inn", "")] {
            assert!(channels.join(channel, 7, name.into(), &config()).is_err(), "{channel:?} {name:?}");
        }
        for speaker in [7, 8] {
            channels.join("inn", speaker, "ann".into(), &config()).unwrap();
        }
        assert!(channels.join("inn", 9, "ann".into(), &config()).is_err());
        channels.join("moor", 9, "ann".into(), &config()).unwrap();
        assert!(channels.join("hill", 9, "ann".into(), &config()).is_err());
        assert!(channels.say("inn", 7, &"x".repeat(MAX_TEXT_BYTES + 1), &config()).is_err());
    }
}
