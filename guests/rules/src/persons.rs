//! Who somebody is, once they have told their name: where they were last, what they have harvested, what the chronicle
//! says of them. All of it is in `kv` for good, so that whoever comes back under a name finds it again, also after the
//! host was stopped, or crashed. A name is all it takes: Meadow is a game without passwords.

use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

use crate::answer;

/// How many lines the chronicle keeps about one person.
const LONGEST_CHRONICLE: usize = 20;

/// A person, here or away.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Person {
    /// The connection that plays them; none while they are away.
    pub connection: Option<ConnectionId>,
    /// Where they come back to.
    pub place: Position,
    /// Crops harvested.
    pub harvest: u32,
    /// The battle that they have begun and that is not settled yet.
    pub battle: Option<EventId>,
}

/// The person of that name, if anybody ever had it.
pub fn find(name: &str) -> Result<Option<Person>, Refusal> {
    Ok(kv::get(&key(name))?)
}

/// Keeps a person.
pub fn keep(name: &str, person: &Person) -> Result<(), Refusal> {
    Ok(kv::set(&key(name), person)?)
}

/// Sends a line to a person who is here.
pub fn tell(name: &str, line: &str) -> Result<(), Refusal> {
    match find(name)?.and_then(|person| person.connection) {
        Some(connection) => answer(connection, line),
        None => Ok(()),
    }
}

/// What the chronicle says of a person, the oldest first.
pub fn chronicle(name: &str) -> Result<Vec<String>, Refusal> {
    Ok(kv::get(&chronicle_key(name))?.unwrap_or_default())
}

/// Writes a line into the chronicle of a person, and tells them if they are here.
pub fn record(name: &str, line: &str) -> Result<(), Refusal> {
    let mut lines = chronicle(name)?;
    append(&mut lines, line);
    kv::set(&chronicle_key(name), &lines)?;
    tell(name, line)
}

/// The oldest lines make room.
fn append(lines: &mut Vec<String>, line: &str) {
    lines.push(line.to_owned());
    lines.drain(..lines.len().saturating_sub(LONGEST_CHRONICLE));
}

fn key(name: &str) -> String {
    format!("person/{name}")
}

fn chronicle_key(name: &str) -> String {
    format!("chronicle/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chronicle_keeps_its_latest_lines() {
        let mut lines = Vec::new();
        (1..=23).for_each(|number| append(&mut lines, &number.to_string()));
        assert_eq!(lines.len(), LONGEST_CHRONICLE);
        assert_eq!((lines[0].as_str(), lines[19].as_str()), ("4", "23"));
    }
}
