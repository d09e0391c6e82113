//! Numbers in `kv`.

use wheelhouse_guest::prelude::*;

/// The number under a key; 0 where there is none.
pub fn count(key: &str) -> Result<u64, Refusal> {
    Ok(kv::get(key)?.unwrap_or(0))
}

/// Adds to the number under a key.
pub fn add(key: &str, more: u64) -> Result<(), Refusal> {
    kv::set(key, &(count(key)? + more))?;
    Ok(())
}
