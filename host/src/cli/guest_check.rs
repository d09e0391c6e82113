//! `wheelhouse guest check`: explains what a guest is: its kind, what it may do by what it imports, its size and memory,
//! the language it is written in, and whether this host would run it.

mod parts;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use self::parts::Parts;
use super::report;
use crate::clock::MonotonicClock;
use crate::guest::component::{Asks, Facts, Import, facts_of, grants_for};
use crate::guest::encode::to_component;
use crate::guest::{Grant, GuestKind, GuestLimits, GuestSettings, LoadError, LoopEngine, load, read_file};
use crate::service::{ServiceEngine, code};

/// What `wheelhouse guest check` is asked.
#[derive(Args, Debug)]
pub struct GuestCheckArgs {
    /// The guests: components, or core modules with a `component-type` section
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Print one JSON object for each, in a line of its own
    #[arg(long)]
    pub json: bool,
}

/// Looks into the files.
pub fn run(args: GuestCheckArgs) -> anyhow::Result<()> {
    let engines = Engines::new()?;
    let mut wrong = Vec::new();
    for (place, file) in args.files.iter().enumerate() {
        let explained = match explain(file, &engines) {
            Ok(explained) => explained,
            Err(error) => {
                wrong.push(error.to_string());
                continue;
            }
        };
        if args.json {
            report::print(&format!("{}\n", serde_json::to_string(&explained)?))?;
        } else {
            report::print(if place == 0 { "" } else { "\n" })?;
            report::print(&explained.in_words())?;
        }
        if let Some(reason) = &explained.refused {
            wrong.push(format!("{}: {reason}", file.display()));
        }
    }
    if wrong.is_empty() { Ok(()) } else { bail!(wrong.join("\n")) }
}

/// What there is to say of a file.
#[derive(Debug, Serialize)]
struct Explained {
    file: PathBuf,
    name: String,
    kind: Option<GuestKind>,
    /// A service that takes the next message while it waits.
    is_async: bool,
    imports: Vec<Imported>,
    exports: Vec<String>,
    /// What it has to be granted.
    grants: Vec<Grant>,
    #[serde(flatten)]
    parts: Parts,
    /// Why this host would not run it.
    refused: Option<String>,
}

#[derive(Debug, Serialize)]
struct Imported {
    name: String,
    /// The grant that it needs.
    grant: Option<Grant>,
    #[serde(skip)]
    remark: String,
}

fn explain(file: &Path, engines: &Engines) -> anyhow::Result<Explained> {
    let shown = file.display();
    let bytes = read_file(file).map_err(|error| anyhow::anyhow!("{shown} cannot be read: {error}"))?;
    let component = to_component(&bytes).map_err(|error| anyhow::anyhow!("{shown}: {error}"))?;
    let facts = facts_of(&component).map_err(|error| anyhow::anyhow!("{shown}: {error}"))?;
    let refused = match facts.kind {
        None => Some("its exports are those of no kind of guest; implement a world of wheelhouse:sim".to_owned()),
        Some(kind) => {
            // With every grant that its kind can have, what is left is what no configuration can mend.
            let settings = GuestSettings { grants: grants_for(kind), ..GuestSettings::new("checked", kind, file) };
            match engines.load(&settings, &component) {
                Ok(()) => None,
                // A file that is broken has nothing more to say.
                Err(error @ LoadError::Compile(_)) => bail!("{shown}: {error}"),
                Err(error) => Some(format!("this host would not run it: {error}")),
            }
        }
    };
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let parts = Parts::of(&bytes, &component);
    Ok(Explained { is_async: code::has_async_functions(&component), refused, ..told(file, name, facts, parts) })
}

fn told(file: &Path, name: String, facts: Facts, parts: Parts) -> Explained {
    let Facts { kind, imports, exports } = facts;
    let mut grants: Vec<Grant> = imports.iter().filter_map(granted_by).collect();
    grants.sort_unstable();
    grants.dedup();
    let imported =
        |import: Import| Imported { remark: remark(&import, kind), grant: granted_by(&import), name: import.name };
    // Names without a package are types that a world uses.
    let imports = imports.into_iter().filter(|import| import.name.contains(':')).map(imported).collect();
    Explained { file: file.to_owned(), name, kind, is_async: false, imports, exports, grants, parts, refused: None }
}

fn granted_by(import: &Import) -> Option<Grant> {
    match import.asks() {
        Asks::Grant(grant) => Some(grant),
        Asks::Nothing | Asks::Wasi | Asks::Unknown => None,
    }
}

/// What there is to know about an import, to be read after its name.
fn remark(import: &Import, kind: Option<GuestKind>) -> String {
    match (import.asks(), kind) {
        (Asks::Nothing, _) if import.has_functions => "every guest may".to_owned(),
        (Asks::Nothing, _) => "types only".to_owned(),
        (Asks::Wasi, _) => "empty: no files, network or environment".to_owned(),
        (Asks::Grant(_), Some(kind)) if !import.is_for(kind) => format!("not for a {kind}"),
        (Asks::Grant(grant), _) => format!("grant \"{grant}\""),
        (Asks::Unknown, _) => "unknown to this host".to_owned(),
    }
}

