//! The command line: one file per command, and the configuration. `main` calls [`run`]; what a command does lives in
//! the rooms above, so that a program that embeds Wheelhouse misses nothing.

pub mod backup;
pub mod cancel;
pub mod client;
pub mod completions;
pub mod config;
pub mod demo;
pub mod dev;
pub mod events;
pub mod guest_build;
pub mod guest_check;
pub mod guest_new;
pub mod guests;
pub mod logging;
pub mod report;
pub mod save;
pub mod serve;
pub mod services;
pub mod status;
pub mod swap;

use clap::{Parser, Subcommand};

/// A game simulation host: the loop is native, the game is WebAssembly.
#[derive(Parser, Debug)]
#[command(name = "wheelhouse", version, arg_required_else_help = true)]
#[command(after_help = "New here? `wheelhouse demo --config guests/meadow.toml` runs the example world; \
                        README.md goes on from there.")]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run a world until Ctrl-C or SIGTERM, which save it and stop
    Serve(serve::ServeArgs),
    /// Run a world with simulated clients over real sockets, and print a summary
    Demo(demo::DemoArgs),
    /// Watch the sources of guests, and build and swap what changes in the running world
    Dev(dev::DevArgs),
    /// Talk to a gate by hand: lines go as frames, frames come as lines
    Client(client::ClientArgs),
    /// Show what the running host is doing
    Status(status::StatusArgs),
    /// Have a guest of the running host run new code, or the code it ran before
    Swap(swap::SwapArgs),
    /// Look at the versions of a guest's code in the running host
    #[command(subcommand)]
    Guests(guests::GuestsCommand),
    /// End a step task or job of the running host
    Cancel(cancel::CancelArgs),
    /// Show the services of the running host, or kill one
    Services(services::ServicesArgs),
    /// Look at the delayed events of the running host, and decide about those that failed
    #[command(subcommand)]
    Events(events::EventsCommand),
    /// Have the running host write everything down now
    Save(save::SaveArgs),
    /// Copy everything durable of the running host to a file
    Backup(backup::BackupArgs),
    /// Make, build or look into guests
    #[command(subcommand)]
    Guest(GuestCommand),
    /// Print completions for a shell
    Completions(completions::CompletionsArgs),
}

/// The commands about guests.
#[derive(Subcommand, Debug)]
pub enum GuestCommand {
    /// Make the project of a new guest, in any language there is a template for
    New(guest_new::GuestNewArgs),
    /// Make components of guests in Rust, JavaScript, Python and C
    Build(guest_build::GuestBuildArgs),
    /// Say what a guest is, what it imports and exports, and whether this host would run it
    Check(guest_check::GuestCheckArgs),
}

/// Does what the command line asks.
pub fn run(command_line: CommandLine) -> anyhow::Result<()> {
    match command_line.command {
        Command::Serve(args) => serve::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Dev(args) => dev::run(&args),
        Command::Client(args) => client::run(args),
        Command::Status(args) => status::run(args),
        Command::Swap(args) => swap::run(args),
        Command::Guests(command) => guests::run(command),
        Command::Cancel(args) => cancel::run(args),
        Command::Services(args) => services::run(args),
        Command::Events(command) => events::run(command),
        Command::Save(args) => save::run(args),
        Command::Backup(args) => backup::run(args),
        Command::Guest(GuestCommand::New(args)) => guest_new::run(&args),
        Command::Guest(GuestCommand::Build(args)) => guest_build::run(&args),
        Command::Guest(GuestCommand::Check(args)) => guest_check::run(args),
        Command::Completions(args) => completions::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn every_command_and_every_option_has_a_line_of_help() {
        fn check(command: &clap::Command) {
            assert!(command.get_about().is_some(), "{} has no help", command.get_name());
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {} has no help", command.get_name(), argument.get_id());
            }
            command.get_subcommands().for_each(check);
        }
        check(&CommandLine::command());
    }

    #[test]
    fn wrong_usage_has_status_2() {
        let error = CommandLine::try_parse_from(["wheelhouse", "sevre"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("serve"), "{error}");
    }
}
