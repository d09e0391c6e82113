//! What a client may want, and how it says so in a line. It calls nothing of the host.
//!
//! | line | answer |
//! | --- | --- |
//! | `ECHO TEXT` | the text, at once |
//! | `GET KEY` | the value that the key-value service has, or `(none)` |
//! | `SET KEY VALUE` | `OK` |
//! | `JOIN CHANNEL` | what the channel is about, and what was said last; from then on what is said there |
//! | `SAY TEXT` | to all in the channel, the speaker too: `[CHANNEL] NAME: TEXT` |
//! | `WHO` | who is in the channel |
//! | `LEAVE` | `you left CHANNEL` |
//! | `PLAY` | none: the game has the client from here on |
//! | `QUIT` | none: the connection is closed |
//! | anything else | one line that says what there is |

/// What a client wants.
#[derive(Debug, PartialEq)]
pub enum Command<'a> {
    /// To hear a text.
    Echo(&'a str),
    /// Something of the key-value service, which gets the line as it is.
    Database(&'a str),
    /// To be in a channel.
    Join(&'a str),
    /// To be in it no longer.
    Leave,
    /// To say something there.
    Say(&'a str),
    /// To know who is there.
    Who,
    /// To go to the game.
    Play,
    /// To go.
    Quit,
    /// Nobody knows: the first word.
    Unknown(&'a str),
}

impl<'a> Command<'a> {
    /// What a line says.
    pub fn parse(line: &'a str) -> Self {
        let line = line.trim_end_matches(['\r', '\n']);
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (word, rest) {
            ("ECHO", text) => Self::Echo(text),
            ("GET" | "SET", _) => Self::Database(line),
            ("JOIN", channel) if !channel.is_empty() => Self::Join(channel),
            ("SAY", text) if !text.is_empty() => Self::Say(text),
            ("LEAVE", "") => Self::Leave,
            ("WHO", "") => Self::Who,
            ("PLAY", "") => Self::Play,
            ("QUIT", "") => Self::Quit,
            _ => Self::Unknown(word),
        }
    }
}

/// The line for who says something else.
pub fn help(word: &str) -> String {
    let word: String = word.chars().take(20).collect();
    format!(
        "{word:?} is not known here: GET KEY, SET KEY VALUE, JOIN CHANNEL, SAY TEXT, WHO, LEAVE, ECHO TEXT, PLAY, QUIT"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_its_first_word_says() {
        assert_eq!(Command::parse("ECHO  two  blanks"), Command::Echo(" two  blanks"));
        assert_eq!(Command::parse("GET sheep"), Command::Database("GET sheep"));
        assert_eq!(Command::parse("SET sheep a white one\r\n"), Command::Database("SET sheep a white one"));
        assert_eq!(Command::parse("JOIN inn"), Command::Join("inn"));
        assert_eq!(Command::parse("SAY hello all"), Command::Say("hello all"));
        assert_eq!(Command::parse("QUIT"), Command::Quit);
    }

    #[test]
    fn what_is_no_command_gets_help_in_one_line_however_long_it_is() {
        for line in ["", "echo", "JOIN", "SAY", "PLAY now", "hello"] {
            assert!(matches!(Command::parse(line), Command::Unknown(_)), "{line:?}");
        }
        let help = help(&"\n".repeat(1000));
        assert!(!help.contains('\n') && help.len() < 200, "{help}");
    }
}
