//! The configuration as a file: the loader that reads a [`Config`](crate::server::Config) from `wheelhouse.toml`, and the
//! keys that such a file may have. Commands load; nothing here decides what a configuration must keep to, opens a port
//! or starts a guest.

mod known_keys;
mod load;

#[cfg(test)]
mod tests;

pub use load::{LoadError, load, parse};
