use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{NoToolchain, Toolchain, build_std};

fn arguments(command: &Command) -> Vec<&OsStr> {
    command.get_args().collect()
}

#[test]
fn the_installed_target_is_built_with_plain_cargo() {
    let command = Toolchain::Installed.cargo_build(false);
    assert_eq!(command.get_program(), "cargo");
    assert_eq!(arguments(&command), ["build", "--target", "wasm32-unknown-unknown", "--release"]);
    assert_eq!(command.get_envs().count(), 0);
    assert_eq!(arguments(&Toolchain::Installed.cargo_build(true)), ["build", "--target", "wasm32-unknown-unknown"]);
}

#[test]
fn the_debian_toolchain_builds_std_with_its_own_compiler_and_the_linker_found() {
    let toolchain = Toolchain::BuildStd { bin: PathBuf::from("/usr/bin"), linker: PathBuf::from("/opt/rust-lld") };
    let command = toolchain.cargo_build(false);
    assert_eq!(command.get_program(), "/usr/bin/cargo");
    assert!(arguments(&command).contains(&OsStr::new("-Zbuild-std=std,panic_abort")));
    let set = |key: &str| {
        command.get_envs().find(|(name, _)| *name == key).and_then(|(_, value)| Some(value?.to_str()?.to_owned()))
    };
    assert_eq!(set("RUSTC").as_deref(), Some("/usr/bin/rustc"));
    assert_eq!(set("RUSTC_BOOTSTRAP").as_deref(), Some("1"));
    assert_eq!(set("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER").as_deref(), Some("/opt/rust-lld"));
    assert!(set("PATH").unwrap().starts_with("/usr/bin"));
}

#[test]
fn a_directory_without_a_compiler_is_no_debian_toolchain() {
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(build_std(Path::new("."), empty.path()), None);
}

#[test]
fn without_a_toolchain_one_line_names_both_mends() {
    let message = NoToolchain.to_string();
    assert_eq!(message.lines().count(), 1);
    assert!(message.contains("rustup target add wasm32-unknown-unknown"));
    assert!(message.contains("apt-get install rustc-web cargo-web rust-web-src"));
}
