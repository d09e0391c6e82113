//! `wheelhouse guest check`: says what a guest is, and whether this host would run it.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use super::report;
use crate::clock::MonotonicClock;
use crate::guest::component::{Asks, Import, Inspected, grants_for, inspect};
use crate::guest::encode::to_component;
use crate::guest::{GuestKind, GuestLimits, GuestSettings, LoadError, LoopEngine, load, read_file};
use crate::service::{ServiceEngine, code};

/// What `wheelhouse guest check` is asked.
#[derive(Args, Debug)]
pub struct GuestCheckArgs {
    /// The guest: a component, or a core module with a `component-type` section
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Looks into the file.
pub fn run(args: GuestCheckArgs) -> anyhow::Result<()> {
    let file = args.file.display();
    let bytes = read_file(&args.file).map_err(|error| anyhow::anyhow!("{file} cannot be read: {error}"))?;
    let engines = Engines::new()?;
    let component = to_component(&bytes).map_err(|error| anyhow::anyhow!("{file}: {error}"))?;
    let is_async = code::has_async_functions(&component);
    let engine = if is_async { engines.services.concurrent() } else { engines.of_the_loop.wasmtime() };
    let inspected = inspect(engine, &component).map_err(|error| anyhow::anyhow!("{file}: {error}"))?;
    report::print(&describe(&inspected, is_async, bytes.len()))?;
    let Some(kind) = inspected.kind else {
        bail!("{file}: its exports are those of no kind of guest; implement a world of wheelhouse:sim");
    };
    // With every grant that its kind can have, what is left is what no configuration can mend.
    let settings = GuestSettings { grants: grants_for(kind), ..GuestSettings::new("checked", kind, &args.file) };
    if let Err(error) = engines.load(&settings, &component) {
        bail!("{file}: this host would not run it: {error}");
    }
    report::print("this host runs it\n")
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

fn describe(inspected: &Inspected, is_async: bool, length: usize) -> String {
    let mut text = String::new();
    let kind = match inspected.kind {
        Some(GuestKind::Service) if is_async => "service (async: it takes the next message while it waits)".to_owned(),
        Some(GuestKind::Service) => "service (one message after another)".to_owned(),
        Some(kind) => kind.to_string(),
        None => "none".to_owned(),
    };
    // Writing to a string does not fail.
    let _ = writeln!(text, "kind     {kind}");
    let _ = writeln!(text, "size     {} KiB", length.div_ceil(1024));
    for import in &inspected.imports {
        let _ = writeln!(text, "imports  {}{}", import.name, needs(import, inspected.kind));
    }
    for export in &inspected.exports {
        let _ = writeln!(text, "exports  {export}");
    }
    text
}

/// What an import needs, to be read after its name.
fn needs(import: &Import, kind: Option<GuestKind>) -> String {
    match (import.asks(), kind) {
        (Asks::Nothing, _) => String::new(),
        (Asks::Wasi, _) => "   (empty: no files, network or environment)".to_owned(),
        (Asks::Grant(_), Some(kind)) if !import.is_for(kind) => format!("   (not for a {kind})"),
        (Asks::Grant(grant), _) => format!("   (grant \"{grant}\")"),
        (Asks::Unknown, _) => "   (unknown)".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use wasmtime::component::Component;

    use super::*;

    const EMPTY_COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

    fn inspected(kind: Option<GuestKind>, interfaces: &[&str]) -> Inspected {
        let import = |interface: &&str| Import {
            name: if interface.contains(':') {
                (*interface).to_owned()
            } else {
                format!("wheelhouse:sim/{interface}@0.1.0")
            },
            has_functions: *interface != "types",
        };
        Inspected {
            component: Component::new(&wasmtime::Engine::default(), EMPTY_COMPONENT).unwrap(),
            kind,
            imports: interfaces.iter().map(import).collect(),
            exports: vec!["init".to_owned(), "handle".to_owned()],
        }
    }

    #[test]
    fn a_service_is_shown_with_the_grant_that_each_import_needs() {
        let interfaces = ["types", "log", "services", "actor", "async-calls", "sockets", "kv", "wasi:io/poll@0.2.6"];
        let expected = "\
kind     service (async: it takes the next message while it waits)
size     2 KiB
imports  wheelhouse:sim/types@0.1.0
imports  wheelhouse:sim/log@0.1.0
imports  wheelhouse:sim/services@0.1.0   (grant \"services\")
imports  wheelhouse:sim/actor@0.1.0   (grant \"services\")
imports  wheelhouse:sim/async-calls@0.1.0   (grant \"services\")
imports  wheelhouse:sim/sockets@0.1.0   (grant \"sockets\")
imports  wheelhouse:sim/kv@0.1.0   (not for a service)
imports  wasi:io/poll@0.2.6   (empty: no files, network or environment)
exports  init
exports  handle
";
        assert_eq!(describe(&inspected(Some(GuestKind::Service), &interfaces), true, 1025), expected);
    }

    #[test]
    fn the_other_kinds_are_shown_by_their_names() {
        for (kind, shown) in [
            (Some(GuestKind::Service), "kind     service (one message after another)\n"),
            (Some(GuestKind::Game), "kind     game\n"),
            (None, "kind     none\n"),
        ] {
            assert!(describe(&inspected(kind, &[]), false, 1).starts_with(shown), "{kind:?}");
        }
    }

    #[test]
    fn a_file_of_no_kind_is_refused_by_the_engine_of_the_kind_it_should_be() {
        let engines = Engines::new().unwrap();
        for kind in [GuestKind::Service, GuestKind::Job] {
            let refused = engines.load(&GuestSettings::new("checked", kind, "a.wasm"), EMPTY_COMPONENT).unwrap_err();
            assert!(matches!(refused, LoadError::NoKind { .. }), "{refused}");
        }
    }
}
