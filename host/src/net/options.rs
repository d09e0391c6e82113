//! The table `[gate]` of the configuration: where clients are listened for, and the limits each of them lives under.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::frame::MAX_PAYLOAD_BYTES;

/// The options of the gate, with their defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GateOptions {
    /// Where clients connect; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Where clients connect that speak WebSocket; nowhere if absent.
    pub websocket_listen: Option<SocketAddr>,
    /// The certificate, with those that vouch for it, in PEM. With it both ports speak TLS.
    pub tls_certificate: Option<PathBuf>,
    /// The key of that certificate, in PEM.
    pub tls_key: Option<PathBuf>,
    /// How long a client may take from its connection to the end of the handshakes of TLS and WebSocket.
    pub handshake_timeout_ms: u64,
    /// Connections open at once, at both ports together; more are refused.
    pub max_connections: usize,
    /// Connections from one address in a second in the long run, and five times that at once after a quieter time. More
    /// wait, or are refused.
    pub max_connects_per_second: u32,
    /// The longest payload a client may send, at most 65535. What the host sends is limited by the framing alone.
    pub max_frame_bytes: usize,
    /// How many frames a client may send per second in the long run.
    pub max_frames_per_second: u32,
    /// How many frames beyond that rate it may send at once after a quieter time.
    pub frame_burst: u32,
    /// A client that completes no frame for this long is disconnected. An empty frame will do as a sign of life.
    pub idle_timeout_s: u64,
    /// KiB that may wait to be written to one client. A single frame is taken however long, if nothing else waits.
    pub max_backlog_kb: usize,
    /// How long a connection that the host closes may take to receive what was sent to it before.
    pub drain_timeout_ms: u64,
}

impl Default for GateOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7171)),
            websocket_listen: None,
            tls_certificate: None,
            tls_key: None,
            handshake_timeout_ms: 5000,
            max_connections: 10_000,
            max_connects_per_second: 200,
            max_frame_bytes: 16 * 1024,
            max_frames_per_second: 200,
            frame_burst: 400,
            idle_timeout_s: 300,
            max_backlog_kb: 1024,
            drain_timeout_ms: 2000,
        }
    }
}

/// What is wrong with a certificate without a key.
pub(crate) const LONELY_CERTIFICATE: &str = "TLS takes a key too: set `gate.tls_key`, or leave both out";

/// What is wrong with a key without a certificate.
pub(crate) const LONELY_KEY: &str = "TLS takes a certificate too: set `gate.tls_certificate`, or leave both out";

/// An option that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{key} = {value}: {rule}")]
pub struct GateOptionError {
    /// The full key, such as `gate.max_frame_bytes`.
    pub key: &'static str,
    /// Its value as given.
    pub value: String,
    /// What it must be instead.
    pub rule: &'static str,
}

impl GateOptions {
    /// Refuses the first value that cannot work, naming its key.
    pub fn validate(&self) -> Result<(), GateOptionError> {
        let positive = [
            ("gate.handshake_timeout_ms", self.handshake_timeout_ms),
            ("gate.max_connections", self.max_connections as u64),
            ("gate.max_connects_per_second", self.max_connects_per_second.into()),
            ("gate.max_frames_per_second", self.max_frames_per_second.into()),
            ("gate.frame_burst", self.frame_burst.into()),
            ("gate.idle_timeout_s", self.idle_timeout_s),
            ("gate.max_backlog_kb", self.max_backlog_kb as u64),
            ("gate.drain_timeout_ms", self.drain_timeout_ms),
        ];
        for (key, value) in positive {
            if value == 0 {
                return Err(GateOptionError { key, value: value.to_string(), rule: "must be at least 1" });
            }
        }
        if !(1..=MAX_PAYLOAD_BYTES).contains(&self.max_frame_bytes) {
            return Err(GateOptionError {
                key: "gate.max_frame_bytes",
                value: self.max_frame_bytes.to_string(),
                rule: "must be between 1 and 65535, the longest frame that the framing can carry",
            });
        }
        match (&self.tls_certificate, &self.tls_key) {
            (Some(certificate), None) => Err(GateOptionError {
                key: "gate.tls_certificate",
                value: format!("{:?}", certificate.display().to_string()),
                rule: LONELY_CERTIFICATE,
            }),
            (None, Some(key)) => Err(GateOptionError {
                key: "gate.tls_key",
                value: format!("{:?}", key.display().to_string()),
                rule: LONELY_KEY,
            }),
            _ => Ok(()),
        }
    }

    pub(super) fn handshake_timeout(&self) -> Duration {
        Duration::from_millis(self.handshake_timeout_ms)
    }

    pub(super) fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.idle_timeout_s)
    }

    pub(super) fn drain_timeout(&self) -> Duration {
        Duration::from_millis(self.drain_timeout_ms)
    }

    pub(crate) fn max_backlog_bytes(&self) -> usize {
        self.max_backlog_kb.saturating_mul(1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_an_empty_table_means_them() {
        GateOptions::default().validate().unwrap();
        assert_eq!(toml::from_str::<GateOptions>("").unwrap(), GateOptions::default());
    }

    #[test]
    fn a_value_that_cannot_work_is_refused_by_key_and_value() {
        let refused = |text: &str| toml::from_str::<GateOptions>(text).unwrap().validate().unwrap_err().to_string();
        for key in [
            "max_connections",
            "max_connects_per_second",
            "max_frames_per_second",
            "frame_burst",
            "idle_timeout_s",
            "max_backlog_kb",
            "drain_timeout_ms",
            "handshake_timeout_ms",
        ] {
            assert_eq!(refused(&format!("{key} = 0")), format!("gate.{key} = 0: must be at least 1"));
        }
        assert!(refused("max_frame_bytes = 0").starts_with("gate.max_frame_bytes = 0: must be between"));
        assert!(refused("max_frame_bytes = 65536").starts_with("gate.max_frame_bytes = 65536: must be between"));
    }

    #[test]
    fn a_certificate_and_its_key_come_together_or_not_at_all() {
        let refused = |text: &str| toml::from_str::<GateOptions>(text).unwrap().validate().unwrap_err().to_string();
        assert_eq!(
            refused("tls_certificate = 'gate.crt'"),
            "gate.tls_certificate = \"gate.crt\": TLS takes a key too: set `gate.tls_key`, or leave both out"
        );
        assert_eq!(
            refused("tls_key = 'gate.key'"),
            "gate.tls_key = \"gate.key\": TLS takes a certificate too: set `gate.tls_certificate`, or leave both out"
        );
        let both = "tls_certificate = 'gate.crt'\ntls_key = 'gate.key'";
        toml::from_str::<GateOptions>(both).unwrap().validate().unwrap();
    }

    #[test]
    fn an_address_without_a_port_that_can_be_and_a_key_that_there_is_not_are_no_options() {
        for text in ["listen = 'nowhere'", "listen = '127.0.0.1:99999'", "idle_timeout_ms = 5"] {
            assert!(toml::from_str::<GateOptions>(text).is_err(), "{text}");
        }
    }
}
