//! `wheelhouse guest check`: says what a guest is, and whether this host would run it.

use std::path::PathBuf;

use clap::Args;

/// What `wheelhouse guest check` is asked.
#[derive(Args, Debug)]
pub struct GuestCheckArgs {
    /// The guest: a component, or a core module with a `component-type` section
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Looks into the file.
pub fn run(args: GuestCheckArgs) -> anyhow::Result<()> {
    let file = args.file.display();
    let bytes = std::fs::read(&args.file).map_err(|error| anyhow::anyhow!("{file} cannot be read: {error}"))?;
    crate::guest::encode::to_component(&bytes).map_err(|error| anyhow::anyhow!("{file}: {error}"))?;
    anyhow::bail!("this build cannot look into a guest")
}
