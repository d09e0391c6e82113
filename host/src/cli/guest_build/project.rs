//! The projects of guests in other languages than Rust: a folder with a `guest.toml`, as `guest new` writes it, that says
//! what the guest is called, of which kind it is, in which language, and what it may import.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::guest::{Grant, GuestKind};

/// The file that makes a folder a project.
pub const PROJECT_FILE: &str = "guest.toml";

/// How deep below a named directory projects are looked for.
const MAX_DEPTH: usize = 4;

/// Folders that hold what tools have made or fetched.
const NOT_LOOKED_INTO: [&str; 5] = ["node_modules", "target", "build", "wit", "__pycache__"];

/// A language whose projects are described by a [`PROJECT_FILE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Language {
    Js,
    Python,
    C,
}

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    name: String,
    kind: GuestKind,
    language: Language,
    /// The file that holds the guest's exports, or for C the folder of its sources.
    source: PathBuf,
    /// What it may import beyond what every guest may.
    #[serde(default)]
    grants: Vec<Grant>,
}

/// A project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    pub folder: PathBuf,
    pub name: String,
    pub kind: GuestKind,
    pub language: Language,
    /// In the folder.
    pub source: PathBuf,
    pub grants: Vec<Grant>,
}

/// Why a project cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    #[error("{} cannot be read: {error}", .file.display())]
    Unreadable { file: PathBuf, error: std::io::Error },
    #[error("{}: {}", .file.display(), one_line(.error))]
    Malformed { file: PathBuf, error: Box<toml::de::Error> },
    #[error("{}: source = {source_file:?} is not there", .file.display())]
    NoSource { file: PathBuf, source_file: PathBuf },
    #[error("{}: name = {name:?} must be letters, digits, - and _", .file.display())]
    BadName { file: PathBuf, name: String },
}

fn one_line(error: &toml::de::Error) -> String {
    error.message().lines().collect::<Vec<_>>().join(" ")
}

/// Whether a name can be that of a file, a module and a guest.
pub fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '-' || character == '_')
}

impl Project {
    /// The project in a folder.
    pub fn read(folder: &Path) -> Result<Self, ProjectError> {
        let file = folder.join(PROJECT_FILE);
        let text = fs::read_to_string(&file).map_err(|error| ProjectError::Unreadable { file: file.clone(), error })?;
        let parsed = toml::from_str::<Description>(&text);
        let Description { name, kind, language, source, grants } =
            parsed.map_err(|error| ProjectError::Malformed { file: file.clone(), error: Box::new(error) })?;
        if !is_name(&name) {
            return Err(ProjectError::BadName { file, name });
        }
        if !folder.join(&source).exists() {
            return Err(ProjectError::NoSource { file, source_file: source });
        }
        Ok(Self { folder: folder.to_owned(), name, kind, language, source: folder.join(source), grants })
    }

    /// Where its component is written, unless somebody says otherwise.
    pub fn component(&self) -> PathBuf {
        self.folder.join(format!("build/{}.wasm", self.name))
    }
}

/// The projects in a directory and below it, in order of their names. Not the ones of Cargo.
pub fn find(directory: &Path) -> Result<Vec<Project>, ProjectError> {
    let folders = folders_with(PROJECT_FILE, directory);
    let mut projects = folders.iter().map(|folder| Project::read(folder)).collect::<Result<Vec<_>, _>>()?;
    projects.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(projects)
}

/// The folders with a file of that name, by absolute paths: the directory, or else those below it. What lies below such a
/// folder belongs to it.
pub fn folders_with(name: &str, directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // The compilers run in other folders.
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    look(name, &directory, 0, &mut found);
    found.sort();
    found
}

fn look(name: &str, directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if directory.join(name).is_file() {
        found.push(directory.to_owned());
        return;
    }
    if depth == MAX_DEPTH {
        return;
    }
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let below = entry.file_name();
        let is_passed_over =
            NOT_LOOKED_INTO.iter().any(|other| below == *other) || below.as_encoded_bytes().starts_with(b".");
        // Links are not followed, since they may lead in a circle.
        if !is_passed_over && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            look(name, &entry.path(), depth + 1, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, text: &str) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(PROJECT_FILE), text).unwrap();
        fs::write(folder.join("guest.js"), "").unwrap();
    }

    const HARE: &str =
        "name = \"hare\"\nkind = \"thinker\"\nlanguage = \"js\"\nsource = \"guest.js\"\ngrants = [\"kv\"]\n";

    #[test]
    fn projects_are_found_below_a_directory_but_not_in_what_tools_have_made() {
        let root = tempfile::tempdir().unwrap();
        write(&root.path().join("animals/hare"), HARE);
        write(&root.path().join("animals/node_modules/hare"), HARE);
        write(&root.path().join(".hidden/hare"), HARE);
        let found = find(root.path()).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].kind, &found[0].grants[..]), (GuestKind::Thinker, &[Grant::Kv][..]));
        assert_eq!(found[0].component(), root.path().join("animals/hare/build/hare.wasm"));
    }

    #[test]
    fn what_is_wrong_with_a_project_is_told_in_one_line_that_names_the_file() {
        let root = tempfile::tempdir().unwrap();
        for (text, told) in [
            (HARE.replace("js\"\nsource", "cobol\"\nsource"), "unknown variant `cobol`, expected one of `js`"),
            (HARE.replace("guest.js", "gone.js"), "source = \"gone.js\" is not there"),
            (HARE.replace("\"hare\"", "\"../hare\""), "name = \"../hare\" must be letters, digits, - and _"),
            (HARE.replace("name", "nmae"), "unknown field `nmae`"),
        ] {
            write(root.path(), &text);
            let error = find(root.path()).unwrap_err().to_string();
            assert!(error.contains("guest.toml: ") && error.contains(told), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
