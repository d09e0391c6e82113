//! Runs Cargo on the guests of one workspace and reports each module as it is made. Cargo's own output, compiler errors
//! and on a terminal its progress, goes straight to standard error; what Cargo tells programs is read here.

use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context;
use serde::Deserialize;

use super::packages::GuestPackage;
use super::toolchain::Toolchain;

/// A guest that Cargo has compiled.
#[derive(Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The package.
    pub package: String,
    /// The core module that Cargo made.
    pub module: PathBuf,
}

/// Compiles `guests`, all in the workspace at `root`, and calls `made` for each when it is done.
pub fn compile(
    toolchain: &Toolchain,
    root: &Path,
    guests: &[GuestPackage],
    debug: bool,
    mut made: impl FnMut(&Compiled) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut command = toolchain.cargo_build(debug);
    command.current_dir(root).arg("--message-format=json-render-diagnostics");
    if !std::io::stderr().is_terminal() {
        command.arg("--quiet");
    }
    for guest in guests {
        command.args(["--package", &guest.name]);
    }
    let mut cargo = command.stdout(Stdio::piped()).spawn().context("cargo cannot be run")?;
    let mut first_error = Ok(());
    if let Some(messages) = cargo.stdout.take() {
        for line in BufReader::new(messages).lines().map_while(Result::ok) {
            if let Some(compiled) = compiled_guest(&line, guests)
                && first_error.is_ok()
            {
                first_error = made(&compiled);
            }
        }
    }
    let status = cargo.wait().context("cargo cannot be waited for")?;
    first_error?;
    anyhow::ensure!(
        status.success(),
        "cargo could not build the guests in {}: mend what it printed above",
        super::shown(root)
    );
    Ok(())
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    manifest_path: PathBuf,
    #[serde(default)]
    target: Option<MadeTarget>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct MadeTarget {
    crate_types: Vec<String>,
}

/// The guest that a line of Cargo's messages reports as made, if that is what it reports.
fn compiled_guest(line: &str, guests: &[GuestPackage]) -> Option<Compiled> {
    let message: Message = serde_json::from_str(line).ok()?;
    let is_module = message.target?.crate_types.iter().any(|crate_type| crate_type == "cdylib");
    if message.reason != "compiler-artifact" || !is_module {
        return None;
    }
    let guest = guests.iter().find(|guest| guest.manifest == message.manifest_path)?;
    let module = message.filenames.into_iter().find(|file| file.extension().is_some_and(|end| end == "wasm"))?;
    Some(Compiled { package: guest.name.clone(), module })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owl() -> GuestPackage {
        GuestPackage {
            name: "owl".to_owned(),
            manifest: PathBuf::from("/g/owl/Cargo.toml"),
            workspace_root: PathBuf::from("/g"),
        }
    }

    fn artifact(crate_type: &str, manifest: &str) -> String {
        format!(
            "{{\"reason\":\"compiler-artifact\",\"manifest_path\":\"{manifest}\",\
             \"target\":{{\"crate_types\":[\"{crate_type}\"]}},\"filenames\":[\"/t/owl.d\",\"/t/owl.wasm\"]}}"
        )
    }

    #[test]
    fn a_made_cdylib_of_a_guest_is_reported() {
        let compiled = compiled_guest(&artifact("cdylib", "/g/owl/Cargo.toml"), &[owl()]).unwrap();
        assert_eq!(compiled, Compiled { package: "owl".to_owned(), module: PathBuf::from("/t/owl.wasm") });
    }

    #[test]
    fn what_is_no_guest_or_no_message_is_passed_over() {
        assert_eq!(compiled_guest(&artifact("lib", "/g/owl/Cargo.toml"), &[owl()]), None);
        assert_eq!(compiled_guest(&artifact("cdylib", "/g/hen/Cargo.toml"), &[owl()]), None);
        assert_eq!(compiled_guest("{\"reason\":\"build-finished\",\"success\":true}", &[owl()]), None);
        assert_eq!(compiled_guest("note: not JSON", &[owl()]), None);
    }
}
