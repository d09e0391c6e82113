//! What a player can say to the rules: one line of text, parsed here and nowhere else.

use std::fmt;

use crate::battles::WOLVES;

/// How far one `walk` goes at most, in tiles along each axis.
pub const LONGEST_STEP: i32 = 2;

/// The longest text that `say` and `ping` carry, in bytes.
pub const LONGEST_TEXT: usize = 200;

/// How long a name is at most, in bytes.
const LONGEST_NAME: usize = 20;

/// The sides of a map that `terrain` makes.
pub const TERRAIN_SIZES: std::ops::RangeInclusive<u32> = 16..=4096;

/// The answer to `help`.
pub const HELP: &str = "\
ping TEXT        answers pong TEXT
look             tells what is near: name, id, x, y
walk DX DY       goes there, at most 2 tiles along each axis; also: north, south, east, west
say TEXT         is heard within 16 tiles
attack ID        hurts somebody on a neighbouring tile
name NAME        tells who you are; you go on where you left
plant            plants a crop where you stand, which ripens also while you are away
harvest          takes in a ripe crop within reach
challenge NAME   marches against somebody; also: challenge wolves
retreat          calls that off
chronicle        tells how your battles ended
terrain SEED SIZE  makes a map and tells about it, while everything goes on
census           counts what is on the map of the village
forecast DAYS    how often it will rain, where somebody knows
help             tells this";

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// To get the text back.
    Ping(&'a str),
    /// To see what is near.
    Look,
    /// To go so many tiles to the east and to the south.
    Walk(i32, i32),
    /// To be heard by who is near.
    Say(&'a str),
    /// To hurt an entity.
    Attack(u64),
    /// To be known by a name.
    Name(&'a str),
    /// To plant a crop.
    Plant,
    /// To take in a ripe crop.
    Harvest,
    /// To march against somebody.
    Challenge(&'a str),
    /// To call that off.
    Retreat,
    /// To read how battles ended.
    Chronicle,
    /// To have a map made.
    Terrain {
        /// What the map follows from.
        seed: u64,
        /// The length of its side.
        size: u32,
    },
    /// To have the village counted.
    Census,
    /// To have the weather of so many days foretold.
    Forecast(u32),
    /// To learn what there is.
    Help,
}

/// Why a packet is no command, as the player is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoCommand<'a> {
    /// The packet is empty.
    Empty,
    /// The packet is not UTF-8.
    NotText,
    /// There is no such command.
    Unknown(&'a str),
    /// The command is used like this.
    Usage(&'static str),
    /// The text is too long.
    TextTooLong,
}

impl fmt::Display for NoCommand<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => formatter.write_str("an empty packet says nothing, try help"),
            Self::NotText => formatter.write_str("that is not UTF-8 text, try help"),
            Self::Unknown(word) => write!(formatter, "there is no command {word:?}, try help"),
            Self::Usage(usage) => write!(formatter, "use it like this: {usage}"),
            Self::TextTooLong => write!(formatter, "a text has at most {LONGEST_TEXT} bytes"),
        }
    }
}

/// Reads a packet.
pub fn parse(packet: &[u8]) -> Result<Command<'_>, NoCommand<'_>> {
    let line = std::str::from_utf8(packet).map_err(|_| NoCommand::NotText)?.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim_start();
    match word {
        "" => Err(NoCommand::Empty),
        "ping" => text(rest).map(Command::Ping),
        "look" => Ok(Command::Look),
        "north" => Ok(Command::Walk(0, -1)),
        "south" => Ok(Command::Walk(0, 1)),
        "east" => Ok(Command::Walk(1, 0)),
        "west" => Ok(Command::Walk(-1, 0)),
        "walk" => walk(rest).ok_or(NoCommand::Usage("walk DX DY, each from -2 to 2")),
        "say" if rest.is_empty() => Err(NoCommand::Usage("say TEXT")),
        "say" => text(rest).map(Command::Say),
        "attack" => rest.parse().map(Command::Attack).map_err(|_| NoCommand::Usage("attack ID, as look tells it")),
        "name" if rest == WOLVES => Err(NoCommand::Usage("name NAME, and wolves is no name for a person")),
        "name" => name(rest).map(Command::Name).ok_or(NoCommand::Usage("name NAME, of at most 20 letters and digits")),
        "plant" => Ok(Command::Plant),
        "harvest" => Ok(Command::Harvest),
        "challenge" => {
            name(rest).map(Command::Challenge).ok_or(NoCommand::Usage("challenge NAME, or challenge wolves"))
        }
        "retreat" => Ok(Command::Retreat),
        "chronicle" => Ok(Command::Chronicle),
        "terrain" => terrain(rest).ok_or(NoCommand::Usage("terrain SEED SIZE, a size from 16 to 4096")),
        "census" => Ok(Command::Census),
        "forecast" => rest.parse().map(Command::Forecast).map_err(|_| NoCommand::Usage("forecast DAYS")),
        "help" => Ok(Command::Help),
        unknown => Err(NoCommand::Unknown(shortened(unknown))),
    }
}

fn text(text: &str) -> Result<&str, NoCommand<'_>> {
    if text.len() > LONGEST_TEXT { Err(NoCommand::TextTooLong) } else { Ok(text) }
}

