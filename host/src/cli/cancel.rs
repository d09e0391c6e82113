//! `wheelhouse cancel`: ends a step task or job of the running host, whose owner then hears that it was cancelled.

use clap::Args;

use super::status::HostArgs;
use crate::admin::ControlClient;

/// What `wheelhouse cancel` is asked.
#[derive(Args, Debug)]
pub struct CancelArgs {
    /// The task: its id, as `wheelhouse status` lists it under "running tasks"
    #[arg(value_name = "TASK")]
    pub task: u64,

    /// Which host.
    #[command(flatten)]
    pub host: HostArgs,
}

/// Asks the host.
pub fn run(args: CancelArgs) -> anyhow::Result<()> {
    Ok(ControlClient::find(args.host.data_dir()?)?.cancel_task(args.task)?)
}
