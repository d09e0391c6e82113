//! The table `[admin]` of the configuration.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The options of the control port, with their defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AdminOptions {
    /// `host:port` to listen on, which must be of the loopback interface. With port 0 the system chooses one; clients
    /// find it through the data directory either way.
    pub listen: String,
}

impl Default for AdminOptions {
    fn default() -> Self {
        Self { listen: "127.0.0.1:0".to_owned() }
    }
}

/// An option that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{key} = {value:?}: {rule}")]
pub struct AdminOptionError {
    /// The full key, such as `admin.listen`.
    pub key: &'static str,
    /// Its value as given.
    pub value: String,
    /// What it must be instead.
    pub rule: &'static str,
}

impl AdminOptions {
    /// Refuses what cannot work, naming the key. A host name is looked up only when the port is opened.
    pub fn validate(&self) -> Result<(), AdminOptionError> {
        if let Ok(address) = self.listen.parse::<SocketAddr>() {
            return if address.ip().is_loopback() { Ok(()) } else { Err(self.not_loopback()) };
        }
        match self.listen.rsplit_once(':').map(|(host, port)| (host.is_empty(), port.parse::<u16>())) {
            Some((false, Ok(_))) => Ok(()),
            _ => Err(AdminOptionError {
                key: "admin.listen",
                value: self.listen.clone(),
                rule: "must be host:port, such as \"127.0.0.1:0\"",
            }),
        }
    }

    pub(super) fn not_loopback(&self) -> AdminOptionError {
        AdminOptionError {
            key: "admin.listen",
            value: self.listen.clone(),
            rule: "the control port opens on the loopback interface only; use \"127.0.0.1:0\", and reach it from \
                   elsewhere through a tunnel",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(listen: &str) -> Option<String> {
        AdminOptions { listen: listen.to_owned() }.validate().err().map(|error| error.to_string())
    }

    #[test]
    fn loopback_addresses_are_valid_and_others_are_refused_by_name() {
        for fine in ["127.0.0.1:0", "127.0.0.2:7172", "[::1]:7172", "localhost:7172"] {
            assert_eq!(refused(fine), None, "{fine}");
        }
        for open in ["0.0.0.0:7172", "[::]:0", "192.0.2.1:80"] {
            let message = refused(open).unwrap();
            assert!(message.starts_with(&format!("admin.listen = {open:?}: the control port opens on")), "{message}");
            assert!(!message.contains('\n'));
        }
        for malformed in ["", "7172", "127.0.0.1", "127.0.0.1:x", ":7172"] {
            assert!(refused(malformed).unwrap().contains("must be host:port"), "{malformed}");
        }
    }
}
