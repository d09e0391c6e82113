//! Finds a way to compile Rust for `wasm32-unknown-unknown` on this machine: the target that rustup installs, or
//! Debian's toolchain, which can build the target's `std` from source. It looks and never installs.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What Rust guests are compiled for: no WASI, nothing ambient.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Where Debian's packages `rustc-web`, `cargo-web` and `rust-web-src` put things.
const DEBIAN_BIN: &str = "/usr/bin";
const STD_SOURCE: &str = "lib/rustlib/src/rust/library/std/Cargo.toml";

/// A way to compile guests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Toolchain {
    /// Cargo and the target as rustup installs them.
    Installed,
    /// Debian's Cargo and compiler, building `std` with them.
    BuildStd {
        /// The directory of that Cargo and that compiler.
        bin: PathBuf,
        /// What links Wasm.
        linker: PathBuf,
    },
}

/// There is no way to compile guests on this machine.
#[derive(Debug, thiserror::Error)]
#[error(
    "no Rust toolchain here can compile for {TARGET}: run `rustup target add {TARGET}`, or on Debian \
     `apt-get install rustc-web cargo-web rust-web-src` (and `lld` where rustup is not there either)"
)]
pub struct NoToolchain;

impl Toolchain {
    /// The first way that works for a workspace at `root`, which may have its own idea of the toolchain.
    pub fn find(root: &Path) -> Result<Toolchain, NoToolchain> {
        if has_std(root) {
            return Ok(Toolchain::Installed);
        }
        build_std(root, Path::new(DEBIAN_BIN)).ok_or(NoToolchain)
    }

    /// Cargo, set up to build for [`TARGET`] with optimisation or without.
    pub fn cargo_build(&self, debug: bool) -> Command {
        let mut command = match self {
            Toolchain::Installed => Command::new("cargo"),
            Toolchain::BuildStd { bin, .. } => Command::new(bin.join("cargo")),
        };
        command.args(["build", "--target", TARGET]);
        if !debug {
            command.arg("--release");
        }
        if let Toolchain::BuildStd { bin, linker } = self {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let paths = std::iter::once(bin.clone()).chain(std::env::split_paths(&path));
            // Only a directory with a colon in its name cannot be joined, and `bin` has none.
            command.env("PATH", std::env::join_paths(paths).unwrap_or(path));
            command.env("RUSTC_BOOTSTRAP", "1").env("RUSTC", bin.join("rustc"));
            command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
            command.arg("-Zbuild-std=std,panic_abort");
        }
        command
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Toolchain::Installed => write!(out, "cargo"),
            Toolchain::BuildStd { bin, .. } => write!(out, "{}/cargo, which builds std first", bin.display()),
        }
    }
}

/// Whether the compiler that Cargo would take has `std` for the target.
fn has_std(root: &Path) -> bool {
    let directory = ask_rustc(Path::new("rustc"), root, &["--print", "target-libdir", "--target", TARGET]);
    let Some(entries) = directory.and_then(|directory| std::fs::read_dir(directory).ok()) else { return false };
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("libstd-"))
}

fn build_std(root: &Path, bin: &Path) -> Option<Toolchain> {
    let sysroot = ask_rustc(&bin.join("rustc"), root, &["--print", "sysroot"])?;
    if !bin.join("cargo").is_file() || !Path::new(&sysroot).join(STD_SOURCE).is_file() {
        return None;
    }
    Some(Toolchain::BuildStd { bin: bin.to_owned(), linker: linker(root, bin)? })
}

/// A linker for Wasm: rustup's own, or the one of Debian's package `lld`.
fn linker(root: &Path, bin: &Path) -> Option<PathBuf> {
    let rustup_lld = || {
        let sysroot = ask_rustc(Path::new("rustc"), root, &["--print", "sysroot"])?;
        let libraries = std::fs::read_dir(Path::new(&sysroot).join("lib/rustlib")).ok()?;
        libraries.flatten().map(|entry| entry.path().join("bin/rust-lld")).find(|lld| lld.is_file())
    };
    rustup_lld().or_else(|| ["wasm-ld", "rust-lld"].map(|name| bin.join(name)).into_iter().find(|lld| lld.is_file()))
}

/// The first line of a compiler's answer, if it is there and answers.
fn ask_rustc(rustc: &Path, root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(rustc).args(arguments).current_dir(root).stderr(Stdio::null()).output().ok()?;
    let answer = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    answer.lines().next().map(str::to_owned)
}

#[cfg(test)]
#[path = "toolchain_tests.rs"]
mod tests;
