//! From `guest new` to a swap in a running world, for every kind in every language there is a template for: made, built,
//! its own test run, checked, run and swapped.
//!
//! JavaScript and Python take long to build and to load, so that only one kind of each is done unless
//! `WHEELHOUSE_ALL_LANGUAGES` is set, as `just languages` does.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use wheelhouse_tests::{
    Client, Config, Guest, Host, World, failure_of, guest, helpful, hostile, wheelhouse, workspace,
};

const KINDS: [&str; 5] = ["game", "thinker", "step-task", "job", "service"];

/// Where the tools of other languages are, which setup.sh installs.
fn tools() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from)
}

/// The program, with the tools of other languages at hand.
fn with_tools(world: &World) -> Command {
    let mut command = wheelhouse();
    let paths = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>();
    let path = env::join_paths([tools().join("python/bin")].into_iter().chain(paths)).expect("no path has a colon");
    command.env("PATH", path).env("WHEELHOUSE_NODE_MODULES", tools().join("node")).current_dir(world.folder());
    // Guests in Rust share their dependencies.
    command.env("CARGO_TARGET_DIR", tools().join("languages"));
    command
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it can be started");
    let (told, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?} failed: {told}{error}");
    told.into_owned()
}

/// Makes and builds a guest and runs its own test; its component.
fn made(world: &World, language: &str, kind: &str) -> PathBuf {
    let name = format!("{language}-{kind}");
    run(with_tools(world).args(["guest", "new", &name, "--kind", kind, "--lang", language]));
    run(with_tools(world).args(["guest", "build", &name]));
    let folder = world.folder().join(&name);
    run(own_test(language).current_dir(&folder).env("CARGO_TARGET_DIR", tools().join("languages")));
    let component = folder.join(format!("build/{name}.wasm"));
    let told = run(wheelhouse().args(["guest", "check"]).arg(&component));
    let written_in = match language {
        "rust" => "Rust",
        "js" => "JavaScript",
        "python" => "Python",
        _ => "C",
    };
    assert!(told.contains(&format!("it is written in {written_in} ")), "{told}");
    assert!(told.contains(&format!("kind = \"{kind}\"")), "{told}");
    component
}