impl Explained {
    fn in_words(&self) -> String {
        let mut text = String::new();
        let kind = match self.kind {
            Some(GuestKind::Game) => "a game: it holds the rules, and is the only kind that changes the world",
            Some(GuestKind::Thinker) => "a thinker: it decides for NPCs, many in a call",
            Some(GuestKind::StepTask) => "a step task: work that it cuts in steps itself",
            Some(GuestKind::Job) => "a job: work written straight through, which the host cuts",
            Some(GuestKind::Service) if self.is_async => "a service that takes the next message while it waits",
            Some(GuestKind::Service) if self.exports.iter().any(|export| export == "deliver") => {
                "a service that handles one message after another, and takes many in a call"
            }
            Some(GuestKind::Service) => "a service that handles one message after another",
            None => "of no kind that this host knows",
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{} is {kind}", self.file.display());
        text.push_str(&self.parts.in_words());
        // What a language's runtime wants of WASI is a long list that says little.
        let (wasi, others): (Vec<_>, Vec<_>) = self.imports.iter().partition(|import| import.name.starts_with("wasi:"));
        let _ = writeln!(text, "it imports");
        for Imported { name, remark, .. } in others {
            let _ = writeln!(text, "  {name}  ({remark})");
        }
        if !wasi.is_empty() {
            let _ = writeln!(text, "  {} interfaces of WASI  (empty: no files, network or environment)", wasi.len());
        }
        let _ = writeln!(text, "it exports\n  {}", self.exports.join(", "));
        if let (None, Some(kind)) = (&self.refused, self.kind) {
            let grants: Vec<String> = self.grants.iter().map(|grant| format!("\"{grant}\"")).collect();
            let _ = writeln!(text, "this host runs it, with this in its configuration:\n");
            let _ = writeln!(text, "[[guests]]\nname = {:?}\nkind = \"{kind}\"\nfile = {:?}", self.name, self.file);
            let _ = writeln!(text, "grants = [{}]", grants.join(", "));
        }
        text
    }
}

/// The engines of a host without guests.
struct Engines {
    of_the_loop: LoopEngine,
    services: ServiceEngine,
}

impl Engines {
    fn new() -> anyhow::Result<Self> {
        let (limits, clock) = (GuestLimits::default(), MonotonicClock::shared());
        let of_the_loop = LoopEngine::new(&limits, None, clock.clone())?;
        let services = ServiceEngine::for_guests([], &limits, 1, None, clock)?;
        Ok(Self { of_the_loop, services })
    }

    /// Loads it as a host would.
    fn load(&self, settings: &GuestSettings, component: &[u8]) -> Result<(), LoadError> {
        match settings.kind {
            GuestKind::Service => code::load(&self.services, settings, component).map(drop),
            _ => load(&self.of_the_loop, settings, component).map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(kind: Option<GuestKind>, interfaces: &[&str]) -> Explained {
        let name = |interface: &str| match interface.contains(':') {
            true => interface.to_owned(),
            false => format!("wheelhouse:sim/{interface}@0.1.0"),
        };
        let import = |interface: &&str| Import { name: name(interface), has_functions: *interface != "types" };
        let exports = vec!["init".to_owned(), "handle".to_owned()];
        let facts = Facts { kind, imports: interfaces.iter().map(import).collect(), exports };
        told(Path::new("chat.wasm"), "chat".to_owned(), facts, Parts::default())
    }

    #[test]
    fn each_import_is_told_with_what_it_needs_and_the_entry_grants_all_of_it() {
        let imports =
            ["log", "types", "calls", "actor", "gate", "entities", "wasi:io/poll@0.2.6", "wasi:io/error@0.2.6"];
        let text = explained(Some(GuestKind::Service), &imports).in_words();
        for line in [
            "chat.wasm is a service that handles one message after another",
            "  wheelhouse:sim/log@0.1.0  (every guest may)",
            "  wheelhouse:sim/types@0.1.0  (types only)",
            "  wheelhouse:sim/calls@0.1.0  (grant \"services\")",
            "  wheelhouse:sim/entities@0.1.0  (not for a service)",
            "  2 interfaces of WASI  (empty: no files, network or environment)",
            "  init, handle",
            "[[guests]]",
            "grants = [\"entities\", \"services\", \"gate\"]",
        ] {
            assert!(text.lines().any(|told| told == line), "{line}\n{text}");
        }
    }

    #[test]
    fn the_entry_is_left_out_where_the_host_would_not_run_it() {
        let refused = Explained { refused: Some("no".to_owned()), ..explained(None, &["nobodys"]) };
        let text = refused.in_words();
        assert!(text.contains("is of no kind") && text.contains("(unknown to this host)"), "{text}");
        assert!(!text.contains("[[guests]]"), "{text}");
    }
}
