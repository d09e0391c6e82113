//! `wheelhouse status`: asks the running host what it is doing, over its control port.

use std::path::PathBuf;

use clap::Args;

/// What `wheelhouse status` is asked.
#[derive(Args, Debug)]
pub struct StatusArgs {
    /// The configuration that the host was started with; it says where the data directory is
    #[arg(long, value_name = "FILE", default_value = "wheelhouse.toml")]
    pub config: PathBuf,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Asks and prints.
pub fn run(args: StatusArgs) -> anyhow::Result<()> {
    super::config::load(&args.config)?;
    anyhow::bail!("this build has no control port to ask")
}
