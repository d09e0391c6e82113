//! `wheelhouse status`: asks the running host what it is doing, over its control port.

use std::path::PathBuf;

use clap::Args;

use super::{config, report};
use crate::admin::{ControlClient, status_table};

/// What `wheelhouse status` is asked.
#[derive(Args, Debug)]
pub struct StatusArgs {
    /// The configuration that the host was started with; it says where the data directory is
    #[arg(long, value_name = "FILE", default_value = "wheelhouse.toml")]
    pub config: PathBuf,

    /// The data directory of the host, where its configuration is not at hand
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    pub data_dir: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Asks and prints.
pub fn run(args: StatusArgs) -> anyhow::Result<()> {
    let data_dir = match args.data_dir {
        Some(data_dir) => data_dir,
        None => config::load(&args.config)?.data_dir,
    };
    let status = ControlClient::find(data_dir)?.status()?;
    report::print(&if args.json { format!("{status}\n") } else { status_table(&status) })
}
