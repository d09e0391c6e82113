//! JSON's tokens, one after another, from a position that can be kept between two steps.
//!
//! It knows what a token is, not where it may stand: that is for whoever reads them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// `{`
    BeginObject,
    /// `}`
    EndObject,
    /// `[`
    BeginArray,
    /// `]`
    EndArray,
    /// `:`
    Colon,
    /// `,`
    Comma,
    /// A string without its quotes and escapes.
    Text(String),
    /// A number, `true`, `false` or `null`, which the census does not look into.
    Other,
}

/// What is wrong with the text, and where.
#[derive(Debug, PartialEq)]
pub struct TokenError {
    position: usize,
    what: &'static str,
}

impl fmt::Display for TokenError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "byte {}: {}", self.position, self.what)
    }
}

/// The text, and how far it is read.
#[derive(Debug, Serialize, Deserialize)]
pub struct Tokens {
    text: Vec<u8>,
    position: usize,
}

impl Tokens {
    /// The tokens of a text from its beginning.
    pub fn new(text: Vec<u8>) -> Self {
        Self { text, position: 0 }
    }

    /// How many bytes are read.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The next token; none at the end.
    pub fn next(&mut self) -> Result<Option<Token>, TokenError> {
        self.skip(|byte| byte.is_ascii_whitespace());
        let Some(first) = self.text.get(self.position) else { return Ok(None) };
        let token = match first {
            b'{' => Token::BeginObject,
            b'}' => Token::EndObject,
            b'[' => Token::BeginArray,
            b']' => Token::EndArray,
            b':' => Token::Colon,
            b',' => Token::Comma,
            b'"' => return self.text().map(Some),
            b'-' | b'0'..=b'9' | b'a'..=b'z' => return self.other().map(Some),
            _ => return Err(self.error("this begins no token of JSON")),
        };
        self.position += 1;
        Ok(Some(token))
    }

    fn skip(&mut self, belongs: impl Fn(u8) -> bool) {
        let rest = &self.text[self.position..];
        self.position += rest.iter().position(|byte| !belongs(*byte)).unwrap_or(rest.len());
    }

    /// A string is read to its closing quote, then decoded in one piece.
    fn text(&mut self) -> Result<Token, TokenError> {
        let start = self.position;
        let mut end = start + 1;
        loop {
            match self.text.get(end) {
                None => return Err(self.error("this string has no end")),
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
            }
        }
        match serde_json::from_slice(&self.text[start..=end]) {
            Ok(text) => {
                self.position = end + 1;
                Ok(Token::Text(text))
            }
            Err(_) => Err(self.error("this is no string of JSON")),
        }
    }

    fn other(&mut self) -> Result<Token, TokenError> {
        let start = self.position;
        self.skip(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.'));
        match serde_json::from_slice::<serde_json::Value>(&self.text[start..self.position]) {
            Ok(_) => Ok(Token::Other),
            Err(_) => {
                self.position = start;
                Err(self.error("this is neither a number nor true, false or null"))
            }
        }
    }

    fn error(&self, what: &'static str) -> TokenError {
        TokenError { position: self.position, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<Token>, TokenError> {
        let mut tokens = Tokens::new(text.into());
        std::iter::from_fn(|| tokens.next().transpose()).collect()
    }

    #[test]
    fn every_kind_of_token_is_read() {
        use Token::*;
        let read = all(" {\"a\\n\\u00e4\": [1, -2.5e+3, true,null]} ").unwrap();
        let expected = [
            BeginObject,
            Text("a\nä".into()),
            Colon,
            BeginArray,
            Other,
            Comma,
            Other,
            Comma,
            Other,
            Comma,
            Other,
            EndArray,
            EndObject,
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn what_is_no_json_is_an_error_with_its_place() {
        for (text, position) in [("[\"open", 1), ("[ nil]", 2), ("  #", 2), ("\"\\x\"", 0), ("\"\\", 0), ("[1.2.3]", 1)]
        {
            assert_eq!(all(text).unwrap_err().position, position, "{text}");
        }
    }
}
