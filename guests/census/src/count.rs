//! Makes counts of a map's tokens: follows the nesting, and looks at the few places that matter.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::tokens::Token;

/// How deep a map may nest.
const MAX_DEPTH: usize = 64;

/// How far the count is.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Count {
    /// The objects and arrays around the next token, the outermost first.
    around: Vec<Container>,
    expected: Expected,
    /// Kinds of tile by the character that stands for them.
    legend: BTreeMap<char, String>,
    /// How many tiles there are of each character; the legend may come after the rows.
    tiles: BTreeMap<char, u64>,
    features: BTreeMap<String, u64>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Container {
    /// With the key of the member that is read.
    Object(String),
    Array,
}

/// What may come next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
enum Expected {
    #[default]
    Value,
    /// A value, or the end of an array that has just begun.
    ValueOrEnd,
    Key,
    /// A key, or the end of an object that has just begun.
    KeyOrEnd,
    Colon,
    /// A comma, or the end of what is around.
    CommaOrEnd,
    Nothing,
}

/// The result, as it is written.
#[derive(Serialize)]
struct Census<'a> {
    tiles: BTreeMap<&'a str, u64>,
    features: &'a BTreeMap<String, u64>,
}

impl Count {
    /// Takes the next token in.
    pub fn take(&mut self, token: Token) -> Result<(), &'static str> {
        use Expected::*;
        match (self.expected, token) {
            (Key | KeyOrEnd, Token::Text(name)) => {
                if let Some(Container::Object(key)) = self.around.last_mut() {
                    *key = name;
                }
                self.expected = Colon;
            }
            (Colon, Token::Colon) => self.expected = Value,
            (CommaOrEnd, Token::Comma) => {
                self.expected = if matches!(self.around.last(), Some(Container::Object(_))) { Key } else { Value };
            }
            (KeyOrEnd | CommaOrEnd, Token::EndObject) if self.inside_object() => self.end(),
            (ValueOrEnd | CommaOrEnd, Token::EndArray) if !self.inside_object() => self.end(),
            (Value | ValueOrEnd, Token::BeginObject) => self.begin(Container::Object(String::new()), KeyOrEnd)?,
            (Value | ValueOrEnd, Token::BeginArray) => self.begin(Container::Array, ValueOrEnd)?,
            (Value | ValueOrEnd, Token::Text(text)) => {
                self.look_at(text)?;
                self.value_ended();
            }
            (Value | ValueOrEnd, Token::Other) => self.value_ended(),
            (Nothing, _) => return Err("the map has ended before this"),
            _ => return Err("this must not stand here"),
        }
        Ok(())
    }

    /// The counts as JSON, once everything was taken in.
    pub fn result(&self) -> Result<String, String> {
        if self.expected != Expected::Nothing {
            return Err("the map is cut short".into());
        }
        let mut tiles = BTreeMap::new();
        for (symbol, count) in &self.tiles {
            match self.legend.get(symbol) {
                Some(kind) => *tiles.entry(kind.as_str()).or_default() += count,
                None => return Err(format!("the legend has no tile {symbol:?}")),
            }
        }
        serde_json::to_string(&Census { tiles, features: &self.features }).map_err(|error| error.to_string())
    }

    /// Counts a string if it is a row, a legend's kind or a feature's kind.
    fn look_at(&mut self, text: String) -> Result<(), &'static str> {
        use Container::{Array, Object};
        match self.around.as_slice() {
            [Object(key), Array] if key == "rows" => {
                for symbol in text.chars() {
                    *self.tiles.entry(symbol).or_default() += 1;
                }
            }
            [Object(key), Object(symbols)] if key == "legend" => {
                let mut symbols = symbols.chars();
                let (Some(symbol), None) = (symbols.next(), symbols.next()) else {
                    return Err("a tile's sign in the legend is one character");
                };
                self.legend.insert(symbol, text);
            }
            [Object(key), Array, Object(member)] if key == "features" && member == "kind" => {
                *self.features.entry(text).or_default() += 1;
            }
            _ => {}
        }
        Ok(())
    }

    fn inside_object(&self) -> bool {
        matches!(self.around.last(), Some(Container::Object(_)))
    }

    fn begin(&mut self, container: Container, expected: Expected) -> Result<(), &'static str> {
        if self.around.len() == MAX_DEPTH {
            return Err("the map nests too deep");
        }
        self.around.push(container);
        self.expected = expected;
        Ok(())
    }

    fn end(&mut self) {
        self.around.pop();
        self.value_ended();
    }

    fn value_ended(&mut self) {
        self.expected = if self.around.is_empty() { Expected::Nothing } else { Expected::CommaOrEnd };
    }
}
