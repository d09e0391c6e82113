//! What a guest's file is: its kind by its exports, what it imports, and whether this host may run it. `guest check`
//! shows it, the loader decides by it.

use std::collections::BTreeSet;
use std::fmt;

use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

use super::encode::{EncodeError, one_line, to_component};
use super::settings::{Grant, GuestKind};

/// The package that the host speaks, without its version.
const PACKAGE: &str = "wheelhouse:sim/";
/// Versions that this host understands.
const VERSIONS: &str = "0.1.";

/// Interfaces that every guest may import.
const FREE: [&str; 3] = ["log", "clock", "random"];
/// Interfaces of the contract that this version of the host does not provide.
const LATER: [&str; 2] = ["services", "calls"];

/// Why a file is not run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error("it does not compile: {0}")]
    Compile(String),
    #[error("it exports {found}, not what a guest exports: implement a world of the package wheelhouse:sim")]
    NoKind { found: String },
    #[error("it is a {found}, and the configuration says kind = \"{configured}\"; mend one of them")]
    WrongKind { found: KindFound, configured: GuestKind },
    #[error("it imports {import}, which it is not granted; add \"{grant}\" to its grants")]
    NotGranted { import: String, grant: Grant },
    #[error("it imports {import}, which a guest of kind {kind} cannot have")]
    NotForKind { import: String, kind: GuestKind },
    #[error("it imports {import}, which this version of the host does not provide")]
    NotYet { import: String },
    #[error("it imports {import}, which no host provides; build it against the package wheelhouse:sim")]
    Unknown { import: String },
    #[error("it does not fit the contract: {0}")]
    Unfit(String),
}

/// A guest's kind as its exports tell it: one that this host runs, or a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindFound {
    Loop(GuestKind),
    Service,
}

impl fmt::Display for KindFound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KindFound::Loop(kind) => kind.fmt(out),
            KindFound::Service => out.write_str("service"),
        }
    }
}

/// A compiled component, and what can be told of it.
pub struct Inspected {
    pub component: Component,
    /// Its kind, if its exports are those of one.
    pub kind: Option<KindFound>,
    /// Names of everything it imports, versions included.
    pub imports: Vec<Import>,
    /// Names of everything it exports.
    pub exports: Vec<String>,
}

/// Something that a component imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The name, version included.
    pub name: String,
    /// Whether there is a function in it; types alone need no grant.
    pub has_functions: bool,
}

/// Compiles a file and looks at what came out.
pub fn inspect(engine: &Engine, bytes: &[u8]) -> Result<Inspected, LoadError> {
    let bytes = to_component(bytes)?;
    let component =
        Component::new(engine, &bytes).map_err(|error| LoadError::Compile(one_line(&format!("{error:#}"))))?;
    let component_type = component.component_type();
    let imports = component_type
        .imports(engine)
        .map(|(name, item)| Import { name: name.to_owned(), has_functions: has_functions(engine, &item.ty) })
        .collect();
    let exports: Vec<String> = component_type.exports(engine).map(|(name, _)| name.to_owned()).collect();
    Ok(Inspected { kind: kind_of(&exports), component, imports, exports })
}

fn has_functions(engine: &Engine, item: &ComponentItem) -> bool {
    match item {
        ComponentItem::ComponentFunc(_) | ComponentItem::CoreFunc(_) => true,
        ComponentItem::ComponentInstance(instance) => {
            instance.exports(engine).any(|(_, item)| has_functions(engine, &item.ty))
        }
        _ => false,
    }
}

fn kind_of(exports: &[String]) -> Option<KindFound> {
    let has = |name: &str| exports.iter().any(|export| export == name);
    if has("on-packet") {
        Some(KindFound::Loop(GuestKind::Game))
    } else if has("think") {
        Some(KindFound::Loop(GuestKind::Thinker))
    } else if has("step") {
        Some(KindFound::Loop(GuestKind::StepTask))
    } else if has("run") {
        Some(KindFound::Loop(GuestKind::Job))
    } else if has("handle") {
        Some(KindFound::Service)
    } else {
        None
    }
}

