//! Clients that nobody here has written: Python's sockets and TLS, and its package `websockets`. The scripts are in
//! `tests/strangers`; each says which of its steps went well, and these tests hold the host's figures against them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use wheelhouse_tests::{Config, Host, World, hostile, python, tests_folder};

/// A host with both ports and, for `tls`, a certificate from an authority whose own is in the file `ca.crt`.
pub fn world(tls: bool) -> (World, Config) {
    let config = Config::new().set("gate.websocket_listen", "\"127.0.0.1:0\"").patient().guest(hostile("game", "game"));
    if !tls {
        return (World::new(&config), config);
    }
    // Relative, as an operator would write them.
    let config = config.set("gate.tls_certificate", "\"gate.crt\"").set("gate.tls_key", "\"gate.key\"");
    let world = World::new(&config);
    let mut of_authority = CertificateParams::new([]).expect("it has no names");
    // A certificate with its issuer's name would pass for one that vouches for itself.
    of_authority.distinguished_name.push(DnType::CommonName, "an authority for tests");
    of_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    of_authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().expect("there is a source of random numbers");
    let authority = CertifiedIssuer::self_signed(of_authority, key).expect("the parameters go together");
    let mut of_gate = CertificateParams::new(["127.0.0.1".to_owned()]).expect("it is an address");
    of_gate.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate().expect("there is a source of random numbers");
    let certificate = of_gate.signed_by(&key, &authority).expect("the parameters go together");
    world.write("ca.crt", authority.pem());
    world.write("gate.crt", certificate.pem());
    world.write("gate.key", key.serialize_pem());
    (world, config)
}

/// A script at work.
struct Stranger {
    process: Child,
    steps: BufReader<ChildStdout>,
}

impl Stranger {
    fn start(script: &str, address: &str, world: &World, tls: bool) -> Self {
        let mut command = python();
        command.arg(tests_folder().join("strangers").join(script)).arg(address);
        if tls {
            command.arg(world.folder().join("ca.crt"));
        }
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program can be started");
        let steps = BufReader::new(process.stdout.take().expect("it was asked for"));
        Self { process, steps }
    }

    /// Waits for steps in that order. A script that fails has said why on standard error, and no further steps.
    fn expect(&mut self, steps: &[&str]) {
        for step in steps {
            let mut line = String::new();
            self.steps.read_line(&mut line).expect("the script writes text");
            assert_eq!(line.trim_end(), *step, "the script's next step");
        }
    }

    /// Lets the script go on, and waits for its last step.
    fn finish(mut self, step: &str) {
        self.process.stdin.take().expect("it was asked for").write_all(b"\n").expect("the script listens");
        self.expect(&[step]);
        assert!(self.process.wait().expect("it is this process's child").success());
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        // Where it has ended already there is nothing to kill.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn expect_connections(host: &Host, expected: &[(&str, u64)]) {
    host.wait_until(&format!("{expected:?}"), |status| {
        let connections = &status["connections"];
        expected.iter().all(|(key, count)| connections[*key] == *count || connections["closed_by"][*key] == *count)
    });
}

fn by_tcp(tls: bool) {
    let (world, _) = world(tls);
    let host = world.serve();
    let mut stranger = Stranger::start("raw_tcp.py", &host.gate().to_string(), &world, tls);
    stranger.expect(&["echoes", "any pieces", "too long", "open"]);
    expect_connections(&host, &[("open", 4), ("websocket", 0), ("accepted", 5), ("frame_too_large", 1)]);
    host.stop();
    stranger.finish("stopped");
}

fn by_websocket(tls: bool) {
    let (world, _) = world(tls);
    let host = world.serve();
    let mut stranger = Stranger::start("websocket.py", &host.websocket().to_string(), &world, tls);
    stranger.expect(&["echoes", "any pieces", "too long", "text", "good-bye", "open"]);
    let closed = [("frame_too_large", 1), ("protocol", 1), ("client_left", 1)];
    expect_connections(&host, &[[("open", 2), ("websocket", 2), ("accepted", 5)], closed].concat());
    let stopping = std::thread::spawn(|| host.stop());
    stranger.finish("stopped");
    stopping.join().expect("the host stops well");
}

#[test]
fn pythons_sockets_talk_to_a_world() {
    by_tcp(false);
}

#[test]
fn pythons_sockets_talk_to_a_world_by_tls() {
    by_tcp(true);
}

#[test]
fn a_package_for_websocket_talks_to_a_world() {
    by_websocket(false);
}

#[test]
fn a_package_for_websocket_talks_to_a_world_by_tls() {
    by_websocket(true);
}
