//! `wheelhouse events`: looks at the delayed events that are pending in the running host, and decides about those that
//! failed. One file per command; what several of them are asked is here.

pub mod cancel;
pub mod drop;
pub mod list;
pub mod retry;
pub mod show;

#[cfg(test)]
mod tests;

use clap::{Args, Subcommand};

use super::status::HostArgs;
use crate::admin::event_sequence;

/// The commands about events.
#[derive(Subcommand, Debug)]
pub enum EventsCommand {
    /// List pending events in the order in which they are due
    List(list::ListArgs),
    /// Show everything about one event
    Show(EventArgs),
    /// Remove a pending event, parked or not: it will not run
    Cancel(EventArgs),
    /// Send an event on its way again that is parked or waits for its next attempt
    Retry(EventArgs),
    /// Remove a parked event; one that may still run is left alone
    Drop(EventArgs),
}

/// Which event a command is about, and in which host.
#[derive(Args, Debug)]
pub struct EventArgs {
    /// The event: its id, as `wheelhouse events list` prints it, or the number behind the dash alone
    #[arg(value_name = "ID", value_parser = sequence)]
    pub sequence: u64,

    /// Which host.
    #[command(flatten)]
    pub host: HostArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Does what is asked about events.
pub fn run(command: EventsCommand) -> anyhow::Result<()> {
    match command {
        EventsCommand::List(args) => list::run(args),
        EventsCommand::Show(args) => show::run(args),
        EventsCommand::Cancel(args) => cancel::run(args),
        EventsCommand::Retry(args) => retry::run(args),
        EventsCommand::Drop(args) => drop::run(args),
    }
}

fn sequence(id: &str) -> Result<u64, &'static str> {
    event_sequence(id).ok_or("an event has an id like 1767323045678-12; `wheelhouse events list` prints them")
}
