//! The host whose world is worked on: one that runs already on the configuration's data directory, or one that is started
//! here and stopped in the end.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};

use crate::admin::{ControlClient, DataDir};

/// How long a host may take to answer after it was started: it compiles its guests.
const START_LIMIT: Duration = Duration::from_secs(120);

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A running host.
pub struct World {
    client: ControlClient,
    /// The host that was started here.
    own: Option<Child>,
}

impl World {
    /// Finds the host of that data directory, or starts one with the configuration.
    pub fn find_or_start(config: &Path, data_dir: &Path) -> anyhow::Result<Self> {
        if DataDir::is_in_use(data_dir) {
            return Ok(Self { client: ControlClient::find(data_dir)?, own: None });
        }
        let program = std::env::current_exe().context("this program cannot be found, to be started as a host")?;
        let mut command = Command::new(program);
        let mut child = command.arg("serve").arg("--config").arg(config).stdin(Stdio::null()).spawn()?;
        let until = Instant::now() + START_LIMIT;
        loop {
            if let Some(status) = child.try_wait()? {
                anyhow::bail!("the host that was started ended at once, with {status}: see what it said above");
            }
            match ControlClient::find(data_dir).and_then(|client| client.status().map(|_| client)) {
                Ok(client) => return Ok(Self { client, own: Some(child) }),
                Err(error) if Instant::now() >= until => return Err(error.into()),
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
    }

    /// The way to it.
    pub fn client(&self) -> &ControlClient {
        &self.client
    }

    /// Whether it was started here.
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// How it ended, if it was started here and has.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.own.as_mut()?.try_wait().ok()??;
        Some(status.to_string())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let Some(child) = &mut self.own else { return };
        // It saves its world and stops; a Ctrl-C on the terminal has told it so already.
        let _ = kill_process(Pid::from_child(child), Signal::TERM);
        let _ = child.wait();
    }
}
