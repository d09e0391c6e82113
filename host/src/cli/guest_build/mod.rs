//! `wheelhouse guest build`: makes components of guests in Rust, JavaScript, Python and C. It finds the guests below each
//! directory, compiles those of a Cargo workspace together and the projects of other languages one after another, and
//! writes `<out>/<name>.wasm`. It installs nothing: what is missing is named.

mod c;
mod compile;
mod javascript;
mod narrowed;
mod packages;
pub mod project;
mod python;
mod tool;
mod toolchain;

use std::collections::BTreeMap;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use clap::Args;

use self::compile::Compiled;
use self::packages::FindError;
pub use self::packages::GuestPackage;
use self::project::{Language, Project};
use self::toolchain::Toolchain;
use crate::guest::encode::to_component;

/// What `wheelhouse guest build` is asked.
#[derive(Args, Debug)]
pub struct GuestBuildArgs {
    /// Where the guests are: Cargo packages or workspaces, and projects with a guest.toml
    #[arg(value_name = "DIR", default_value = ".")]
    pub dirs: Vec<PathBuf>,

    /// Where the components go [default: build/ in the guests' workspace, or in the project]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Compile Rust without optimisation: faster to build, slower to run
    #[arg(long)]
    pub debug: bool,
}

/// Guests that are built together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Buildable {
    /// Packages of one Cargo workspace.
    Cargo { workspace_root: PathBuf, guests: Vec<GuestPackage> },
    /// A project in another language.
    Project(Project),
}

/// A component that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    pub name: String,
    pub file: PathBuf,
    pub bytes: u64,
}

/// Builds every guest below the directories, and prints a line for each.
pub fn run(args: &GuestBuildArgs) -> anyhow::Result<()> {
    // Everything is looked for before anything is built: a slip in the last directory costs no compiling.
    for buildable in find(&args.dirs)? {
        let started = Instant::now();
        build(&buildable, args.out.as_deref(), args.debug, &mut |built| print(built, started))?;
    }
    Ok(())
}

/// What there is to build below the directories.
pub fn find(directories: &[PathBuf]) -> anyhow::Result<Vec<Buildable>> {
    let mut by_workspace: BTreeMap<PathBuf, Vec<GuestPackage>> = BTreeMap::new();
    let mut projects: Vec<Project> = Vec::new();
    for directory in directories {
        // Projects of other languages that lie in a workspace of Cargo want tools that need not be here: they are built where
        // they are named.
        let is_of_cargo = directory.join("Cargo.toml").is_file();
        let others = if is_of_cargo { Vec::new() } else { project::find(directory)? };
        let packages = match packages_below(directory) {
            Ok(packages) => packages,
            // There need not be any in Rust.
            Err(FindError::NoPackage(_) | FindError::NoGuests(_)) if !others.is_empty() => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        for package in packages {
            let guests = by_workspace.entry(package.workspace_root.clone()).or_default();
            if !guests.contains(&package) {
                guests.push(package);
            }
        }
        for project in others {
            if !projects.contains(&project) {
                projects.push(project);
            }
        }
    }
    let workspaces = by_workspace.into_iter();
    let workspaces = workspaces.map(|(workspace_root, guests)| Buildable::Cargo { workspace_root, guests });
    Ok(workspaces.chain(projects.into_iter().map(Buildable::Project)).collect())
}

/// The guests in Rust: of the package or workspace that the directory is, or of those below it.
fn packages_below(directory: &Path) -> Result<Vec<GuestPackage>, FindError> {
    let folders = project::folders_with("Cargo.toml", directory);
    if directory.join("Cargo.toml").is_file() || folders.is_empty() {
        return packages::find(directory);
    }
    let mut all = Vec::new();
    for folder in folders {
        match packages::find(&folder) {
            Ok(packages) => all.extend(packages),
            Err(FindError::NoGuests(_)) => {}
            Err(error) => return Err(error),
        }
    }
    if all.is_empty() { Err(FindError::NoGuests(directory.to_owned())) } else { Ok(all) }
}

/// Builds guests, and calls `made` for each component that is written. What compilers complain of has gone to standard
/// error when this fails.
pub fn build(
    buildable: &Buildable,
    out: Option<&Path>,
    debug: bool,
    made: &mut dyn FnMut(&Built) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    match buildable {
        Buildable::Cargo { workspace_root, guests } => {
            let out = out.map_or_else(|| workspace_root.join("build"), Path::to_owned);
            build_workspace(workspace_root, guests, &out, debug, made)
        }
        Buildable::Project(project) => {
            let file = out.map_or_else(|| project.component(), |out| out.join(format!("{}.wasm", project.name)));
            build_project(project, &file, made).with_context(|| project.name.clone())
        }
    }
}

fn build_project(
    project: &Project,
    file: &Path,
    made: &mut dyn FnMut(&Built) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if std::io::stderr().is_terminal() {
        eprintln!("Building {}", project.name);
    }
    let scratch = tempfile::tempdir().context("no temporary folder can be made")?;
    let component = scratch.path().join("component");
    let contract = narrowed::narrowed(project)?;
    let work = scratch.path().join("work");
    std::fs::create_dir(&work)?;
    match project.language {
        Language::Js => javascript::build(project, &contract, &work, &component)?,
        Language::Python => python::build(project, &contract, &work, &component)?,
        Language::C => c::build(project, &mut { contract }, &work, &component)?,
    }
    let bytes = std::fs::read(&component).context("the compiler wrote no component")?;
    write_component(&project.name, &bytes, file, made)
}

fn build_workspace(
    root: &Path,
    guests: &[GuestPackage],
    out: &Path,
    debug: bool,
    made: &mut dyn FnMut(&Built) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let toolchain = Toolchain::find(root)?;
    if std::io::stderr().is_terminal() {
        let names: Vec<&str> = guests.iter().map(|guest| guest.name.as_str()).collect();
        eprintln!("Building {} with {toolchain}", names.join(", "));
    }
    let mut written = 0;
    compile::compile(&toolchain, root, guests, debug, |compiled| {
        write_module(compiled, out, made)?;
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

fn write_module(
    compiled: &Compiled,
    out: &Path,
    made: &mut dyn FnMut(&Built) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let name = &compiled.package;
    let module = std::fs::read(&compiled.module)
        .with_context(|| format!("{name}: cannot read what cargo made, {}", shown(&compiled.module)))?;
    let component = to_component(&module).with_context(|| name.clone())?;
    write_component(name, &component, &out.join(format!("{name}.wasm")), made)
}

fn write_component(
    name: &str,
    component: &[u8],
    file: &Path,
    made: &mut dyn FnMut(&Built) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let out = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(out).with_context(|| format!("cannot make the directory {}", shown(out)))?;
    // Written beside and then renamed: a host that reads the file never sees half of it.
    let beside = out.join(format!(".{name}.wasm.new"));
    std::fs::write(&beside, component)
        .and_then(|()| std::fs::rename(&beside, file))
        .with_context(|| format!("{name}: cannot write {}", shown(file)))?;
    made(&Built { name: name.to_owned(), file: file.to_owned(), bytes: component.len() as u64 })
}

fn print(built: &Built, started: Instant) -> anyhow::Result<()> {
    let Built { name, file, bytes } = built;
    let size_kib = *bytes as f64 / 1024.0;
    let seconds = started.elapsed().as_secs_f64();
    match writeln!(std::io::stdout(), "{name}  {size_kib:.1} KiB  {seconds:.1} s  {}", shown(file)) {
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
