//! Makes the bindings from the contract in `wit/`: one file with every import, and one for each kind of guest with
//! what that kind exports. `src/bindings.rs` includes them.
//!
//! `wit_bindgen::generate!` would do for one kind. Several kinds in one crate meet in two places, which are mended here:
//! all export the interface `lifecycle` through a public helper of the same name, and the description of every kind's
//! world would be linked into every guest, so that each imported the types of all. A third mend has nothing to do with
//! that: errors of the contract are shown as sentences, where the generator would show the names of their cases.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use wit_bindgen_core::wit_parser::{Resolve, WorldId, WorldItem};
use wit_bindgen_core::{Files, WorldGenerator};
use wit_bindgen_rust::{Opts, WithOption};

/// The kinds of guest that have bindings, by the name of their world. A plain service exports the world that takes
/// messages in bulk: the world `service` is for other languages.
const KINDS: [&str; 6] = ["game", "thinker", "step-task", "job", "bulk-service", "async-service"];

/// What async exports call in place of the generator's own runtime: the same, but for how a handler begins.
const ASYNC_RUNTIME: &str = "crate::async_service::runtime";

/// The helper that every kind would define.
const SHARED_HELPER: &str = "__export_wheelhouse_sim_lifecycle_0_1_0_cabi";

/// In the name of the section that describes a kind's imports apart from its exports. The export macro describes both
/// once more, and the shared imports are described with the shared types.
const IMPORTS_SECTION: &str = "-with-all-of-its-exports-removed:encoded world";

/// What the generated code puts in front of such a section.
const WASM_ONLY: &str = "#[cfg(target_arch = \"wasm32\")]";

/// How the generated code shows an error, and what does it instead: a trait, so that the compiler names an error for
/// which nobody has written sentences.
const SHOWN_BY_NAME: &str = "write!(f, \"{:?}\", self)";
const SHOWN_AS_SENTENCE: &str = "crate::sentences::Sentence::write(self, f)";

/// Everything that a guest may import, whatever its kind, so that all kinds share one set of types.
const IMPORTS: &str = "
    package wheelhouse:guest;

    world imports {
        import wheelhouse:sim/types@0.1.0;
        import wheelhouse:sim/log@0.1.0;
        import wheelhouse:sim/clock@0.1.0;
        import wheelhouse:sim/random@0.1.0;
        import wheelhouse:sim/timers@0.1.0;
        import wheelhouse:sim/tasks@0.1.0;
        import wheelhouse:sim/events@0.1.0;
        import wheelhouse:sim/entities@0.1.0;
        import wheelhouse:sim/kv@0.1.0;
        import wheelhouse:sim/services@0.1.0;
        import wheelhouse:sim/requests@0.1.0;
        import wheelhouse:sim/groups@0.1.0;
        import wheelhouse:sim/shared@0.1.0;
        import wheelhouse:sim/actor@0.1.0;
        import wheelhouse:sim/calls@0.1.0;
        import wheelhouse:sim/async-calls@0.1.0;
        import wheelhouse:sim/sockets@0.1.0;
        import wheelhouse:sim/bulk@0.1.0;
        import wheelhouse:sim/gate@0.1.0;
        import wheelhouse:sim/metrics@0.1.0;
        import wheelhouse:sim/thinking@0.1.0;
        import wheelhouse:sim/stepping@0.1.0;
    }
";

fn main() -> Result<()> {
    let crate_folder = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let out_folder = PathBuf::from(std::env::var("OUT_DIR")?);
    let contract = crate_folder.join("wit").canonicalize().context("guest-sdk/wit must lead to the contract")?;
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", contract.display());

    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(&contract)?;
    let imports_package = resolve.push_str("imports.wit", IMPORTS)?;

    let imports = resolve.select_world(&[imports_package], Some("imports"))?;
    let source = generate(&resolve, imports, imports_options())?;
    ensure!(source.contains(SHOWN_BY_NAME), "wit-bindgen no longer shows errors by {SHOWN_BY_NAME}");
    let source = source.replace(SHOWN_BY_NAME, SHOWN_AS_SENTENCE);
    std::fs::write(out_folder.join("imports.rs"), source)?;

    for kind in KINDS {
        let world = resolve.select_world(&[package], Some(kind))?;
        write_kind(&resolve, world, kind, &out_folder)?;
    }
    Ok(())
}

/// Writes what one kind exports, with the shared helper under the kind's own name and its imports not described.
fn write_kind(resolve: &Resolve, world: WorldId, kind: &str, out_folder: &Path) -> Result<()> {
    let name = kind.replace('-', "_");
    let source = generate(resolve, world, kind_options(resolve, world, &name))?;
    ensure!(source.contains(SHARED_HELPER), "wit-bindgen no longer names its helper {SHARED_HELPER}");
    let source = source.replace(SHARED_HELPER, &format!("__export_{name}_lifecycle_cabi"));

    let source = without_imports_section(&source).context("wit-bindgen no longer describes imports apart")?;
    std::fs::write(out_folder.join(format!("{name}.rs")), source)?;
    Ok(())
}

/// The source with that section compiled for no target at all.
fn without_imports_section(source: &str) -> Option<String> {
    let before_section = &source[..source.find(IMPORTS_SECTION)?];
    let condition = before_section.rfind(WASM_ONLY)?;
    let mut source = source.to_owned();
    source.replace_range(condition..condition + WASM_ONLY.len(), "#[cfg(any())]");
    Some(source)
}

fn imports_options() -> Opts {
    let derives = ["PartialEq", "Eq", "Hash", "serde::Serialize", "serde::Deserialize"];
    Opts {
        format: true,
        generate_all: true,
        generate_unused_types: true,
        additional_derive_attributes: derives.map(String::from).to_vec(),
        // The set of flags is written by another macro that passes no derives on.
        additional_derive_ignore: vec!["sighting".into()],
        ..Opts::default()
    }
}

/// A kind takes every type from the shared imports, and may be exported from another crate.
fn kind_options(resolve: &Resolve, world: WorldId, name: &str) -> Opts {
    let imported = resolve.worlds[world].imports.iter().filter_map(|(key, item)| match item {
        WorldItem::Interface { id, .. } => {
            let module = resolve.interfaces[*id].name.as_ref()?.replace('-', "_");
            Some((resolve.name_world_key(key), WithOption::Path(format!("crate::bindings::{module}"))))
        }
        WorldItem::Function(_) | WorldItem::Type { .. } => None,
    });
    Opts {
        format: true,
        with: imported.collect(),
        pub_export_macro: true,
        disable_custom_section_link_helpers: true,
        export_macro_name: Some(format!("export_{name}")),
        runtime_path: (name == "async_service").then(|| ASYNC_RUNTIME.into()),
        ..Opts::default()
    }
}

fn generate(resolve: &Resolve, world: WorldId, options: Opts) -> Result<String> {
    let mut files = Files::default();
    options.build().generate(&mut resolve.clone(), world, &mut files)?;
    let (_, source) = files.iter().next().context("wit-bindgen wrote no file")?;
    Ok(String::from_utf8(source.to_vec())?)
}
