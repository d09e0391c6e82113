//! `wheelhouse guest new`: makes a project that builds, of any kind and in any language there is a template for: sources, a
//! test, a README, and the WIT files of the contract.

mod templates;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};

use self::templates::Template;
use super::guest_build::project::{PROJECT_FILE, is_name};
use super::report::print;
use crate::guest::GuestKind;

/// What `wheelhouse guest new` is asked.
#[derive(Args, Debug)]
pub struct GuestNewArgs {
    /// What the guest is called; its folder is made here
    #[arg(value_name = "NAME")]
    pub name: String,

    /// What it is
    #[arg(long, value_name = "KIND", value_enum)]
    pub kind: Kind,

    /// What it is written in
    #[arg(long, value_name = "LANGUAGE", value_enum, default_value_t = Lang::Rust)]
    pub lang: Lang,

    /// Where the Rust SDK is, the folder guest-sdk of Wheelhouse's sources [default: where this program was built]
    #[arg(long, value_name = "DIR")]
    pub sdk: Option<PathBuf>,
}

/// The kinds of guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    Game,
    Thinker,
    StepTask,
    Job,
    Service,
}

/// The languages that there are templates in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Lang {
    Rust,
    Js,
    Python,
    C,
}

impl From<Kind> for GuestKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Game => GuestKind::Game,
            Kind::Thinker => GuestKind::Thinker,
            Kind::StepTask => GuestKind::StepTask,
            Kind::Job => GuestKind::Job,
            Kind::Service => GuestKind::Service,
        }
    }
}

/// Makes the project, and says what to do next.
pub fn run(args: &GuestNewArgs) -> anyhow::Result<()> {
    let GuestNewArgs { name, kind, lang, sdk } = args;
    anyhow::ensure!(is_name(name), "{name:?} cannot be a guest's name: use letters, digits, - and _, a letter first");
    let folder = Path::new(name);
    anyhow::ensure!(!folder.exists(), "{name} is there already: choose another name, or move it away");
    let sdk = if *lang == Lang::Rust { sdk_folder(sdk.as_deref())? } else { PathBuf::new() };
    let template = Template { name, kind: (*kind).into(), lang: *lang, sdk: &sdk };
    for (path, text) in template.files() {
        let file = folder.join(path);
        let parent = file.parent().unwrap_or(folder);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&file, text))
            .with_context(|| format!("{} cannot be written", file.display()))?;
    }
    print(&format!(
        "{name}/ is a {} in {}; README.md there says how to build, test and run it\n",
        template.kind,
        template.language()
    ))
}

/// The SDK, by an absolute path: the project may be moved.
fn sdk_folder(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let built_here = || Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("guest-sdk");
    let folder = named.map_or_else(built_here, Path::to_owned);
    anyhow::ensure!(
        folder.join("Cargo.toml").is_file(),
        "the Rust SDK is not at {}: name the folder guest-sdk of Wheelhouse's sources with --sdk DIR",
        folder.display()
    );
    folder.canonicalize().with_context(|| format!("{} cannot be resolved", folder.display()))
}

impl Lang {
    /// What its project file calls it; a project in Rust has none.
    fn in_project_file(self) -> Option<&'static str> {
        match self {
            Lang::Rust => None,
            Lang::Js => Some("js"),
            Lang::Python => Some("python"),
            Lang::C => Some("c"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::guest_build::project::Project;
    use super::*;

    #[test]
    fn every_template_is_a_project_of_its_kind_without_anything_left_to_fill_in() {
        for lang in Lang::value_variants() {
            for kind in Kind::value_variants() {
                let root = tempfile::tempdir().unwrap();
                let template = Template { name: "hare", kind: (*kind).into(), lang: *lang, sdk: Path::new("/sdk") };
                for (path, text) in template.files() {
                    assert!(!text.contains("{{"), "{path} of {kind:?} in {lang:?}: {text}");
                    let file = root.path().join(path);
                    fs::create_dir_all(file.parent().unwrap()).unwrap();
                    fs::write(file, text).unwrap();
                }
                assert!(root.path().join("wit/worlds.wit").is_file());
                if lang.in_project_file().is_some() {
                    assert_eq!(Project::read(root.path()).unwrap().kind, (*kind).into());
                } else {
                    assert!(root.path().join("src/lib.rs").is_file() && !root.path().join(PROJECT_FILE).exists());
                }
            }
        }
    }

    #[test]
    fn the_wit_files_of_a_project_are_all_of_the_contract() {
        let template = Template { name: "hare", kind: GuestKind::Job, lang: Lang::C, sdk: Path::new("") };
        let copied: Vec<String> = template.files().into_iter().map(|(path, _)| path).collect();
        let contract = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("wit")).unwrap();
        for file in contract.flatten() {
            let name = format!("wit/{}", file.file_name().to_string_lossy());
            assert!(copied.contains(&name), "{name} is not copied");
        }
    }
}
