//! What the services for tests are told in messages, read by those that come in a plain and in an async form.

mod judge;
mod relay;
pub mod tally;

use std::str::FromStr;

pub use judge::{Counted, Judge};
pub use relay::Relay;
use wheelhouse_guest::{Refusal, refuse};

/// The next word of an order as a number or another value; the rest of the order stays.
pub fn next<T: FromStr<Err: std::error::Error>>(order: &mut &str) -> Result<T, Refusal> {
    let (word, rest) = order.split_once(' ').unwrap_or((order, ""));
    if word.is_empty() {
        refuse!("the order is cut short");
    }
    *order = rest;
    Ok(word.parse::<T>()?)
}
