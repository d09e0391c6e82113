//! `wheelhouse completions`: prints what a shell needs to complete this program's command line.

use std::io::Write;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::CommandLine;

/// What `wheelhouse completions` is asked.
#[derive(Args, Debug)]
#[command(after_help = "In bash: source <(wheelhouse completions bash)")]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// Prints the completions.
pub fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    // Into memory first: the generator panics where it cannot write, as in a pipe that was closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut CommandLine::command(), "wheelhouse", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(())
}
