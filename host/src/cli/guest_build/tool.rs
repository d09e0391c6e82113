//! How the compilers of other languages are called: found, or named with what installs them, and heard as they are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;

/// The nearest file or folder of that name, in the directory or in one above it.
pub fn above(directory: &Path, name: &str) -> Option<PathBuf> {
    let start = std::path::absolute(directory).ok()?;
    start.ancestors().map(|folder| folder.join(name)).find(|path| path.exists())
}

/// Whether a command can be run and ends well.
pub fn answers(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Runs a compiler. What it prints goes to standard error as it is, and only where it fails: some say a good deal else.
pub fn run(command: &mut Command, what: &str) -> anyhow::Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{what} cannot be run"))?;
    if output.status.success() {
        return Ok(());
    }
    let mut stderr = std::io::stderr();
    // Where standard error is closed there is nobody to tell.
    let _ = std::io::Write::write_all(&mut stderr, &output.stdout);
    let _ = std::io::Write::write_all(&mut stderr, &output.stderr);
    anyhow::bail!("{what} could not build it: mend what it printed above")
}
