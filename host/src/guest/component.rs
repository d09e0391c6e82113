//! What a guest's file is: its kind by its exports, what it imports, and whether this host may run it. `guest check`
//! shows it, the loader decides by it.

use std::collections::BTreeSet;

use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;
use wit_component::DecodedWasm;
use wit_parser::WorldItem;

use super::encode::{EncodeError, one_line, to_component};
use super::settings::{Grant, GuestKind};

/// The package that the host speaks, without its version.
const PACKAGE: &str = "wheelhouse:sim/";
/// Versions that this host understands.
const VERSIONS: &str = "0.1.";

/// Interfaces that every guest may import.
const FREE: [&str; 3] = ["log", "clock", "random"];
/// The other interfaces of the contract: each with the grant that it needs and the kinds of guest that can import it.
const GRANTED: [(&str, Grant, &[GuestKind]); 15] = [
    ("timers", Grant::Timers, &[GuestKind::Game]),
    ("tasks", Grant::Tasks, &[GuestKind::Game]),
    ("events", Grant::Events, &[GuestKind::Game]),
    ("entities", Grant::Entities, &[GuestKind::Game, GuestKind::Thinker, GuestKind::StepTask]),
    ("kv", Grant::Kv, &[GuestKind::Game, GuestKind::Thinker, GuestKind::StepTask]),
    ("services", Grant::Services, &[GuestKind::Game, GuestKind::Service]),
    ("groups", Grant::Services, &[GuestKind::Game, GuestKind::Service]),
    ("shared", Grant::Services, &[GuestKind::Game, GuestKind::Service]),
    ("requests", Grant::Services, &[GuestKind::Game]),
    ("actor", Grant::Services, &[GuestKind::Service]),
    ("calls", Grant::Services, &[GuestKind::Service]),
    ("async-calls", Grant::Services, &[GuestKind::Service]),
    ("sockets", Grant::Sockets, &[GuestKind::Service]),
    ("gate", Grant::Gate, &[GuestKind::Game, GuestKind::Service]),
    ("metrics", Grant::Metrics, &GuestKind::ALL),
];

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
    WrongKind { found: GuestKind, configured: GuestKind },
    #[error("it imports {import}, which it is not granted; add \"{grant}\" to its grants")]
    NotGranted { import: String, grant: Grant },
    #[error("it imports {import}, which a guest of kind {kind} cannot have")]
    NotForKind { import: String, kind: GuestKind },
    #[error("it imports {import}, which no host provides; build it against the package wheelhouse:sim")]
    Unknown { import: String },
    #[error("it does not fit the contract: {0}")]
    Unfit(String),
}

/// A compiled component, and what can be told of it.
pub struct Inspected {
    pub component: Component,
    pub facts: Facts,
}

/// What can be told of a component without running it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its kind, if its exports are those of one.
    pub kind: Option<GuestKind>,
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
    Ok(Inspected { component, facts: Facts { kind: kind_of(&exports), imports, exports } })
}

/// What can be told of a file without compiling it: quick also where it is large.
pub fn facts_of(bytes: &[u8]) -> Result<Facts, LoadError> {
    let bytes = to_component(bytes)?;
    let decoded = wit_component::decode(&bytes).map_err(|error| LoadError::Compile(one_line(&format!("{error:#}"))))?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        return Err(LoadError::NoKind { found: "a WIT package".to_owned() });
    };
    let world = &resolve.worlds[world];
    let has_functions = |item: &WorldItem| match item {
        WorldItem::Interface { id, .. } => !resolve.interfaces[*id].functions.is_empty(),
        WorldItem::Function(_) => true,
        WorldItem::Type { .. } => false,
    };
    let import = |(key, item)| Import { name: resolve.name_world_key(key), has_functions: has_functions(item) };
    let exports: Vec<String> = world.exports.keys().map(|key| resolve.name_world_key(key)).collect();
    Ok(Facts { kind: kind_of(&exports), imports: world.imports.iter().map(import).collect(), exports })
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

