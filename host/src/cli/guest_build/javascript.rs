//! Guests in JavaScript: componentize-js puts the source and an engine together. It is a library for Node, and is found in
//! the project's `node_modules` or in one above it.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::narrowed::Narrowed;
use super::project::Project;
use super::tool;

/// What runs in Node. The features of the engine that would import WASI are off: the guest imports the contract alone.
const SCRIPT: &str = include_str!("componentize.mjs");

const LIBRARY: &str = "node_modules/@bytecodealliance/componentize-js";

/// Where Node looks for libraries that are in no folder above the project.
const LIBRARIES_ELSEWHERE: &str = "WHEELHOUSE_NODE_MODULES";

/// Writes the component to `out`; `scratch` is an empty folder.
pub fn build(project: &Project, contract: &Narrowed, scratch: &Path, out: &Path) -> anyhow::Result<()> {
    let missing =
        "componentize-js is not installed: run `npm install @bytecodealliance/componentize-js` in the project";
    anyhow::ensure!(
        tool::answers(Command::new("node").arg("--version")),
        "node is not installed, or not on PATH: install Node.js (Debian: `apt-get install nodejs npm`)"
    );
    let elsewhere = std::env::var_os(LIBRARIES_ELSEWHERE).map(|folder| Path::new(&folder).join(LIBRARY));
    let library =
        tool::above(&project.folder, LIBRARY).or(elsewhere.filter(|folder| folder.is_dir())).context(missing)?;
    let (wit, script) = (scratch.join("contract.wit"), scratch.join("componentize.mjs"));
    std::fs::write(&wit, contract.text()?)?;
    std::fs::write(&script, SCRIPT)?;
    let mut node = Command::new("node");
    node.arg(&script).args([&library, &project.source, &wit]).arg(project.kind.as_str()).arg(out);
    tool::run(node.current_dir(&project.folder), "componentize-js")
}
