//! `wheelhouse save`: has the running host write down everything that it has not yet, and waits until it is on disk.

use clap::Args;

use super::report::print_answer;
use super::status::HostArgs;
use crate::admin::ControlClient;

/// What `wheelhouse save` is asked.
#[derive(Args, Debug)]
pub struct SaveArgs {
    /// Which host.
    #[command(flatten)]
    pub host: HostArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Asks the host.
pub fn run(args: SaveArgs) -> anyhow::Result<()> {
    let answer = ControlClient::find(args.host.data_dir()?)?.save()?;
    print_answer(args.json, &answer, "the world is saved")
}