fn kind_of(exports: &[String]) -> Option<GuestKind> {
    let telling = [
        ("on-packet", GuestKind::Game),
        ("think", GuestKind::Thinker),
        ("step", GuestKind::StepTask),
        ("run", GuestKind::Job),
        ("handle", GuestKind::Service),
    ];
    let found = telling.into_iter().find(|(name, _)| exports.iter().any(|export| export == name));
    found.map(|(_, kind)| kind)
}

/// The grants that a guest of that kind can use.
pub fn grants_for(kind: GuestKind) -> Vec<Grant> {
    let uses = |grant: &Grant| GRANTED.iter().any(|(_, of, kinds)| of == grant && kinds.contains(&kind));
    Grant::ALL.into_iter().filter(uses).collect()
}

/// Whether a guest of that kind, with those grants, may import the functions of an interface of the contract.
pub fn is_open_to(interface: &str, kind: GuestKind, grants: &[Grant]) -> bool {
    FREE.contains(&interface)
        || GRANTED.iter().any(|(name, grant, kinds)| {
            *name == interface && kinds.contains(&kind) && grants.contains(grant)
        })
        // Of those that are in neither list, guests export what they declare.
        || !GRANTED.iter().any(|(name, ..)| *name == interface)
}

/// The grant that an interface of the contract needs, if it needs one.
pub fn grant_of(interface: &str) -> Option<Grant> {
    GRANTED.iter().find(|(name, ..)| *name == interface).map(|(_, grant, _)| *grant)
}

/// What one import asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asks {
    /// What every guest has.
    Nothing,
    /// WASI, which is linked but empty.
    Wasi,
    Grant(Grant),
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
        match self.interface() {
            Some(interface) if FREE.contains(&interface) => Asks::Nothing,
            Some(interface) => grant_of(interface).map_or(Asks::Unknown, Asks::Grant),
            None => Asks::Unknown,
        }
    }

    /// Whether a guest of that kind can have it, with whatever grants.
    pub fn is_for(&self, kind: GuestKind) -> bool {
        let Some(interface) = self.interface().filter(|_| self.has_functions) else { return true };
        GRANTED.iter().find(|(name, ..)| *name == interface).is_none_or(|(_, _, kinds)| kinds.contains(&kind))
    }

    /// Which interface of the contract it is, if this host understands its version.
    fn interface(&self) -> Option<&str> {
        let (interface, version) = self.name.strip_prefix(PACKAGE)?.split_once('@')?;
        version.starts_with(VERSIONS).then_some(interface)
    }
}

