//! The contract keeps its promise: components that were built when it was fixed run on the host of today, and the package
//! has only grown since. What may change is in `docs/contract.md`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use wheelhouse_tests::{Config, Guest, World, guest, tests_folder, workspace};
use wit_parser::{Function, Package, PackageId, Resolve, Type, TypeDefKind, TypeId, TypeOwner, WorldItem};

fn fixtures() -> PathBuf {
    tests_folder().join("fixtures/contract-0.1.0")
}

#[test]
fn guests_that_were_built_against_the_first_version_run() {
    let fixture = |name: &str, kind: &str, file: &str| Guest::new(name, kind, fixtures().join(file));
    let config = Config::new()
        .guest(fixture("game", "game", "game.wasm"))
        .guest(fixture("changeling-thinker", "thinker", "thinker.wasm"))
        .guest(fixture("step", "step-task", "step-task.wasm"))
        .guest(fixture("job", "job", "job.wasm"))
        .guest(fixture("plain", "service", "service.wasm").key("start", true))
        .guest(fixture("counter", "service", "bulk-service.wasm").key("start", true))
        .guest(fixture("async", "service", "async-service.wasm").key("start", true));
    let world = World::new(&config);
    let host = world.serve();
    let mut client = host.connect();
    assert_eq!(client.ask("n 1"), "n 1 1");
    assert_eq!(client.ask("start step 3"), "ended 1");
    assert_eq!(client.ask("start job 3"), "ended 1");
    assert_eq!(client.ask("ask 1"), "a 1 1");
    assert_eq!(client.ask("herd 5"), "herd 5");
    client.ask_until_it("report", "NPCs have thought", |report| report.contains(" npcs=5 torn=0 "));
    let status = host.status();
    assert_eq!(status["services"]["running"], 3);
    for name in ["game", "changeling-thinker", "step", "job", "plain", "counter", "async"] {
        assert_eq!(guest(&status, name)["failures"], 0, "{name}");
    }
    host.stop();
}

#[test]
fn the_package_has_only_grown_since_its_first_version() {
    let (first, today) = (parsed(&fixtures().join("wit")), parsed(&workspace().join("wit")));
    assert_eq!(broken_promises(&first, &today), [""; 0]);
}

fn parsed(folder: &Path) -> (Resolve, PackageId) {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(folder).expect("it is WIT");
    (resolve, package)
}

/// What of the first package is not as it was in the second.
fn broken_promises(first: &(Resolve, PackageId), second: &(Resolve, PackageId)) -> Vec<String> {
    let ((old, old_package), (new, new_package)) = (first, second);
    let (old_package, new_package) = (&old.packages[*old_package], &new.packages[*new_package]);
    let mut broken = Vec::new();
    let exported = exported_interfaces(old, old_package);
    for (name, interface) in &old_package.interfaces {
        let Some(now) = new_package.interfaces.get(name) else {
            broken.push(format!("the interface {name} is gone"));
            continue;
        };
        let (interface, now) = (&old.interfaces[*interface], &new.interfaces[*now]);
        for (function, was) in &interface.functions {
            let is = now.functions.get(function).map(|function| signature(new, function));
            if is != Some(signature(old, was)) {
                broken.push(format!("the function {name}.{function} is another: {is:?}"));
            }
        }
        if exported.contains(name.as_str()) && now.functions.len() > interface.functions.len() {
            broken.push(format!("the interface {name} has more functions, which guests that export it have not"));
        }
        for (type_name, was) in &interface.types {
            let is = now.types.get(type_name).map(|id| definition(new, *id));
            if is != Some(definition(old, *was)) {
                broken.push(format!("the type {name}.{type_name} is another: {is:?}"));
            }
        }
    }
    for (name, world) in &old_package.worlds {
        let Some(now) = new_package.worlds.get(name) else {
            broken.push(format!("the world {name} is gone"));
            continue;
        };
        let items = |resolve: &Resolve, items: &wit_parser::IndexMap<wit_parser::WorldKey, WorldItem>| {
            let told = |(key, item)| (resolve.name_world_key(key), world_item(resolve, item));
            items.iter().map(told).collect::<BTreeSet<(String, String)>>()
        };
        let (was, is) = (&old.worlds[*world], &new.worlds[*now]);
        for (gone, _) in items(old, &was.imports).difference(&items(new, &is.imports)) {
            broken.push(format!("the world {name} does not import {gone} as it did"));
        }
        if items(old, &was.exports) != items(new, &is.exports) {
            broken.push(format!("the world {name} has other exports"));
        }
    }
    broken
}

/// The interfaces that guests export.
fn exported_interfaces<'a>(resolve: &'a Resolve, package: &'a Package) -> BTreeSet<&'a str> {
    let worlds = package.worlds.values().map(|world| &resolve.worlds[*world]);
    let exports = worlds.flat_map(|world| world.exports.values());
    let interface = |item: &WorldItem| match item {
        WorldItem::Interface { id, .. } => Some(*id),
        WorldItem::Function(_) | WorldItem::Type { .. } => None,
    };
    exports.filter_map(interface).filter_map(|id| resolve.interfaces[id].name.as_deref()).collect()
}

fn world_item(resolve: &Resolve, item: &WorldItem) -> String {
    match item {
        // What is in it is compared by itself.
        WorldItem::Interface { .. } => "interface".to_owned(),
        WorldItem::Function(function) => signature(resolve, function),
        WorldItem::Type { id, .. } => definition(resolve, *id),
    }
}

