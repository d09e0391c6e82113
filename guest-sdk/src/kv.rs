//! The guest's own durable key-value space. Only a `game` may change it.
//!
//! [`set`] and [`get`] store values of the author's own types through postcard; the `_bytes` forms take bytes as they
//! are.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

pub use crate::bindings::kv::{Entry, KvError, delete, get as get_bytes, scan, set as set_bytes};

/// Why a value was not stored or read.
#[derive(Debug, Error)]
pub enum ValueError {
    /// The host refused.
    #[error(transparent)]
    Kv(#[from] KvError),
    /// The value has no encoding, or what is stored is of another type than asked for.
    #[error("the value of the key {key:?}: {source}")]
    Encoding {
        /// Which key.
        key: String,
        /// What is wrong with its value.
        source: postcard::Error,
    },
}

/// Stores a value under a key.
pub fn set<T: Serialize + ?Sized>(key: &str, value: &T) -> Result<(), ValueError> {
    let bytes = postcard::to_allocvec(value).map_err(|source| encoding(key, source))?;
    Ok(set_bytes(key, &bytes)?)
}

/// Reads a value that [`set`] stored; none when the key is not set.
pub fn get<T: DeserializeOwned>(key: &str) -> Result<Option<T>, ValueError> {
    match get_bytes(key) {
        Some(bytes) => postcard::from_bytes(&bytes).map(Some).map_err(|source| encoding(key, source)),
        None => Ok(None),
    }
}

fn encoding(key: &str, source: postcard::Error) -> ValueError {
    ValueError::Encoding { key: key.into(), source }
}