/// The test that comes with the template, as its README says to run it.
fn own_test(language: &str) -> Command {
    let words: &[&str] = match language {
        "rust" => &["cargo", "test", "--quiet"],
        "js" => &["node", "--test"],
        "python" => &["python3", "-m", "unittest"],
        _ => &["make", "test"],
    };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

/// Changes a text of the guest's source, and builds it again.
fn changed(world: &World, language: &str, kind: &str) -> PathBuf {
    let name = format!("{language}-{kind}");
    let (file, before, after) = match (language, kind) {
        ("rust", "game") => ("src/lib.rs", "you are visitor {}\", self", "you are guest {}\", self"),
        ("rust", "thinker") => ("src/lib.rs", "self.thoughts % 2", "self.thoughts % 4"),
        ("rust", "service") => ("src/lib.rs", "Ok(self.sum.to_string())", "Ok(format!(\"sum {}\", self.sum))"),
        ("rust", _) => ("src/lib.rs", "|number| is_prime(*number)", "|number| !is_prime(*number)"),
        ("js", "game") => ("logic.js", "`you are visitor", "`you are guest"),
        ("js", "thinker") => ("logic.js", "thoughts % 2", "thoughts % 4"),
        ("js", "service") => ("logic.js", "return String(state.sum)", "return `sum ${state.sum}`"),
        ("js", _) => ("logic.js", "if (isPrime(", "if (!isPrime("),
        ("python", "game") => ("logic.py", "f\"you are visitor", "f\"you are guest"),
        ("python", "thinker") => ("logic.py", "% 2 == 0", "% 4 == 0"),
        ("python", "service") => ("logic.py", "return str(state[\"sum\"])", "return f\"sum {state['sum']}\""),
        ("python", _) => ("logic.py", "(is_prime(number) for", "(not is_prime(number) for"),
        (_, "game") => ("src/logic.c", "\"you are visitor", "\"you are guest"),
        (_, "thinker") => ("src/logic.c", "thoughts % 2", "thoughts % 4"),
        (_, "service") => ("src/logic.c", "\"%lld\"", "\"sum %lld\""),
        (_, _) => ("src/logic.c", "+= is_prime(", "+= !is_prime("),
    };
    let file = world.folder().join(&name).join(file);
    let text = fs::read_to_string(&file).expect("the template has it");
    // A job in Python and one in other languages say it in other words.
    let (before, after) =
        if text.contains(before) { (before, after) } else { ("is_prime(number)", "not is_prime(number)") };
    assert!(text.contains(before), "{before} is not in {}", file.display());
    fs::write(&file, text.replacen(before, after, 1)).expect("it can be written");
    run(with_tools(world).args(["guest", "build", &name]));
    world.folder().join(format!("{name}/build/{name}.wasm"))
}

fn from_new_to_swapped(language: &str, kind: &str) {
    let world = World::new(&Config::new());
    let component = made(&world, language, kind);
    let running = world.folder().join("running.wasm");
    fs::copy(&component, &running).expect("it is there");
    let ours = Guest::new("ours", kind, &running);
    // Starts and calls of languages that are interpreted take their time on a busy machine.
    let config = Config::new().patient();
    let config = match kind {
        "game" => config.guest(ours),
        "service" => config.guest(helpful("changeling-game", "game")).guest(ours.named("counter").key("start", true)),
        _ => config.guest(hostile("game", "game")).guest(ours),
    };
    world.configure(&config);
    let host = world.serve();
    let mut client = host.connect();
    let name = if kind == "service" { "counter" } else { "ours" };
    // What is asked, and what is answered by the first version and by the second.
    let (packet, first, second) = match kind {
        "game" => ("hello", "you are visitor 1", "you are guest 2"),
        "step-task" | "job" => ("start ours 100", "finished 25", "finished 73"),
        "service" => ("ask 1", "a 1 0", "a 1 sum 0"),
        _ => ("spawn ours 2 5", "", ""),
    };
    let ask = |client: &mut Client, expected: &str| match kind {
        "thinker" => {}
        "step-task" | "job" => {
            let ended = client.ask_for(packet, "ended ");
            assert!(ended.ends_with(expected), "{ended}");
        }
        _ => assert_eq!(client.ask(packet), expected),
    };
    if kind == "thinker" {
        client.ask(packet);
    }
    ask(&mut client, first);
    let thinks = |host: &Host| {
        let before = host.status()["npcs"]["thinks"].as_u64();
        host.wait_until("they think", |status| status["npcs"]["thinks"].as_u64() > before.map(|thinks| thinks + 10));
    };
    if kind == "thinker" {
        thinks(&host);
    }
    let component = changed(&world, language, kind);
    let swapped = host.command(&["swap", name, component.to_str().expect("the folder is text")]);
    println!("{language} {kind}: {swapped}");
    assert_eq!(swapped["generation"], 2, "{swapped}");
    ask(&mut client, second);
    match kind {
        "thinker" => thinks(&host),
        "game" => be_rude(&host, &mut client),
        _ => {}
    }
    assert_eq!(guest(&host.status(), name)["failures"], 0);
    host.stop();
}

/// What clients do who mean no good, or are just gone: a game that failed at it would soon be disabled.
fn be_rude(host: &Host, client: &mut Client) {
    for _ in 0..12 {
        client.send(b"\xff\xfe is no text");
        host.connect().send("hello");
    }
    let answer = client.ask("hello");
    assert!(answer.starts_with("you are guest "), "{answer}");
}

fn are_all_wanted() -> bool {
    env::var_os("WHEELHOUSE_ALL_LANGUAGES").is_some()
}

#[test]
fn every_kind_of_guest_in_rust_goes_from_its_template_to_a_swap() {
    KINDS.iter().for_each(|kind| from_new_to_swapped("rust", kind));
}

#[test]
fn every_kind_of_guest_in_c_goes_from_its_template_to_a_swap() {
    let kinds = if are_all_wanted() { &KINDS[..] } else { &["step-task"] };
    kinds.iter().for_each(|kind| from_new_to_swapped("c", kind));
}

#[test]
fn a_guest_in_javascript_goes_from_its_template_to_a_swap() {
    let kinds = if are_all_wanted() { &KINDS[..] } else { &["thinker"] };
    kinds.iter().for_each(|kind| from_new_to_swapped("js", kind));
}

#[test]
fn a_guest_in_python_goes_from_its_template_to_a_swap() {
    let kinds = if are_all_wanted() { &KINDS[..] } else { &["game"] };
    kinds.iter().for_each(|kind| from_new_to_swapped("python", kind));
}

#[test]
fn what_is_missing_or_wrong_is_told_in_one_line_with_the_mend() {
    let world = World::new(&Config::new());
    let no_tools = |arguments: &[&str], path: &Path| {
        let mut command = wheelhouse();
        command.args(arguments).current_dir(world.folder()).env("PATH", path).env_remove("WHEELHOUSE_NODE_MODULES");
        failure_of(&mut command)
    };
    let nothing = world.folder().join("no-programs");
    for (language, told) in [
        ("js", "node is not installed, or not on PATH: install Node.js"),
        (
            "python",
            "componentize-py is not installed: run `python3 -m venv .venv && .venv/bin/pip install componentize-py`",
        ),
        ("c", "no C compiler for WebAssembly is here: run `python3 -m pip install ziglang`"),
    ] {
        run(wheelhouse()
            .args(["guest", "new", language, "--kind", "job", "--lang", language])
            .current_dir(world.folder()));
        let error = no_tools(&["guest", "build", language], &nothing);
        assert!(error.contains(told) && error.lines().count() == 1, "{error}");
    }
    let again = no_tools(&["guest", "new", "js", "--kind", "job"], &nothing);
    assert_eq!(again, "js is there already: choose another name, or move it away");
    let odd = no_tools(&["guest", "new", "../up", "--kind", "job"], &nothing);
    assert!(odd.contains("\"../up\" cannot be a guest's name"), "{odd}");
}
