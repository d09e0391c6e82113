//! The program `wheelhouse`: parses the command line, runs the command, and ends with one line where it failed.

use std::process::ExitCode;

use clap::Parser;
use wheelhouse::cli::{self, CommandLine, report};

fn main() -> ExitCode {
    // Wrong usage ends here, with clap's message and status 2.
    let command_line = CommandLine::parse();
    match cli::run(command_line) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report::report(&error),
    }
}
