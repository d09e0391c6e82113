//! The table `[admin]` of the configuration.

use std::net::{Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The options of the control port, with their defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdminOptions {
    /// Where to listen, which must be on the loopback interface. With port 0 the system chooses one; clients find it
    /// through the data directory either way.
    pub listen: SocketAddr,
}

impl Default for AdminOptions {
    fn default() -> Self {
        Self { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)) }
    }
}

/// An option that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{key} = \"{value}\": {rule}")]
pub struct AdminOptionError {
    /// The full key, such as `admin.listen`.
    pub key: &'static str,
    /// Its value.
    pub value: SocketAddr,
    /// What it must be instead.
    pub rule: &'static str,
}

impl AdminOptions {
    /// Refuses an address that the network can reach.
    pub fn validate(&self) -> Result<(), AdminOptionError> {
        if self.listen.ip().is_loopback() {
            return Ok(());
        }
        Err(AdminOptionError {
            key: "admin.listen",
            value: self.listen,
            rule: "the control port opens on the loopback interface only; use \"127.0.0.1:0\", and reach it from \
                   elsewhere through a tunnel",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(listen: &str) -> Option<String> {
        AdminOptions { listen: listen.parse().unwrap() }.validate().err().map(|error| error.to_string())
    }

    #[test]
    fn loopback_addresses_are_valid_and_others_are_refused_by_name() {
        for fine in ["127.0.0.1:0", "127.0.0.2:7172", "[::1]:7172"] {
            assert_eq!(refused(fine), None, "{fine}");
        }
        for open in ["0.0.0.0:7172", "[::]:0", "192.0.2.1:80"] {
            let message = refused(open).unwrap();
            assert!(message.starts_with(&format!("admin.listen = {open:?}: the control port opens on")), "{message}");
            assert!(!message.contains('\n'));
        }
    }

    #[test]
    fn an_address_without_a_host_or_a_port_and_a_key_that_there_is_not_are_no_options() {
        for text in ["listen = ''", "listen = '7172'", "listen = '127.0.0.1'", "listen = ':7172'", "port = 7172"] {
            assert!(toml::from_str::<AdminOptions>(text).is_err(), "{text}");
        }
    }
}
