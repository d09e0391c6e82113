//! A visitor book: whoever sends `hello` hears which visitor it is.

use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

/// What the game remembers. It is carried to new code when that is swapped in; raise [`Game::STATE_VERSION`] when the
/// fields change, and read the older form in `migrate`.
#[derive(Default, Serialize, Deserialize)]
struct VisitorBook {
    visitors: u64,
}

impl Game for VisitorBook {
    type Config = ();

    fn init(_config: (), occasion: Occasion) -> Result<Self, Refusal> {
        info!("the visitor book is open ({occasion:?})");
        Ok(Self::default())
    }

    fn on_packet(&mut self, connection: ConnectionId, packet: &[u8]) -> Result<(), Refusal> {
        if let Some(line) = self.answer(std::str::from_utf8(packet)?) {
            gate::send(connection, line)?;
        }
        Ok(())
    }
}

impl VisitorBook {
    /// The answer to a packet; nothing where there is none.
    fn answer(&mut self, text: &str) -> Option<String> {
        if text != "hello" {
            return None;
        }
        self.visitors += 1;
        Some(format!("you are visitor {}", self.visitors))
    }
}

wheelhouse_guest::game!(VisitorBook);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visitors_are_counted() {
        let mut book = VisitorBook::default();
        assert_eq!(book.answer("hello").as_deref(), Some("you are visitor 1"));
        assert_eq!(book.answer("hello").as_deref(), Some("you are visitor 2"));
        assert_eq!(book.answer("goodbye"), None);
    }
}