/// The grants that a guest of that kind can use.
pub fn grants_for(kind: GuestKind) -> &'static [Grant] {
    match kind {
        GuestKind::Game => &Grant::ALL,
        GuestKind::Thinker | GuestKind::StepTask => &[Grant::Entities, Grant::Kv, Grant::Metrics],
        GuestKind::Job => &[Grant::Metrics],
    }
}

/// What one import asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asks {
    /// What every guest has.
    Nothing,
    /// WASI, which is linked but empty.
    Wasi,
    Grant(Grant),
    NotYet,
    Unknown,
}

impl Import {
    /// What the host has to give for it.
    pub fn asks(&self) -> Asks {
        if !self.has_functions {
            return Asks::Nothing;
        }
        if self.name.starts_with("wasi:") {
            return Asks::Wasi;
        }
        let Some((interface, version)) =
            self.name.strip_prefix(PACKAGE).and_then(|interface| interface.split_once('@'))
        else {
            return Asks::Unknown;
        };
        if !version.starts_with(VERSIONS) {
            return Asks::Unknown;
        }
        if FREE.contains(&interface) {
            Asks::Nothing
        } else if LATER.contains(&interface) {
            Asks::NotYet
        } else {
            Grant::named(interface).map_or(Asks::Unknown, Asks::Grant)
        }
    }
}

impl Inspected {
    /// Whether a guest configured as `configured`, with `grants`, may be run from this file; and what to link.
    pub fn admit(&self, configured: GuestKind, grants: &[Grant]) -> Result<Needs, LoadError> {
        let found = self.kind.ok_or_else(|| LoadError::NoKind { found: list(&self.exports) })?;
        if found != KindFound::Loop(configured) {
            return Err(LoadError::WrongKind { found, configured });
        }
        let mut needs = Needs::default();
        for import in &self.imports {
            let name = || import.name.clone();
            match import.asks() {
                Asks::Nothing => {}
                Asks::Wasi => needs.wasi = true,
                Asks::NotYet => return Err(LoadError::NotYet { import: name() }),
                Asks::Unknown => return Err(LoadError::Unknown { import: name() }),
                Asks::Grant(grant) if !grants_for(configured).contains(&grant) => {
                    return Err(LoadError::NotForKind { import: name(), kind: configured });
                }
                Asks::Grant(grant) if !grants.contains(&grant) => {
                    return Err(LoadError::NotGranted { import: name(), grant });
                }
                Asks::Grant(grant) => {
                    needs.grants.insert(grant);
                }
            }
        }
        Ok(needs)
    }
}

/// What has to be linked for a guest, beyond what all have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    pub grants: BTreeSet<Grant>,
    pub wasi: bool,
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "nothing".into() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked_by(name: &str) -> Asks {
        Import { name: name.to_owned(), has_functions: true }.asks()
    }

    #[test]
    fn each_import_asks_for_what_its_interface_needs() {
        for free in FREE {
            assert_eq!(asked_by(&format!("wheelhouse:sim/{free}@0.1.0")), Asks::Nothing);
        }
        for grant in Grant::ALL {
            assert_eq!(asked_by(&format!("wheelhouse:sim/{grant}@0.1.7")), Asks::Grant(grant));
        }
        for later in LATER {
            assert_eq!(asked_by(&format!("wheelhouse:sim/{later}@0.1.0")), Asks::NotYet);
        }
        assert_eq!(asked_by("wasi:io/poll@0.2.6"), Asks::Wasi);
    }

    #[test]
    fn another_version_another_package_or_another_interface_is_unknown() {
        for name in ["wheelhouse:sim/kv@0.2.0", "wheelhouse:sim/kv", "wheelhouse:sim/disk@0.1.0", "other:sim/kv@0.1.0"]
        {
            assert_eq!(asked_by(name), Asks::Unknown, "{name}");
        }
    }

    #[test]
    fn types_alone_need_no_grant() {
        let types = Import { name: "wheelhouse:sim/events@0.1.0".to_owned(), has_functions: false };
        assert_eq!(types.asks(), Asks::Nothing);
    }
}
