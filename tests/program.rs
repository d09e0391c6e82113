//! The program under test, `wheelhouse`, as it was built together with these tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// A call of the program, with nothing of the caller's environment that changes what it does.
pub fn wheelhouse() -> Command {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let mut command = Command::new(PROGRAM.get_or_init(find));
    command.env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// Cargo puts the tests of a profile into `deps` beside the programs of the same profile.
fn find() -> PathBuf {
    let tests = std::env::current_exe().expect("a running test has a file");
    let folder = tests.parent().and_then(Path::parent).expect("the file of a test is in target/PROFILE/deps");
    let program = folder.join("wheelhouse");
    assert!(
        program.is_file(),
        "{} is not built: run `just test`, or `cargo build --workspace --bins` before the tests",
        program.display()
    );
    program
}

/// A call of Python with the packages that the tests want, as `setup.sh` has installed them beside the program.
pub fn python() -> Command {
    let target = find().parent().and_then(Path::parent).map(Path::to_owned).expect("the program is in target/PROFILE");
    let program = target.join("python/bin/python");
    assert!(program.is_file(), "{} is not there: run `./setup.sh test`, which installs it", program.display());
    let mut command = Command::new(program);
    command.env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::null());
    command
}

/// Runs a call that must fail: with status 1, nothing on standard output, and exactly one line on standard error, which
/// is answered without the word `error:` in front.
pub fn failure_of(command: &mut Command) -> String {
    let output = command.output().expect("the program can be started");
    let told = String::from_utf8(output.stderr).expect("the program writes text");
    assert_eq!(output.status.code(), Some(1), "the status of a failure; it said: {told}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "a failure writes nothing to standard output");
    let lines: Vec<&str> = told.lines().collect();
    let [line] = lines[..] else { panic!("a failure is one line, not these {}:\n{told}", lines.len()) };
    line.strip_prefix("error: ").unwrap_or_else(|| panic!("a failure begins with `error: `, not {line:?}")).to_owned()
}
