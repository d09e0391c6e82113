//! `wheelhouse serve`: runs a world until it is told to stop.

use std::path::PathBuf;

use clap::Args;

/// What `wheelhouse serve` is asked.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// The configuration
    #[arg(long, value_name = "FILE", default_value = "wheelhouse.toml")]
    pub config: PathBuf,
}

/// Runs the world.
pub fn run(args: ServeArgs) -> anyhow::Result<()> {
    super::config::load(&args.config)?;
    anyhow::bail!("this build has no host to serve with")
}
