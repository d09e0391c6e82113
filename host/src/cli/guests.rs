//! `wheelhouse guests`: what the running host knows of its guests beyond their figures, which `wheelhouse status` shows.

use clap::{Args, Subcommand};
use serde_json::json;

use super::report::print;
use super::status::HostArgs;
use crate::admin::{ControlClient, generation_table};

/// The commands about the guests of the running host.
#[derive(Subcommand, Debug)]
pub enum GuestsCommand {
    /// List the versions of a guest's code that are kept, with hash and time, and what became of them
    History(HistoryArgs),
}

/// What `wheelhouse guests history` is asked.
#[derive(Args, Debug)]
pub struct HistoryArgs {
    /// The guest: its name in the configuration
    #[arg(value_name = "NAME")]
    pub guest: String,

    /// Which host.
    #[command(flatten)]
    pub host: HostArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Asks and prints.
pub fn run(command: GuestsCommand) -> anyhow::Result<()> {
    let GuestsCommand::History(args) = command;
    let generations = ControlClient::find(args.host.data_dir()?)?.history(&args.guest)?;
    print(&if args.json {
        format!("{}\n", json!({ "guest": args.guest, "generations": generations }))
    } else {
        generation_table(&generations)
    })
}
