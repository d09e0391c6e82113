//! `wheelhouse services`: who has a mailbox in the running host, and which messages reached nobody. What is done to one
//! service has a file of its own.

pub mod kill;

#[cfg(test)]
mod tests;

use clap::{Args, Subcommand};

use super::report;
use super::status::HostArgs;
use crate::admin::{ControlClient, dead_letter_table, service_table};

/// What `wheelhouse services` is asked.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ServicesArgs {
    /// What is to be done, if not only looked.
    #[command(subcommand)]
    pub command: Option<ServicesCommand>,

    /// Show the last messages that reached nobody, and why, in place of the services
    #[arg(long)]
    pub dead_letters: bool,

    /// Which host.
    #[command(flatten)]
    pub host: HostArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// What can be done to a service.
#[derive(Subcommand, Debug)]
pub enum ServicesCommand {
    /// End a service, as soon as it gives control back
    Kill(kill::KillArgs),
}

/// Asks and prints, or does what is asked.
pub fn run(args: ServicesArgs) -> anyhow::Result<()> {
    let ServicesArgs { command, dead_letters, host, json } = args;
    if let Some(ServicesCommand::Kill(args)) = command {
        return kill::run(args);
    }
    let client = ControlClient::find(host.data_dir()?)?;
    let (answer, table): (_, fn(&serde_json::Value) -> String) =
        if dead_letters { (client.dead_letters()?, dead_letter_table) } else { (client.services()?, service_table) };
    report::print(&if json { format!("{answer}\n") } else { table(&answer) })
}
