//! `wheelhouse demo`: runs a world with simulated clients over real sockets, and prints a summary at the end.

use std::path::PathBuf;

use clap::Args;

/// What `wheelhouse demo` is asked.
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// The configuration of the world
    #[arg(long, value_name = "FILE", default_value = "guests/meadow.toml")]
    pub config: PathBuf,

    /// How many NPCs to put into it
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    pub npcs: u32,

    /// How many clients to simulate
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub players: u32,

    /// How long to run, in seconds
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub seconds: u32,

    /// Print the summary as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Runs the demo.
pub fn run(args: DemoArgs) -> anyhow::Result<()> {
    super::config::load(&args.config)?;
    anyhow::bail!("this build has no host to run the demo with")
}
