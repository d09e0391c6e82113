//! Guests in Python: componentize-py puts the modules and an interpreter together. It is found in the project's virtual
//! environment or in one above it, or on the path.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::narrowed::Narrowed;
use super::project::Project;
use super::tool;

const TOOL: &str = "componentize-py";

/// Writes the component to `out`; `scratch` is an empty folder.
pub fn build(project: &Project, contract: &Narrowed, scratch: &Path, out: &Path) -> anyhow::Result<()> {
    let tool = tool(project).context(
        "componentize-py is not installed: run `python3 -m venv .venv && .venv/bin/pip install componentize-py` in the \
         project",
    )?;
    let module = project.source.file_stem().and_then(|stem| stem.to_str()).context("a Python module has a name")?;
    let folder = project.source.parent().unwrap_or(&project.folder);
    let wit = scratch.join("contract.wit");
    std::fs::write(&wit, contract.text()?)?;
    let mut command = Command::new(tool);
    command.arg("-d").arg(&wit).args(["-w", project.kind.as_str(), "componentize", module]);
    command.arg("-p").arg(folder).arg("-o").arg(out).current_dir(folder);
    tool::run(&mut command, TOOL)
}

fn tool(project: &Project) -> Option<std::path::PathBuf> {
    let in_environment = tool::above(&project.folder, &format!(".venv/bin/{TOOL}"));
    in_environment.or_else(|| tool::answers(Command::new(TOOL).arg("--version")).then(|| TOOL.into()))
}
