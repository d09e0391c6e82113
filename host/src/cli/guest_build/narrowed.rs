//! The contract as one guest needs it: only what it is granted is left of what its world imports. The tools of JavaScript
//! and Python import everything that a world has, so that each guest would have to be granted all of it.

use std::path::Path;

use anyhow::Context;
use wit_component::WitPrinter;
use wit_parser::{PackageId, Resolve};

use super::project::Project;
use crate::guest::component::is_open_to;

/// The WIT package of the contract, for one guest.
pub struct Narrowed {
    pub resolve: Resolve,
    package: PackageId,
}

/// Reads the contract in the project's folder `wit` and leaves of it what the project may import.
pub fn narrowed(project: &Project) -> anyhow::Result<Narrowed> {
    let folder = project.folder.join("wit");
    anyhow::ensure!(
        folder.is_dir(),
        "{} has no folder wit: copy the contract's WIT files there, or make the project with `wheelhouse guest new`",
        project.folder.display()
    );
    narrow(&folder, project)
}

fn narrow(folder: &Path, project: &Project) -> anyhow::Result<Narrowed> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(folder).with_context(|| format!("{} is not WIT", folder.display()))?;
    let interfaces: Vec<_> =
        resolve.packages[package].interfaces.iter().map(|(name, id)| (name.clone(), *id)).collect();
    for (name, interface) in interfaces {
        if !is_open_to(&name, project.kind, &project.grants) {
            // Its types stay, since others use them; types alone need no grant.
            resolve.interfaces[interface].functions.clear();
        }
    }
    Ok(Narrowed { resolve, package })
}

/// The world that a project implements.
pub fn world_of(resolve: &Resolve, package: PackageId, project: &Project) -> anyhow::Result<wit_parser::WorldId> {
    let worlds = &resolve.packages[package].worlds;
    let world = worlds.get(project.kind.as_str()).copied();
    world.with_context(|| format!("the WIT files of {} have no world {}", project.name, project.kind))
}

impl Narrowed {
    /// The world that a project implements.
    pub fn world(&self, project: &Project) -> anyhow::Result<wit_parser::WorldId> {
        world_of(&self.resolve, self.package, project)
    }

    /// The package as text.
    pub fn text(&self) -> anyhow::Result<String> {
        let mut printer = WitPrinter::default();
        printer.print(&self.resolve, self.package, &[])?;
        Ok(printer.output.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::project::Language;
    use super::*;
    use crate::guest::{Grant, GuestKind};

    fn text(kind: GuestKind, grants: &[Grant]) -> String {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).with_file_name("wit");
        let (name, language, source) = ("hare".to_owned(), Language::Js, PathBuf::new());
        let project = Project { folder: folder.clone(), name, kind, language, source, grants: grants.to_vec() };
        narrow(&folder, &project).unwrap().text().unwrap()
    }

    #[test]
    fn a_guest_can_call_what_it_is_granted_and_nothing_else_and_knows_all_types() {
        let narrow = text(GuestKind::Game, &[Grant::Gate]);
        let world = narrow.split("world game {").nth(1).unwrap().split("\n}").next().unwrap();
        assert!(world.contains("import gate;") && world.contains("import log;"), "{world}");
        assert!(narrow.contains("record entry") && !narrow.contains("scan: func"), "kv has types only");
        assert!(narrow.contains("record due-event") && !narrow.contains("schedule: func"), "types only");
        assert!(narrow.contains("send-all: func"));
        let parsed = Resolve::default().push_str("narrow.wit", &narrow);
        assert!(parsed.is_ok(), "{parsed:?}");
    }

    #[test]
    fn what_a_kind_cannot_have_is_not_granted_by_naming_it() {
        assert!(!text(GuestKind::Thinker, &[Grant::Gate]).contains("send-all: func"));
    }
}
