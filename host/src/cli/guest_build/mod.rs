//! `wheelhouse guest build`: compiles Rust guests and makes components of them. It finds the guests below each
//! directory, compiles those of a workspace together, and writes `<out>/<package>.wasm`. It installs nothing.

mod compile;
mod packages;
mod toolchain;

use std::collections::BTreeMap;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use clap::Args;

use self::compile::Compiled;
use self::packages::GuestPackage;
use self::toolchain::Toolchain;
use crate::guest::encode::to_component;

/// What `wheelhouse guest build` is asked.
#[derive(Args, Debug)]
pub struct GuestBuildArgs {
    /// Where the guests are: a Cargo package, or a workspace of several
    #[arg(value_name = "DIR", default_value = ".")]
    pub dirs: Vec<PathBuf>,

    /// Where the components go [default: build/ in the guests' workspace]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Compile without optimisation: faster to build, slower to run
    #[arg(long)]
    pub debug: bool,
}

/// Builds every guest below the directories, and prints a line for each.
pub fn run(args: &GuestBuildArgs) -> anyhow::Result<()> {
    // Everything is looked for before anything is built: a slip in the last directory costs no compiling.
    let mut by_workspace: BTreeMap<PathBuf, Vec<GuestPackage>> = BTreeMap::new();
    for dir in &args.dirs {
        for package in packages::find(dir)? {
            let guests = by_workspace.entry(package.workspace_root.clone()).or_default();
            if !guests.contains(&package) {
                guests.push(package);
            }
        }
    }
    for (workspace_root, guests) in &by_workspace {
        let out = args.out.clone().unwrap_or_else(|| workspace_root.join("build"));
        build_workspace(workspace_root, guests, &out, args.debug)?;
    }
    Ok(())
}

fn build_workspace(root: &Path, guests: &[GuestPackage], out: &Path, debug: bool) -> anyhow::Result<()> {
    let toolchain = Toolchain::find(root)?;
    std::fs::create_dir_all(out).with_context(|| format!("cannot make the directory {}", shown(out)))?;
    if std::io::stderr().is_terminal() {
        let names: Vec<&str> = guests.iter().map(|guest| guest.name.as_str()).collect();
        eprintln!("Building {} with {toolchain}", names.join(", "));
    }
    let started = Instant::now();
    let mut written = 0;
    compile::compile(&toolchain, root, guests, debug, |compiled| {
        write_component(compiled, out, started)?;
        written += 1;
        Ok(())
    })?;
    anyhow::ensure!(
        written == guests.len(),
        "cargo built {written} of {} guests in {}: look at what it printed above",
        guests.len(),
        shown(root)
    );
    Ok(())
}

fn write_component(compiled: &Compiled, out: &Path, started: Instant) -> anyhow::Result<()> {
    let name = &compiled.package;
    let module = std::fs::read(&compiled.module)
        .with_context(|| format!("{name}: cannot read what cargo made, {}", shown(&compiled.module)))?;
    let component = to_component(&module).with_context(|| name.clone())?;
    let file = out.join(format!("{name}.wasm"));
    // Written beside and then renamed: a host that reads the file never sees half of it.
    let beside = out.join(format!(".{name}.wasm.new"));
    std::fs::write(&beside, &component)
        .and_then(|()| std::fs::rename(&beside, &file))
        .with_context(|| format!("{name}: cannot write {}", shown(&file)))?;
    let size_kib = component.len() as f64 / 1024.0;
    let seconds = started.elapsed().as_secs_f64();
    match writeln!(std::io::stdout(), "{name}  {size_kib:.1} KiB  {seconds:.1} s  {}", shown(&file)) {
        // Whoever listened has heard enough; the other guests are still to be written.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed?),
    }
}

/// A path as it is shown: from the current directory where it lies below, and whole where it is that directory.
fn shown(path: &Path) -> std::path::Display<'_> {
    let current = std::env::current_dir().ok();
    let below = current.and_then(|current| path.strip_prefix(current).ok());
    below.filter(|below| !below.as_os_str().is_empty()).unwrap_or(path).display()
}
