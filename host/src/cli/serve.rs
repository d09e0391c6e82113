//! `wheelhouse serve`: runs a world until it is told to stop.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{config, logging};
use crate::clock::MonotonicClock;
use crate::server::Host;

/// What `wheelhouse serve` is asked.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// The configuration
    #[arg(long, value_name = "FILE", default_value = "wheelhouse.toml")]
    pub config: PathBuf,
}

/// Runs the world.
pub fn run(args: ServeArgs) -> anyhow::Result<()> {
    let config = config::load(&args.config)?;
    let _log = logging::start(&config.log)?;
    let host = Host::start(&config, MonotonicClock::shared())?;
    // Before anybody is told that the world runs: who stops it from then on finds it saved.
    let signals = host.runtime().block_on(async { StopSignals::listen() })?;
    tracing::info!(
        gate = %host.gate_address(),
        websocket = host.websocket_address().map(tracing::field::display),
        control = %host.control_address(),
        data_dir = %config.data_dir.display(),
        "the world runs; Ctrl-C or SIGTERM saves and stops it"
    );
    let asked_to_stop = host.runtime().block_on(wait(&host, signals));
    if asked_to_stop {
        tracing::info!("saving and stopping");
    }
    host.stop()?;
    if !asked_to_stop {
        bail!("the loop ended by itself");
    }
    tracing::info!("the world is saved");
    Ok(())
}

/// The signals that stop a world.
struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    /// The terminal was closed.
    hangup: Signal,
    quit: Signal,
}

impl StopSignals {
    /// From here on the signals are waited for and no longer end the program. Must be called within a tokio runtime.
    fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?,
            terminate: signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?,
            hangup: signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?,
            quit: signal(SignalKind::quit()).context("cannot listen for SIGQUIT")?,
        })
    }

    async fn any(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
            _ = self.quit.recv() => {}
        }
    }
}

/// Waits for a signal (true) or for the loop to fail (false).
async fn wait(host: &Host, mut signals: StopSignals) -> bool {
    tokio::select! {
        () = signals.any() => true,
        _ = host.loop_ended() => false,
    }
}

/// Ends when the program is told to stop, by any of the signals that stop a world.
pub(super) async fn until_told_to_stop() -> anyhow::Result<()> {
    StopSignals::listen()?.any().await;
    Ok(())
}