impl Facts {
    /// Whether a guest configured as `configured`, with `grants`, may be run from this file; and what to link.
    pub fn admit(&self, configured: GuestKind, grants: &[Grant]) -> Result<Needs, LoadError> {
        let found = self.kind.ok_or_else(|| LoadError::NoKind { found: list(&self.exports) })?;
        if found != configured {
            return Err(LoadError::WrongKind { found, configured });
        }
        let mut needs = Needs::default();
        for import in &self.imports {
            let name = || import.name.clone();
            match import.asks() {
                Asks::Nothing => {}
                Asks::Wasi => needs.wasi = true,
                Asks::Unknown => return Err(LoadError::Unknown { import: name() }),
                Asks::Grant(_) if !import.is_for(configured) => {
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
    use std::path::Path;

    use wit_parser::Resolve;

    use super::*;

    fn import(name: &str) -> Import {
        Import { name: name.to_owned(), has_functions: true }
    }

    fn asked_by(name: &str) -> Asks {
        import(name).asks()
    }

    #[test]
    fn each_import_asks_for_what_its_interface_needs() {
        for free in FREE {
            assert_eq!(asked_by(&format!("wheelhouse:sim/{free}@0.1.0")), Asks::Nothing);
        }
        for grant in Grant::ALL {
            assert_eq!(asked_by(&format!("wheelhouse:sim/{grant}@0.1.7")), Asks::Grant(grant));
        }
        for part in ["requests", "groups", "shared", "actor", "calls", "async-calls"] {
            assert_eq!(asked_by(&format!("wheelhouse:sim/{part}@0.1.0")), Asks::Grant(Grant::Services));
        }
        assert_eq!(asked_by("wasi:io/poll@0.2.6"), Asks::Wasi);
    }

    #[test]
    fn the_rules_name_every_interface_that_a_world_of_the_contract_imports() {
        let contract = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("wit");
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(contract).unwrap();
        let kinds = GuestKind::ALL.map(|kind| (kind.as_str(), kind)).into_iter();
        for (world, kind) in kinds.chain(["bulk-service", "async-service"].map(|world| (world, GuestKind::Service))) {
            let world = &resolve.worlds[resolve.packages[package].worlds[world]];
            for (key, item) in &world.imports {
                // The other items are the types that a world uses.
                let WorldItem::Interface { id, .. } = item else { continue };
                let has_functions = !resolve.interfaces[*id].functions.is_empty();
                let found = Import { name: resolve.name_world_key(key), has_functions };
                assert!(found.asks() != Asks::Unknown && found.is_for(kind), "{kind}: {}", found.name);
            }
        }
    }

    #[test]
    fn a_kind_is_granted_only_what_one_of_its_imports_needs() {
        let words = |kind| grants_for(kind).iter().map(Grant::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(words(GuestKind::Game), "timers tasks events entities kv services gate metrics");
        assert_eq!(words(GuestKind::Thinker), "entities kv metrics");
        assert_eq!(words(GuestKind::StepTask), "entities kv metrics");
        assert_eq!(words(GuestKind::Job), "metrics");
        assert_eq!(words(GuestKind::Service), "services sockets gate metrics");
    }

    fn admitted(name: &str, kind: GuestKind, grants: &[Grant]) -> Result<Needs, String> {
        let facts = Facts { kind: Some(kind), imports: vec![import(name)], exports: Vec::new() };
        facts.admit(kind, grants).map_err(|error| error.to_string())
    }

    #[test]
    fn an_interface_that_a_kind_cannot_have_is_refused_whatever_it_is_granted() {
        for (kind, interfaces) in [
            (GuestKind::Game, ["actor", "calls", "async-calls", "sockets"].as_slice()),
            (GuestKind::Service, &["requests", "timers", "tasks", "events", "entities", "kv"]),
            (GuestKind::Thinker, &["services", "groups", "gate"]),
        ] {
            for interface in interfaces {
                let name = format!("wheelhouse:sim/{interface}@0.1.0");
                let refused = admitted(&name, kind, &Grant::ALL).unwrap_err();
                assert_eq!(refused, format!("it imports {name}, which a guest of kind {kind} cannot have"));
            }
        }
    }

    #[test]
    fn one_grant_is_needed_for_all_interfaces_of_services_and_named_where_it_is_missing() {
        let name = "wheelhouse:sim/async-calls@0.1.0";
        let refused = admitted(name, GuestKind::Service, &[Grant::Gate]).unwrap_err();
        assert_eq!(refused, format!("it imports {name}, which it is not granted; add \"services\" to its grants"));
        let needs = admitted(name, GuestKind::Service, &[Grant::Services]).unwrap();
        assert_eq!(needs.grants, BTreeSet::from([Grant::Services]));
    }

    #[test]
    fn a_kind_is_told_by_the_export_that_only_it_has() {
        let kind = |exports: &[&str]| kind_of(&exports.iter().map(|export| (*export).to_owned()).collect::<Vec<_>>());
        assert_eq!(kind(&["init", "handle"]), Some(GuestKind::Service));
        assert_eq!(kind(&["init", "handle", "deliver"]), Some(GuestKind::Service));
        assert_eq!(kind(&["init", "on-packet", "on-message"]), Some(GuestKind::Game));
        assert_eq!(kind(&["init"]), None);
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
