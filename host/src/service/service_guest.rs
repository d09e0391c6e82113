//! A guest of kind `service`: its code and how its services are started and started again. One for all its services.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::code::ServiceCode;
use super::engine::ServiceEngine;
use crate::guest::settings::RestartPolicy;
use crate::guest::{GuestSettings, Identity};

/// A guest that services can be launched of.
pub struct ServiceGuest {
    pub(super) identity: Arc<Identity>,
    pub(super) engine: ServiceEngine,
    pub(super) code: ServiceCode,
    /// The guest's own table of the configuration.
    pub(super) config: String,
    pub(super) restart: RestartPolicy,
    /// The hosts and ports that it may connect to.
    pub(super) sockets: Vec<String>,
    /// Services launched so far.
    launched: AtomicU64,
}

impl ServiceGuest {
    /// A guest as it is configured, with its code.
    pub fn new(engine: ServiceEngine, identity: Arc<Identity>, code: ServiceCode, settings: &GuestSettings) -> Self {
        Self {
            identity,
            engine,
            code,
            config: settings.config_json(),
            restart: settings.restart,
            sockets: settings.sockets.clone(),
            launched: AtomicU64::new(0),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.identity.name
    }

    /// The number of the next service, counted from 1.
    pub(super) fn next_number(&self) -> u64 {
        self.launched.fetch_add(1, Ordering::Relaxed) + 1
    }
}
