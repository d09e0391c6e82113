//! Finds the guests below a directory: the packages of a Cargo workspace that make a `cdylib`. It asks
//! `cargo metadata`, which reads manifests only: nothing is compiled or fetched.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// A package that makes a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestPackage {
    /// The package's name, and so the component's.
    pub name: String,
    /// Its `Cargo.toml`.
    pub manifest: PathBuf,
    /// The root of the workspace it belongs to.
    pub workspace_root: PathBuf,
}

/// Why no guests were found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The directory is not there.
    #[error("{} is not there: name a directory with a Rust guest in it", .0.display())]
    NoDirectory(PathBuf),
    /// The path is a file.
    #[error("{} is not a directory: name the directory with the guest's Cargo.toml", .0.display())]
    NotADirectory(PathBuf),
    /// There is no Cargo package.
    #[error("{} has no Cargo.toml, so there is no guest to build in it", .0.display())]
    NoPackage(PathBuf),
    /// There are packages, but none is a guest.
    #[error(
        "{} has no guests: a guest is a package with crate-type = [\"cdylib\"] under [lib] in its Cargo.toml",
        .0.display()
    )]
    NoGuests(PathBuf),
    /// Cargo is not installed.
    #[error("cargo is not installed, or not on PATH: install Rust with rustup")]
    NoCargo,
    /// Cargo is there but did not run.
    #[error("cargo cannot be run: {0}")]
    CargoNotRun(std::io::Error),
    /// Cargo could not read the manifests.
    #[error("{}: cargo cannot read it: {message}", .directory.display())]
    Refused {
        /// The directory that was named.
        directory: PathBuf,
        /// What Cargo said, in one line.
        message: String,
    },
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    crate_types: Vec<String>,
}

/// The guests whose packages lie in `directory` or below it, in order of their names.
pub fn find(directory: &Path) -> Result<Vec<GuestPackage>, FindError> {
    if !directory.exists() {
        return Err(FindError::NoDirectory(directory.to_owned()));
    }
    if !directory.is_dir() {
        return Err(FindError::NotADirectory(directory.to_owned()));
    }
    let manifest = directory.join("Cargo.toml");
    if !manifest.is_file() {
        return Err(FindError::NoPackage(directory.to_owned()));
    }
    let metadata = metadata(directory, &manifest)?;
    // Cargo gives real paths; so must be what they are compared with.
    let below = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let mut guests: Vec<GuestPackage> = guests_of(metadata, &below);
    guests.sort_by(|left, right| left.name.cmp(&right.name));
    if guests.is_empty() { Err(FindError::NoGuests(directory.to_owned())) } else { Ok(guests) }
}

fn guests_of(metadata: Metadata, below: &Path) -> Vec<GuestPackage> {
    let makes_guest = |package: &Package| {
        package.targets.iter().any(|target| target.crate_types.iter().any(|crate_type| crate_type == "cdylib"))
    };
    let is_below = |package: &Package| {
        let manifest = package.manifest_path.canonicalize().unwrap_or_else(|_| package.manifest_path.clone());
        manifest.starts_with(below)
    };
    let root = metadata.workspace_root;
    let guests = metadata.packages.into_iter().filter(|package| makes_guest(package) && is_below(package));
    let guest = |package: Package| GuestPackage {
        name: package.name,
        manifest: package.manifest_path,
        workspace_root: root.clone(),
    };
    guests.map(guest).collect()
}

fn metadata(directory: &Path, manifest: &Path) -> Result<Metadata, FindError> {
    let output = Command::new("cargo")
        .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
        .arg(manifest)
        .output()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => FindError::NoCargo,
            _ => FindError::CargoNotRun(error),
        })?;
    let refused = |message: String| FindError::Refused { directory: directory.to_owned(), message };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(refused(
            said.trim().trim_start_matches("error: ").split_whitespace().collect::<Vec<_>>().join(" "),
        ));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| refused(format!("its metadata is odd: {error}")))
}

#[cfg(test)]
#[path = "packages_tests.rs"]
mod tests;
