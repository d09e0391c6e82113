//! Reading saved states of older versions, in the `migrate` of a guest.
//!
//! A guest saves its struct with the number [`STATE_VERSION`](crate::Game::STATE_VERSION). When the struct changes, keep
//! what it was, say how one becomes the other, raise the number, and read the older form by it:
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use wheelhouse_guest::prelude::*;
//! use wheelhouse_guest::state;
//!
//! #[derive(Serialize, Deserialize)]
//! struct Hall {
//!     greeted: u64,
//!     last: String,
//! }
//!
//! /// Version 1, which did not know whom it greeted.
//! #[derive(Deserialize)]
//! struct FirstHall {
//!     greeted: u64,
//! }
//!
//! impl From<FirstHall> for Hall {
//!     fn from(first: FirstHall) -> Self {
//!         Hall { greeted: first.greeted, last: "somebody".into() }
//!     }
//! }
//!
//! impl Game for Hall {
//!     type Config = ();
//!     const STATE_VERSION: u32 = 2;
//!
//!     fn init(_config: (), _occasion: Occasion) -> Result<Self, Refusal> {
//!         Ok(Hall { greeted: 0, last: String::new() })
//!     }
//!
//!     fn migrate(version: u32, saved: &[u8]) -> Result<Self, Refusal> {
//!         match version {
//!             1 => Ok(state::decode::<FirstHall>(saved)?.into()),
//!             _ => refuse!("version {version} is newer than this game"),
//!         }
//!     }
//! }
//! # fn main() {}
//! ```

use serde::de::DeserializeOwned;

use crate::{Refusal, instance};

/// A whole saved state as the type that it was saved from.
pub fn decode<T: DeserializeOwned>(saved: &[u8]) -> Result<T, Refusal> {
    instance::decode(saved)
}

/// One value at the beginning of `saved`, which then begins behind it: for the memories of a
/// [`Thinker`](crate::Thinker), which lie one behind the other.
pub fn take<T: DeserializeOwned>(saved: &mut &[u8]) -> Result<T, Refusal> {
    let (value, rest) = postcard::take_from_bytes(saved)
        .map_err(|error| Refusal::new(format_args!("the saved memories do not fit: {error}")))?;
    *saved = rest;
    Ok(value)
}
