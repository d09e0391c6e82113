//! `wheelhouse status`: asks the running host what it is doing, over its control port.

use std::path::PathBuf;

use clap::Args;

use super::{config, report};
use crate::admin::{ControlClient, status_table};

/// Which running host a command speaks to.
#[derive(Args, Debug)]
pub struct HostArgs {
    /// The configuration that the host was started with; it says where the data directory is
    #[arg(long, value_name = "FILE", default_value = "wheelhouse.toml")]
    config: PathBuf,

    /// The data directory of the host, where its configuration is not at hand
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    data_dir: Option<PathBuf>,
}

impl HostArgs {
    /// The data directory of the host.
    pub fn data_dir(self) -> anyhow::Result<PathBuf> {
        match self.data_dir {
            Some(data_dir) => Ok(data_dir),
            None => Ok(config::load(&self.config)?.data_dir),
        }
    }
}

/// What `wheelhouse status` is asked.
#[derive(Args, Debug)]
pub struct StatusArgs {
    /// Which host.
    #[command(flatten)]
    pub host: HostArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Asks and prints.
pub fn run(args: StatusArgs) -> anyhow::Result<()> {
    let status = ControlClient::find(args.host.data_dir()?)?.status()?;
    report::print(&if args.json { format!("{status}\n") } else { status_table(&status) })
}
