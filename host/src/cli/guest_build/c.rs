//! Guests in C: the bindings are generated here, from the project's WIT files, and compiled together with its sources by
//! whichever compiler for WebAssembly there is: `zig`, as a program or as Python's package `ziglang`, or wasi-sdk's clang.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use wit_bindgen_core::Files;

use super::narrowed::Narrowed;
use super::project::Project;
use super::tool;
use crate::guest::encode::to_component;

/// Where wasi-sdk is, if that is not where it is usually put.
const WASI_SDK: &str = "WASI_SDK_PATH";
const USUAL_WASI_SDK: &str = "/opt/wasi-sdk";

/// Some compilers reserve 16 MiB for the stack, in each instance.
const STACK: &str = "-Wl,-z,stack-size=262144";

const MISSING: &str = "no C compiler for WebAssembly is here: run `python3 -m pip install ziglang` (or put it into the \
    project's .venv), or unpack wasi-sdk to /opt/wasi-sdk or where WASI_SDK_PATH says";

/// Writes the component to `out`; `scratch` is an empty folder.
pub fn build(project: &Project, contract: &mut Narrowed, scratch: &Path, out: &Path) -> anyhow::Result<()> {
    let mut compiler = compiler(project).context(MISSING)?;
    write_bindings(project, contract, scratch)?;
    let module = scratch.join("module.wasm");
    let mut sources = with_extension(&project.source, "c")?;
    anyhow::ensure!(!sources.is_empty(), "{} has no .c files", project.source.display());
    sources.extend(with_extension(scratch, "c")?);
    compiler.args(["-mexec-model=reactor", "-O2", "-g0", "-Wall", STACK, "-I"]).arg(scratch).args(&sources);
    compiler.args(with_extension(scratch, "o")?).arg("-o").arg(&module);
    tool::run(&mut compiler, "the C compiler")?;
    let component = to_component(&std::fs::read(&module)?)?.into_owned();
    Ok(std::fs::write(out, component)?)
}

/// Writes the bindings to a folder: a header, a source, and an object that tells which world it is.
fn write_bindings(project: &Project, contract: &mut Narrowed, folder: &Path) -> anyhow::Result<()> {
    let world = contract.world(project)?;
    let mut files = Files::default();
    wit_bindgen_c::Opts::default().build().generate(&mut contract.resolve, world, &mut files)?;
    for (name, content) in files.iter() {
        std::fs::write(folder.join(name), content)?;
    }
    Ok(())
}

fn with_extension(folder: &Path, extension: &str) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension() == Some(OsStr::new(extension)));
    files.sort();
    Ok(files)
}

/// A compiler, set up for WASI preview 1.
fn compiler(project: &Project) -> Option<Command> {
    let zig = |mut command: Command| {
        command.args(["cc", "-target", "wasm32-wasi"]);
        command
    };
    let of_package = |python: PathBuf| {
        let mut command = Command::new(python);
        command.args(["-m", "ziglang"]);
        command
    };
    let pythons = tool::above(&project.folder, ".venv/bin/python").into_iter().chain([PathBuf::from("python3")]);
    let mut packages = pythons.filter(|python| tool::answers(of_package(python.clone()).arg("version")));
    if let Some(python) = packages.next() {
        return Some(zig(of_package(python)));
    }
    if tool::answers(Command::new("zig").arg("version")) {
        return Some(zig(Command::new("zig")));
    }
    let sdk = std::env::var_os(WASI_SDK).map_or_else(|| PathBuf::from(USUAL_WASI_SDK), PathBuf::from);
    let clang = sdk.join("bin/clang");
    let mut command = Command::new(&clang);
    command.arg("--target=wasm32-wasip1");
    clang.is_file().then_some(command)
}
