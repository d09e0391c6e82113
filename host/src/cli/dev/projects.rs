//! Which guests a changed file belongs to, and which guest of the configuration a component is for.

use std::path::{Path, PathBuf};

use crate::cli::guest_build::project::PROJECT_FILE;
use crate::cli::guest_build::{Buildable, Built, find};
use crate::guest::GuestSettings;
use crate::server::Config;

/// What there is to build below the watched folder.
pub struct Projects {
    directory: PathBuf,
    all: Vec<Buildable>,
}

impl Projects {
    /// Looks for them.
    pub fn find(directory: &Path) -> anyhow::Result<Self> {
        let all = find(&[directory.to_owned()])?;
        Ok(Self { directory: directory.to_owned(), all })
    }

    /// The folder that is watched.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// All of them.
    pub fn all(&self) -> &[Buildable] {
        &self.all
    }

    /// Looks again, where a changed file says that there may be others now.
    pub fn refresh<'a>(&mut self, mut changed: impl Iterator<Item = &'a PathBuf>) -> anyhow::Result<()> {
        let tells_projects = |path: &PathBuf| path.ends_with("Cargo.toml") || path.ends_with(PROJECT_FILE);
        if changed.any(tells_projects) {
            self.all = find(std::slice::from_ref(&self.directory))?;
        }
        Ok(())
    }

    /// What is to be built again: the guests in whose folders something has changed, and all of a workspace where the
    /// change is in none of them, such as in a library that they share.
    pub fn touched<'a>(&self, changed: impl Iterator<Item = &'a PathBuf> + Clone) -> Vec<Buildable> {
        self.all.iter().filter_map(|buildable| touched(buildable, changed.clone())).collect()
    }
}

fn touched<'a>(buildable: &Buildable, mut changed: impl Iterator<Item = &'a PathBuf> + Clone) -> Option<Buildable> {
    match buildable {
        Buildable::Project(project) => changed.any(|path| path.starts_with(&project.folder)).then(|| buildable.clone()),
        Buildable::Cargo { workspace_root, guests } => {
            let folder = |manifest: &Path| manifest.parent().map(Path::to_owned).unwrap_or_default();
            let is_of = |path: &Path, manifest: &Path| path.starts_with(folder(manifest));
            let in_workspace = changed.filter(|path| path.starts_with(workspace_root));
            let is_shared = |path: &PathBuf| !guests.iter().any(|guest| is_of(path, &guest.manifest));
            let all = in_workspace.clone().any(is_shared);
            let mut touched = guests.clone();
            touched.retain(|guest| all || in_workspace.clone().any(|path| is_of(path, &guest.manifest)));
            let workspace_root = workspace_root.clone();
            (!touched.is_empty()).then_some(Buildable::Cargo { workspace_root, guests: touched })
        }
    }
}

/// The guest of the configuration that a component is for: the one whose file it is, or else the one of its name.
pub fn guest_for<'a>(built: &Built, config: &'a Config) -> Option<&'a GuestSettings> {
    let real = |path: &Path| path.canonicalize().ok();
    let file = real(&built.file);
    let mut guests = config.enabled_guests();
    let by_file = guests.find(|guest| file.is_some() && real(&guest.file) == file);
    by_file.or_else(|| config.enabled_guests().find(|guest| guest.name == built.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::guest_build::GuestPackage;

    fn package(name: &str) -> GuestPackage {
        let (manifest, workspace_root) = (format!("/g/{name}/Cargo.toml").into(), "/g".into());
        GuestPackage { name: name.to_owned(), manifest, workspace_root }
    }

    fn names_touched(changed: &[&str]) -> Vec<String> {
        let guests = vec![package("wolf"), package("sheep")];
        let workspace = Buildable::Cargo { workspace_root: "/g".into(), guests };
        let projects = Projects { directory: "/g".into(), all: vec![workspace] };
        let changed: Vec<PathBuf> = changed.iter().map(PathBuf::from).collect();
        match projects.touched(changed.iter()).pop() {
            Some(Buildable::Cargo { guests, .. }) => guests.into_iter().map(|guest| guest.name).collect(),
            Some(Buildable::Project(project)) => vec![project.name],
            None => Vec::new(),
        }
    }

    #[test]
    fn a_change_in_a_guest_is_its_own_and_one_beside_them_is_everybodys() {
        assert_eq!(names_touched(&["/g/wolf/src/lib.rs"]), ["wolf"]);
        assert_eq!(names_touched(&["/g/meadow/src/lib.rs"]), ["wolf", "sheep"]);
        assert_eq!(names_touched(&["/elsewhere/lib.rs"]), [""; 0]);
    }
}