fn signature(resolve: &Resolve, function: &Function) -> String {
    let parameters =
        function.params.iter().map(|parameter| format!("{}: {}", parameter.name, shape(resolve, &parameter.ty)));
    let result = function.result.as_ref().map(|result| shape(resolve, result));
    format!("{:?}({}) -> {result:?}", function.kind, parameters.collect::<Vec<_>>().join(", "))
}

/// A type where it is used: named ones by their names, since they are compared by themselves.
fn shape(resolve: &Resolve, of: &Type) -> String {
    let Type::Id(id) = of else { return format!("{of:?}") };
    let found = &resolve.types[*id];
    match (&found.name, &found.owner) {
        (Some(name), TypeOwner::Interface(owner)) => {
            let owner = resolve.interfaces[*owner].name.as_deref().unwrap_or("an interface of a world");
            format!("{owner}.{name}")
        }
        _ => definition(resolve, *id),
    }
}

fn definition(resolve: &Resolve, id: TypeId) -> String {
    let of = |found: &Type| shape(resolve, found);
    let perhaps = |found: &Option<Type>| found.as_ref().map_or_else(|| "_".to_owned(), of);
    let list = |items: Vec<String>| items.join(", ");
    match &resolve.types[id].kind {
        TypeDefKind::Record(record) => {
            let fields = record.fields.iter().map(|field| format!("{}: {}", field.name, of(&field.ty)));
            format!("record {{{}}}", list(fields.collect()))
        }
        TypeDefKind::Variant(variant) => {
            let cases = variant.cases.iter().map(|case| format!("{}({})", case.name, perhaps(&case.ty)));
            format!("variant {{{}}}", list(cases.collect()))
        }
        TypeDefKind::Enum(found) => {
            format!("enum {{{}}}", list(found.cases.iter().map(|case| case.name.clone()).collect()))
        }
        TypeDefKind::Flags(found) => {
            format!("flags {{{}}}", list(found.flags.iter().map(|flag| flag.name.clone()).collect()))
        }
        TypeDefKind::Tuple(tuple) => format!("tuple<{}>", list(tuple.types.iter().map(of).collect())),
        TypeDefKind::List(item) => format!("list<{}>", of(item)),
        TypeDefKind::Option(item) => format!("option<{}>", of(item)),
        TypeDefKind::Result(result) => format!("result<{}, {}>", perhaps(&result.ok), perhaps(&result.err)),
        TypeDefKind::Type(alias) => format!("= {}", of(alias)),
        other => panic!("the contract has none of these yet, and nothing here compares them: {other:?}"),
    }
}

/// A small package with something of each sort.
const FIRST: &str = "package t:t@0.1.0;
    interface places { record entry { x: u32 } }
    interface kv {
        record entry { key: string, size: u32 }
        enum level { low, high }
        flags traits { tame }
        variant outcome { done, failed(string) }
        get: func(key: string) -> option<entry>;
    }
    interface near { use kv.{entry}; find: func() -> entry; }
    interface lifecycle { save: func() -> list<u8>; }
    world game { import kv; import near; export lifecycle; export run: func(level: u32) -> result<_, string>; }";

fn broken_by(before: &str, after: &str) -> Vec<String> {
    let parse = |text: &str| {
        let mut resolve = Resolve::default();
        let package = resolve.push_str("t.wit", text).expect("it is WIT");
        (resolve, package)
    };
    assert!(FIRST.contains(before), "{before}");
    let mut second = FIRST.replacen(before, after, 1);
    if !second.contains("interface near") {
        second = second.replace("import near;", "");
    }
    broken_promises(&parse(FIRST), &parse(&second))
}

#[test]
fn what_breaks_guests_that_there_are_is_found() {
    for (before, after, found) in [
        ("size: u32", "size: u32, age: u32", "the type kv.entry is another"),
        ("key: string, size: u32", "size: u32, key: string", "the type kv.entry is another"),
        ("low, high", "low, middle, high", "the type kv.level is another"),
        ("low, high", "low, high, highest", "the type kv.level is another"),
        ("tame", "tame, shy", "the type kv.traits is another"),
        ("failed(string)", "failed(string), late", "the type kv.outcome is another"),
        ("use kv.{entry}", "use places.{entry}", "the type near.entry is another"),
        ("save: func()", "drop: func(); save: func()", "the interface lifecycle has more functions"),
        ("interface near { use kv.{entry}; find: func() -> entry; }", "", "the interface near is gone"),
        ("get: func(key: string)", "get: func(key: u32)", "the function kv.get is another"),
        ("get: func(key: string)", "get: func(name: string)", "the function kv.get is another"),
        ("-> option<entry>", "-> entry", "the function kv.get is another"),
        ("get: func", "fetch: func", "the function kv.get is another: None"),
        ("import near;", "", "the world game does not import t:t/near@0.1.0 as it did"),
        ("export run", "export stop: func(); export run", "the world game has other exports"),
        ("export run", "export walk", "the world game has other exports"),
        ("result<_, string>", "result<u32, string>", "the world game has other exports"),
        ("world game", "world play", "the world game is gone"),
    ] {
        let broken = broken_by(before, after);
        assert!(broken.iter().any(|told| told.starts_with(found)), "{before} -> {after}: {broken:?}");
    }
}

#[test]
fn what_only_adds_breaks_nobody() {
    for (before, after) in [
        ("get: func", "delete: func(key: string); get: func"),
        ("interface kv {", "interface weather { rain: func() -> bool; } interface kv {"),
        ("import kv;", "import kv; import weather: interface { rain: func() -> bool; }"),
        ("world game", "world other { import kv; } world game"),
        ("enum level", "/// How much. \n enum level"),
    ] {
        assert_eq!(broken_by(before, after), [""; 0], "{before} -> {after}");
    }
}
