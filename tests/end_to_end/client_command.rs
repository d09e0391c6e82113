//! `wheelhouse client`: lines to frames and frames to lines, by every door, in a pipe.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use wheelhouse_tests::{World, failure_of, wheelhouse};

use crate::lobby::lobby;
use crate::strangers::world;

/// The command, in a pipe.
fn client(address: &str, options: &[&str]) -> Command {
    let mut command = wheelhouse();
    command.arg("client").arg(address).args(options);
    command
}

fn piped(command: &mut Command, input: &str) -> Output {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = piped.spawn().expect("the program can be started");
    process.stdin.take().expect("it was asked for").write_all(input.as_bytes()).expect("the program reads");
    process.wait_with_output().expect("the program can be waited for")
}

fn ca_of(world: &World) -> String {
    world.folder().join("ca.crt").display().to_string()
}

#[test]
fn lines_go_as_frames_and_frames_come_as_lines_by_every_door() {
    for tls in [false, true] {
        let (world, _) = world(tls);
        let host = world.serve();
        let ca = ca_of(&world);
        let trust: &[&str] = if tls { &["--tls", "--tls-ca", &ca] } else { &[] };
        for (address, websocket) in [(host.gate(), None), (host.websocket(), Some("--websocket"))] {
            let options = [trust, websocket.as_slice()].concat();
            let output = piped(&mut client(&address.to_string(), &options), "ping one\r\nping two\nping \u{1b}[2J");
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{options:?}");
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                "pong one\npong two\npong \u{FFFD}[2J\n",
                "by {options:?}"
            );
            assert!(output.status.success());
        }
        host.wait_until("all have left in good order", |status| status["connections"]["closed_by"]["client_left"] == 2);
        host.stop();
    }
}

#[test]
fn a_gate_that_closes_after_the_last_line_has_done_what_was_asked() {
    let host = lobby(false);
    let address = host.gate().to_string();
    let output = piped(&mut client(&address, &[]), "ECHO one\nQUIT\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "one\n");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
    host.stop();
}

#[test]
fn a_gate_that_closes_while_there_may_be_more_to_say_is_an_error() {
    let host = lobby(false);
    let address = host.gate().to_string();
    let mut command = client(&address, &["--linger-ms", "50"]);
    let mut process = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program can be started");
    let mut input = process.stdin.take().expect("it was asked for");
    input.write_all(b"QUIT\n").expect("the program reads");
    let output = process.wait_with_output().expect("the program can be waited for");
    assert_eq!(String::from_utf8_lossy(&output.stderr), format!("error: {address} closed the connection\n"));
    assert_eq!(output.status.code(), Some(1));
    // Only now does the input end.
    drop(input);
    host.stop();
}

#[test]
fn tls_trusts_whom_it_is_told_to_and_nobody_else() {
    let (own, _) = world(true);
    let (other, _) = world(true);
    let host = own.serve();
    let address = host.gate().to_string();
    let line = failure_of(&mut client(&address, &["--tls-ca", &ca_of(&other)]));
    assert!(line.starts_with(&format!("cannot connect to {address}")) && line.contains("certificate"), "{line}");
    let output = piped(&mut client(&address, &["--tls-insecure"]), "ping anyone\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "pong anyone\n");
    let wrong_usage = client(&address, &["--tls"]).output().expect("the program can be started");
    assert_eq!(wrong_usage.status.code(), Some(2), "--tls alone does not say whom to trust");
    host.stop();
}

#[test]
fn what_goes_wrong_is_one_line() {
    let (world, _) = world(false);
    let host = world.serve();
    let (gate, websocket) = (host.gate().to_string(), host.websocket().to_string());
    let line = failure_of(&mut client(&gate, &["--tls-ca", "nowhere.crt"]));
    assert!(line.starts_with("--tls-ca: cannot read nowhere.crt: "), "{line}");
    let line = failure_of(&mut client(&gate, &["--tls-insecure"]));
    assert!(line.starts_with(&format!("cannot connect to {gate}")), "{line}");

    let output = piped(&mut client(&websocket, &["--websocket"]), &"ping me\n".repeat(5000));
    assert_eq!(output.status.code(), Some(1), "a flood is closed by the gate");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(told.lines().count(), 1, "{told}");

    host.stop();
    let line = failure_of(&mut client(&gate, &[]));
    assert!(line.starts_with(&format!("cannot connect to {gate}")) && line.contains("refused"), "{line}");
}
