use std::fs;
use std::path::Path;

use super::{FindError, find};

fn package(directory: &Path, name: &str, crate_type: &str) {
    fs::create_dir_all(directory.join("src")).unwrap();
    fs::write(directory.join("src/lib.rs"), "").unwrap();
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"{crate_type}\"]\n"
    );
    fs::write(directory.join("Cargo.toml"), manifest).unwrap();
}

/// A workspace with the guests fox and hen, and a library that both might share.
fn workspace(root: &Path) {
    fs::write(root.join("Cargo.toml"), "[workspace]\nresolver = \"3\"\nmembers = [\"hen\", \"fox\", \"shared\"]\n")
        .unwrap();
    package(&root.join("hen"), "hen", "cdylib");
    package(&root.join("fox"), "fox", "cdylib");
    package(&root.join("shared"), "shared", "lib");
}

fn names(directory: &Path) -> Vec<String> {
    find(directory).unwrap().into_iter().map(|guest| guest.name).collect()
}

#[test]
fn a_workspace_gives_its_guests_and_no_libraries() {
    let root = tempfile::tempdir().unwrap();
    workspace(root.path());
    assert_eq!(names(root.path()), ["fox", "hen"]);
}

#[test]
fn a_member_gives_itself_alone_and_knows_its_workspace() {
    let root = tempfile::tempdir().unwrap();
    workspace(root.path());
    let guests = find(&root.path().join("hen")).unwrap();
    assert_eq!(guests.len(), 1);
    assert_eq!(guests[0].name, "hen");
    assert_eq!(guests[0].workspace_root, root.path().canonicalize().unwrap());
}

#[test]
fn a_package_of_its_own_is_its_own_workspace() {
    let root = tempfile::tempdir().unwrap();
    package(root.path(), "owl", "cdylib");
    let guests = find(root.path()).unwrap();
    assert_eq!(guests[0].name, "owl");
    assert_eq!(guests[0].workspace_root, root.path().canonicalize().unwrap());
}

#[test]
fn a_directory_is_found_through_a_link_to_it() {
    let root = tempfile::tempdir().unwrap();
    package(&root.path().join("owl"), "owl", "cdylib");
    std::os::unix::fs::symlink(root.path().join("owl"), root.path().join("link")).unwrap();
    assert_eq!(names(&root.path().join("link")), ["owl"]);
}

#[test]
fn what_is_no_guest_is_told_in_one_line() {
    let root = tempfile::tempdir().unwrap();
    let library = root.path().join("library");
    package(&library, "library", "lib");
    let odd = root.path().join("odd");
    fs::create_dir(&odd).unwrap();
    fs::write(odd.join("Cargo.toml"), "[package\n").unwrap();
    let empty = root.path().join("empty");
    fs::create_dir(&empty).unwrap();

    assert!(matches!(find(&root.path().join("nowhere")), Err(FindError::NoDirectory(_))));
    assert!(matches!(find(&odd.join("Cargo.toml")), Err(FindError::NotADirectory(_))));
    assert!(matches!(find(&empty), Err(FindError::NoPackage(_))));
    assert!(matches!(find(&library), Err(FindError::NoGuests(_))));
    assert!(matches!(find(&odd), Err(FindError::Refused { .. })));
    for directory in ["nowhere", "empty", "library", "odd"] {
        let error = find(&root.path().join(directory)).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains(directory), "{error}");
    }
}
