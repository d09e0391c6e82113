//! Guests that other tools made: a core module that wants WASI preview 1, and a component that wants WASI preview 2.
//! Both have WASI, an empty one: what they print goes to the log, and who sleeps is ended.

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wheelhouse_tests::{Client, Config, Guest, Host, World, guest, hostile, tests_folder, wheelhouse, workspace};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The job of `wasi_job.wat` as a core module with a `component-type` section, as a C compiler makes it.
fn module() -> Vec<u8> {
    let text = tests_folder().join("end_to_end/wasi_job.wat");
    let mut module = wat::parse_file(text).expect("it is WebAssembly text");
    let mut contract = Resolve::default();
    let (package, _) = contract.push_dir(workspace().join("wit")).expect("the contract is well-formed");
    let world = contract.select_world(&[package], Some("job")).expect("the contract has jobs");
    embed_component_metadata(&mut module, &contract, world, StringEncoding::UTF8).expect("the section can be added");
    module
}

/// The same as a component, which imports WASI preview 2 through the adapter, as other tool chains make it.
fn component() -> Vec<u8> {
    let encoder = ComponentEncoder::default().module(&module()).expect("the module fits its world");
    let adapted = encoder.adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER);
    adapted.and_then(|mut encoder| encoder.encode()).expect("the module can be encoded")
}

fn running(file: &[u8]) -> (Host, Client) {
    let config = Config::new().guest(hostile("game", "game")).guest(Guest::new("wasi", "job", "wasi.wasm"));
    let world = World::new(&config);
    let file = world.write("wasi.wasm", file);
    let checked = wheelhouse().args(["guest", "check"]).arg(file).output().expect("the program can be started");
    let told = String::from_utf8_lossy(&checked.stdout);
    assert!(told.contains("interfaces of WASI") && told.contains("this host runs it"), "{told}");
    let host = world.serve();
    assert_eq!(guest(&host.status(), "wasi")["state"], "running");
    let client = host.connect();
    (host, client)
}

fn prints(file: &[u8]) {
    let (host, mut client) = running(file);
    client.send("start wasi print");
    assert!(client.receive_until("ended ").contains("finished "));
    host.log().wait_for(&["INFO", "printed through WASI", "guest=\"wasi\""]);
    host.stop();
}

#[test]
fn what_a_module_prints_goes_to_the_log() {
    prints(&module());
}

#[test]
fn what_a_component_prints_goes_to_the_log() {
    prints(&component());
}

fn is_ended_when_it_sleeps(file: &[u8]) {
    let (host, mut client) = running(file);
    let echo = host.echo();
    client.send("start wasi sleep");
    let end = client.receive_until("ended ");
    assert!(end.contains("crashed") && end.contains("cannot sleep or wait on the loop"), "{end}");
    host.wait_for_failure("wasi", "run", "cannot sleep or wait on the loop");
    echo.finish("a guest that sleeps for an hour");
    host.stop();
}

#[test]
fn a_module_that_sleeps_is_ended() {
    is_ended_when_it_sleeps(&module());
}

#[test]
fn a_component_that_sleeps_is_ended() {
    is_ended_when_it_sleeps(&component());
}

#[test]
fn there_are_no_files_arguments_or_environment() {
    let (host, mut client) = running(&module());
    client.send("start wasi files");
    // The errno of the first preopened folder (8 is "bad file descriptor": there is none), and the counts of arguments
    // and environment variables.
    assert!(client.receive_until("ended ").ends_with("finished 800"));
    host.stop();
}
