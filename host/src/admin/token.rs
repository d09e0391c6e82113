//! The secret that opens the control port: made anew at every start of a host, written for its owner to read, and
//! compared without telling by the time it takes how much of a guess was right.

use std::fs::File;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};

const TOKEN_BYTES: usize = 32;

/// A bearer token: 64 hexadecimal digits.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Token(String);

impl Token {
    /// A token that nobody can guess, from the system's source of randomness.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The value of the header `Authorization`.
    pub fn as_header(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Whether `header`, a value of `Authorization`, carries this token.
    pub fn opens(&self, header: &[u8]) -> bool {
        equal_in_constant_time(header, self.as_header().as_bytes())
    }
}

impl std::fmt::Debug for Token {
    /// Says nothing, so that a log cannot leak it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Compares every byte whether or not an earlier one differed. The length is no secret.
fn equal_in_constant_time(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    // The optimiser may not see that the result is settled early.
    let differing = left.iter().zip(right).fold(0, |differing, (a, b)| std::hint::black_box(differing | (a ^ b)));
    differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_with_itself_alone() {
        let (token, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_eq!(token.0.len(), 64);
        assert!(token.opens(token.as_header().as_bytes()));
        assert!(!token.opens(other.as_header().as_bytes()));
        assert!(!token.opens(token.0.as_bytes()), "the scheme belongs to it");
        assert!(!token.opens(b""));
        let mut wrong = token.as_header().into_bytes();
        *wrong.last_mut().unwrap() ^= 1;
        assert!(!token.opens(&wrong));
    }

    #[test]
    fn a_token_does_not_show_itself_in_a_log() {
        assert_eq!(format!("{:?}", Token::random().unwrap()), "Token(…)");
    }
}