fn name(text: &str) -> Option<&str> {
    let is_name = !text.is_empty() && text.len() <= LONGEST_NAME && text.chars().all(char::is_alphanumeric);
    is_name.then_some(text)
}

fn walk(arguments: &str) -> Option<Command<'_>> {
    let [dx, dy] = pair(arguments)?;
    let (dx, dy) = (dx.parse::<i32>().ok()?, dy.parse::<i32>().ok()?);
    let step = -LONGEST_STEP..=LONGEST_STEP;
    (step.contains(&dx) && step.contains(&dy)).then_some(Command::Walk(dx, dy))
}

fn terrain(arguments: &str) -> Option<Command<'_>> {
    let [seed, size] = pair(arguments)?;
    let (seed, size) = (seed.parse().ok()?, size.parse().ok()?);
    TERRAIN_SIZES.contains(&size).then_some(Command::Terrain { seed, size })
}

fn pair(arguments: &str) -> Option<[&str; 2]> {
    let mut words = arguments.split_whitespace();
    let pair = [words.next()?, words.next()?];
    words.next().is_none().then_some(pair)
}

/// As much of a word as one wants to read back.
fn shortened(word: &str) -> &str {
    let end = word.char_indices().nth(20).map_or(word.len(), |(index, _)| index);
    &word[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_with_their_arguments() {
        assert_eq!(parse(b"ping  hello there "), Ok(Command::Ping("hello there")));
        assert_eq!(parse(b"ping"), Ok(Command::Ping("")));
        assert_eq!(parse(b"walk -1 2"), Ok(Command::Walk(-1, 2)));
        assert_eq!(parse(b"north"), Ok(Command::Walk(0, -1)));
        assert_eq!(parse(b"attack 17\n"), Ok(Command::Attack(17)));
        assert_eq!(parse(b"name Ann"), Ok(Command::Name("Ann")));
        assert_eq!(parse(b"plant"), Ok(Command::Plant));
        assert_eq!(parse(b"challenge wolves"), Ok(Command::Challenge("wolves")));
        assert_eq!(parse(b"terrain 7 1024"), Ok(Command::Terrain { seed: 7, size: 1024 }));
    }

    #[test]
    fn wrong_arguments_are_answered_with_the_usage() {
        for line in
            ["walk", "walk 1", "walk 1 2 3", "walk 3 0", "walk north", "terrain 1 5000", "attack wolf", "say", "name"]
        {
            assert!(matches!(parse(line.as_bytes()), Err(NoCommand::Usage(_))), "{line}");
        }
    }

    #[test]
    fn a_name_is_one_word_and_short_and_not_that_of_the_wolves() {
        for name in ["Ann Lee", "Ann/Lee", "wolves", "AnnAnnAnnAnnAnnAnnAnn"] {
            assert!(matches!(parse(format!("name {name}").as_bytes()), Err(NoCommand::Usage(_))), "{name}");
        }
    }

    #[test]
    fn what_is_no_command_is_named() {
        assert_eq!(parse(b""), Err(NoCommand::Empty));
        assert_eq!(parse(b"  "), Err(NoCommand::Empty));
        assert_eq!(parse(&[0xff, 0xfe]), Err(NoCommand::NotText));
        let unknown = parse(b"dance wildly").unwrap_err();
        assert_eq!(unknown.to_string(), "there is no command \"dance\", try help");
    }

    #[test]
    fn long_input_is_not_echoed_at_length() {
        let long = "\u{e4}".repeat(500);
        assert!(parse(long.as_bytes()).unwrap_err().to_string().len() < 100);
        assert_eq!(parse(format!("say {long}").as_bytes()), Err(NoCommand::TextTooLong));
    }
}
