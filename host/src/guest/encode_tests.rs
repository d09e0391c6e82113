use std::borrow::Cow;

use wit_component::StringEncoding;
use wit_parser::Resolve;

use super::{EncodeError, to_component};

const WORLD: &str = "package test:guest; world guest { import note: func(n: u32); export run: func() -> u32; }";

/// One section of a core module.
fn section(id: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    assert!(length < 128, "one byte of LEB128");
    [&[id, length], content].concat()
}

/// A name as Wasm writes it.
fn name(text: &str) -> Vec<u8> {
    [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
}

/// A core module that imports `note` (and a function of WASI preview 1 if asked), and exports `run`, which calls it
/// (unless told not to), and a memory.
struct CoreModule {
    exports_run: bool,
    imports_preview1: bool,
    has_component_type: bool,
}

const PLAIN: CoreModule = CoreModule { exports_run: true, imports_preview1: false, has_component_type: true };

impl CoreModule {
    fn bytes(&self) -> Vec<u8> {
        // Types: 0 (i32), 1 () -> i32, 2 (i32 i32 i32 i32) -> i32.
        let types = [3, 0x60, 1, 0x7f, 0, 0x60, 0, 1, 0x7f, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f];
        let mut imports = [name("$root"), name("note"), vec![0, 0]].concat();
        let mut import_count = 1;
        if self.imports_preview1 {
            imports.extend([name("wasi_snapshot_preview1"), name("sched_yield"), vec![0, 1]].concat());
            import_count += 1;
        }
        let (run, realloc) = (import_count, import_count + 1);
        let mut exports = [name("memory"), vec![2, 0], name("cabi_realloc"), vec![0, realloc]].concat();
        let mut export_count = 2;
        if self.exports_run {
            exports.extend([name("run"), vec![0, run]].concat());
            export_count += 1;
        }
        // run: i32.const 1, call note, i32.const 7. realloc: unreachable.
        let code = [2, 8, 0, 0x41, 1, 0x10, 0, 0x41, 7, 0x0b, 3, 0, 0x00, 0x0b];
        let mut module = [
            b"\0asm\x01\0\0\0".to_vec(),
            section(1, &types),
            section(2, &[vec![import_count], imports].concat()),
            section(3, &[2, 1, 2]),
            section(5, &[1, 0, 1]),
            section(7, &[vec![export_count], exports].concat()),
            section(10, &code),
        ]
        .concat();
        if self.has_component_type {
            let mut resolve = Resolve::default();
            let package = resolve.push_str("guest.wit", WORLD).unwrap();
            let world = resolve.select_world(&[package], None).unwrap();
            wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
        }
        module
    }
}

fn is_component(bytes: &[u8]) -> bool {
    wasmparser::Parser::is_component(bytes)
}

#[test]
fn a_core_module_with_component_type_becomes_a_component() {
    let component = to_component(&PLAIN.bytes()).unwrap().into_owned();
    assert!(is_component(&component));
    wasmparser::Validator::new().validate_all(&component).unwrap();
}

#[test]
fn a_component_is_taken_as_it_is() {
    let component = to_component(&PLAIN.bytes()).unwrap().into_owned();
    assert!(matches!(to_component(&component), Ok(Cow::Borrowed(same)) if same == component));
}

#[test]
fn a_module_that_wants_preview1_gets_the_adapter() {
    let module = CoreModule { imports_preview1: true, ..PLAIN }.bytes();
    let component = to_component(&module).unwrap().into_owned();
    assert!(is_component(&component));
    assert!(wit_component::decode(&component).is_ok());
}

#[test]
fn a_core_module_without_component_type_is_refused() {
    assert!(matches!(
        to_component(&CoreModule { has_component_type: false, ..PLAIN }.bytes()),
        Err(EncodeError::NoComponentType)
    ));
}

#[test]
fn a_core_module_that_lacks_an_export_of_its_world_is_refused_by_its_name() {
    let error = to_component(&CoreModule { exports_run: false, ..PLAIN }.bytes()).unwrap_err();
    assert!(matches!(&error, EncodeError::Unfit { message } if message.contains("run")), "{error}");
}

#[test]
fn an_empty_file_is_told_apart() {
    assert!(matches!(to_component(b""), Err(EncodeError::Empty)));
}

#[test]
fn random_bytes_are_not_wasm() {
    assert!(matches!(to_component(b"\x7fELF\x02\x01\x01 and so on"), Err(EncodeError::NotWasm)));
    assert!(matches!(to_component(b"(module)"), Err(EncodeError::NotWasm)));
}

#[test]
fn a_file_cut_off_anywhere_is_an_error_and_never_a_panic() {
    for whole in [PLAIN.bytes(), to_component(&PLAIN.bytes()).unwrap().into_owned()] {
        let mut cut_off = 0;
        for length in 1..whole.len() {
            // A cut between two sections leaves a shorter file that is Wasm still; what it lacks is found later.
            match to_component(&whole[..length]) {
                Err(EncodeError::Truncated { length: reported }) if reported == length => cut_off += 1,
                Err(EncodeError::NoComponentType | EncodeError::Unfit { .. }) | Ok(_) => {}
                Err(other) => panic!("cut at {length}: {other}"),
            }
        }
        assert!(cut_off > whole.len() * 9 / 10, "{cut_off} of {}", whole.len());
    }
}

#[test]
fn bytes_that_only_begin_as_wasm_are_broken_at_a_place() {
    let error = to_component(b"\0asm\x01\0\0\0\xff\xff\xff\xff\xff\xff").unwrap_err();
    assert!(matches!(error, EncodeError::Broken { offset: 8.., .. }), "{error}");
}

#[test]
fn every_error_is_one_line() {
    let errors = [
        to_component(b"").unwrap_err(),
        to_component(b"nonsense").unwrap_err(),
        to_component(b"\0asm").unwrap_err(),
        to_component(&CoreModule { has_component_type: false, ..PLAIN }.bytes()).unwrap_err(),
        to_component(&CoreModule { exports_run: false, ..PLAIN }.bytes()).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
}
