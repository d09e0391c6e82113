//! `wheelhouse serve`: runs a world until it is told to stop.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

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
    logging::start(&config.log)?;
    let host = Host::start(&config, MonotonicClock::shared())?;
    tracing::info!(
        gate = %host.gate_address(),
        control = %host.control_address(),
        data_dir = %config.data_dir.display(),
        "the world runs; Ctrl-C or SIGTERM saves and stops it"
    );
    let asked_to_stop = host.runtime().block_on(wait(&host))?;
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

/// Waits for a signal (true) or for the loop to fail (false).
async fn wait(host: &Host) -> anyhow::Result<bool> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    tokio::select! {
        _ = interrupt.recv() => Ok(true),
        _ = terminate.recv() => Ok(true),
        _ = host.loop_ended() => Ok(false),
    }
}
