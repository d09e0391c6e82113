//! The interface `log`.

use tracing::Level;

use crate::guest::contract::sim::log;
use crate::guest::state::InstanceState;

impl log::Host for InstanceState {
    fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        let level = match level {
            log::Level::Trace => Level::TRACE,
            log::Level::Debug => Level::DEBUG,
            log::Level::Info => Level::INFO,
            log::Level::Warn => Level::WARN,
            log::Level::Error => Level::ERROR,
        };
        self.identity.log.write(level, &message);
        Ok(())
    }
}
