//! `wheelhouse guest check`: says what a guest is, and whether this host would run it.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use super::report;
use crate::clock::MonotonicClock;
use crate::guest::component::{Asks, Inspected, KindFound, grants_for, inspect};
use crate::guest::{GuestLimits, GuestSettings, LoopEngine, load, read_file};

/// What `wheelhouse guest check` is asked.
#[derive(Args, Debug)]
pub struct GuestCheckArgs {
    /// The guest: a component, or a core module with a `component-type` section
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Looks into the file.
pub fn run(args: GuestCheckArgs) -> anyhow::Result<()> {
    let file = args.file.display();
    let bytes = read_file(&args.file).map_err(|error| anyhow::anyhow!("{file} cannot be read: {error}"))?;
    let engine = LoopEngine::new(&GuestLimits::default(), None, MonotonicClock::shared())?;
    let inspected = inspect(engine.wasmtime(), &bytes).map_err(|error| anyhow::anyhow!("{file}: {error}"))?;
    report::print(&describe(&inspected, bytes.len()))?;
    let kind = match inspected.kind {
        Some(KindFound::Loop(kind)) => kind,
        Some(KindFound::Service) => bail!("{file}: this version of the host does not run services"),
        None => bail!("{file}: its exports are those of no kind of guest; implement a world of wheelhouse:sim"),
    };
    // With every grant that its kind can have, what is left is what no configuration can mend.
    let settings =
        GuestSettings { grants: grants_for(kind).to_vec(), ..GuestSettings::new("checked", kind, &args.file) };
    if let Err(error) = load(&engine, &settings, &bytes) {
        bail!("{file}: this host would not run it: {error}");
    }
    report::print("this host runs it\n")
}

fn describe(inspected: &Inspected, length: usize) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let kind = inspected.kind.map_or("none".to_owned(), |kind| kind.to_string());
    let _ = writeln!(text, "kind     {kind}");
    let _ = writeln!(text, "size     {} KiB", length.div_ceil(1024));
    for import in &inspected.imports {
        let needs = match import.asks() {
            Asks::Nothing => String::new(),
            Asks::Wasi => "   (empty: no files, network or environment)".to_owned(),
            Asks::Grant(grant) => format!("   (grant \"{grant}\")"),
            Asks::NotYet => "   (not in this version of the host)".to_owned(),
            Asks::Unknown => "   (unknown)".to_owned(),
        };
        let _ = writeln!(text, "imports  {}{needs}", import.name);
    }
    for export in &inspected.exports {
        let _ = writeln!(text, "exports  {export}");
    }
    text
}
