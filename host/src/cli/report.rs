//! How a command answers: what it prints to standard output, and how an error ends the program: one line each on standard
//! error, and a status. `main` reports; commands only print and return errors.

use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::Value;

/// Prints to standard output, where a reader that has gone is an error and no panic.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())?;
    Ok(())
}

/// Prints the host's answer, or the words for it.
pub fn print_answer(json: bool, answer: &Value, words: &str) -> anyhow::Result<()> {
    print(&if json { format!("{answer}\n") } else { format!("{words}\n") })
}

/// Tells what went wrong and gives the status to end with: 1, or 0 where only the reader of a pipe has gone.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    let mut stderr = io::stderr();
    for line in lines(error) {
        // Where standard error is closed there is nobody to tell.
        let _ = writeln!(stderr, "error: {line}");
    }
    ExitCode::FAILURE
}

/// `wheelhouse status | head` closes the pipe early, which is nobody's error.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kind = error.root_cause().downcast_ref::<io::Error>().map(io::Error::kind);
    kind == Some(io::ErrorKind::BrokenPipe)
}

/// The error and its causes; several lines only where the error itself has several things to tell.
fn lines(error: &anyhow::Error) -> Vec<String> {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // Some errors show their cause themselves.
        if !text.ends_with(&cause) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(&cause);
        }
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn an_error_and_its_causes_are_one_line() {
        let error = anyhow::anyhow!("no space").context("cannot write a.wasm").context("wolf");
        assert_eq!(lines(&error), ["wolf: cannot write a.wasm: no space"]);
    }

    #[test]
    fn a_cause_that_is_shown_already_is_not_shown_twice() {
        let source = io::Error::other("it is locked");
        let error = super::super::config::LoadError::Unreadable { file: "w.toml".into(), source };
        assert_eq!(lines(&error.into()), ["w.toml cannot be read: it is locked"]);
    }

    #[test]
    fn several_problems_are_several_lines() {
        let error = anyhow::anyhow!("w.toml:1: a is 0\nw.toml:2: b is 0\n");
        assert_eq!(lines(&error), ["w.toml:1: a is 0", "w.toml:2: b is 0"]);
    }

    #[test]
    fn a_closed_pipe_is_no_failure_and_other_errors_are() {
        let closed = Err::<(), _>(io::Error::from(io::ErrorKind::BrokenPipe)).context("printing").unwrap_err();
        assert_eq!(report(&closed), ExitCode::SUCCESS);
        assert_eq!(report(&anyhow::anyhow!("other")), ExitCode::FAILURE);
    }
}
