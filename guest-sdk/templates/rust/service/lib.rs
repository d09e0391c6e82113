//! A counter: `add 5` adds, anything else asks for the sum.

use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

/// What the service remembers. It is carried to new code when that is swapped in, without `init`; raise
/// [`Service::STATE_VERSION`] when the fields change, and read the older form in `migrate`.
#[derive(Default, Serialize, Deserialize)]
struct Counter {
    sum: i64,
}

impl Service for Counter {
    type Config = ();

    fn init(_config: (), _arguments: Vec<u8>) -> Result<Self, Refusal> {
        info!("the counter begins");
        Ok(Self::default())
    }

    fn handle(&mut self, message: Message) -> Result<Vec<u8>, Refusal> {
        Ok(self.answer(message.text()?)?.into_bytes())
    }
}

impl Counter {
    /// The answer to a message.
    fn answer(&mut self, text: &str) -> Result<String, Refusal> {
        if let Some(number) = text.strip_prefix("add ") {
            self.sum += number.parse::<i64>()?;
        }
        Ok(self.sum.to_string())
    }
}

wheelhouse_guest::service!(Counter);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_in_the_sum() {
        let mut counter = Counter::default();
        assert_eq!(counter.answer("add 5").unwrap(), "5");
        assert_eq!(counter.answer("add 7").unwrap(), "12");
        assert_eq!(counter.answer("").unwrap(), "12");
        assert!(counter.answer("add x").is_err());
    }
}
