//! `wheelhouse backup`: has the running host write a copy of everything durable to a file, and waits until it is there.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::report::print_answer;
use super::status::HostArgs;
use crate::admin::ControlClient;

/// What `wheelhouse backup` is asked.
#[derive(Args, Debug)]
#[command(after_help = "To restore: stop the host, put the file as world.db into an empty data directory, and start \
                        the host there.")]
pub struct BackupArgs {
    /// The file to write, which must not be there yet
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Which host.
    #[command(flatten)]
    pub host: HostArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Asks the host.
pub fn run(args: BackupArgs) -> anyhow::Result<()> {
    // The host may have been started in another folder.
    let file = std::path::absolute(&args.file).with_context(|| format!("{:?} names no file", args.file))?;
    let answer = ControlClient::find(args.host.data_dir()?)?.backup(&file)?;
    print_answer(args.json, &answer, &format!("the backup is in {}", file.display()))
}
