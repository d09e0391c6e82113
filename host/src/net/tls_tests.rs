//! TLS at the gate: what is said at a start about files that cannot be used, and clients that speak something else.

use std::fs;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::test_world::{Certificate, GateBy, Way, echo, options, until, within};
use super::{BoundGate, Client, CloseReason, Door, GateOptions, Trust};

async fn refused(certificate: std::path::PathBuf, key: std::path::PathBuf) -> String {
    let options = GateOptions { tls_certificate: Some(certificate), tls_key: Some(key), ..options() };
    let line = BoundGate::bind(&options).await.unwrap_err().to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}

#[tokio::test]
async fn files_that_cannot_be_used_are_one_line_that_names_them_and_the_mend() {
    let good = Certificate::new();
    let missing = good.folder().join("missing.pem");
    let line = refused(missing.clone(), good.key()).await;
    assert!(line.starts_with(&format!("gate.tls_certificate: cannot read {}: ", missing.display())), "{line}");
    assert!(line.ends_with("it must be a PEM file with the certificate first and then those that vouch for it"));

    let line = refused(good.key(), good.key()).await;
    let expected = format!("gate.tls_certificate: there is no certificate in {}; it must be", good.key().display());
    assert!(line.starts_with(&expected), "{line}");

    let line = refused(good.file(), good.file()).await;
    let expected = format!("gate.tls_key: there is no private key in {}; it must be", good.file().display());
    assert!(line.starts_with(&expected), "{line}");

    let other = Certificate::new();
    let line = refused(good.file(), other.key()).await;
    let expected = format!(
        "gate.tls_key: the key in {} does not belong to the certificate in {}; name the two that were made together",
        other.key().display(),
        good.file().display()
    );
    assert_eq!(line, expected);
}

#[tokio::test]
async fn files_that_hold_something_else_are_refused_too() {
    let good = Certificate::new();
    let broken = good.folder().join("broken.pem");
    let pem = |kind: &str, text: &str| format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n");
    for text in [pem("CERTIFICATE", "!!!!"), pem("CERTIFICATE", "AAAA"), "-----BEGIN CERTIFICATE-----\nAAAA".to_owned()]
    {
        fs::write(&broken, &text).unwrap();
        let line = refused(broken.clone(), good.key()).await;
        assert!(line.contains("broken.pem") && line.starts_with("gate.tls_certificate: "), "{text:?}: {line}");
    }
    fs::write(&broken, pem("PRIVATE KEY", "AAAA")).unwrap();
    let line = refused(good.file(), broken.clone()).await;
    assert!(line.contains("broken.pem") && line.starts_with("gate.tls_key: "), "{line}");
}

#[tokio::test]
async fn a_client_that_speaks_no_tls_is_cut_off_for_that() {
    let gate = GateBy::open(Way::ALL[2], options()).await;
    let mut good = gate.good_client().await;
    let mut plain = gate.stranger().await;
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    // It may be told in TLS's own words; then it is the end.
    let _ = within(plain.read_to_end(&mut Vec::new())).await;
    gate.cut_off_alone(CloseReason::Protocol, &mut good).await;
    drop(good);
    gate.stop().await;
}

#[tokio::test]
async fn a_client_does_not_come_in_to_a_gate_that_it_does_not_trust() {
    let gate = GateBy::open(Way::ALL[2], options()).await;
    let address = gate.address().to_string();
    let stranger = Trust::authorities(&Certificate::new().file()).unwrap();
    let door = Door { tls: Some(stranger), websocket: false };
    let error = within(Client::connect_by(&door, &address)).await.unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");
    until(|| gate.connections.snapshot().closed == 1).await;
    assert!(gate.sink.of(1).is_empty());

    let door = Door { tls: Some(Trust::anyone()), websocket: false };
    let mut trusting = within(Client::connect_by(&door, &address)).await.unwrap();
    assert!(echo(&mut trusting, b"hello").await.unwrap().is_some());
    drop(trusting);
    gate.stop().await;
}

#[tokio::test]
async fn bytes_changed_on_their_way_end_the_connection() {
    let gate = GateBy::open(Way::ALL[2], options()).await;
    // A relay between the two that appends what nobody has sealed.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let relay_address = listener.local_addr().unwrap().to_string();
    let to_gate = gate.stranger().await;
    let (spoil, spoiled) = tokio::sync::oneshot::channel::<()>();
    tokio::spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let ((mut from_client, mut to_client), (mut from_gate, mut to_gate)) =
            (client.into_split(), to_gate.into_split());
        tokio::spawn(async move { tokio::io::copy(&mut from_gate, &mut to_client).await });
        tokio::select! {
            _ = tokio::io::copy(&mut from_client, &mut to_gate) => {}
            _ = spoiled => {}
        }
        // A record of TLS 1.2 or later, with 20 bytes that would have to be sealed.
        to_gate.write_all(&[[23, 3, 3, 0, 20].as_slice(), &[7; 20]].concat()).await.unwrap();
    });
    let door = Door { tls: Some(Trust::anyone()), websocket: false };
    let mut client = within(Client::connect_by(&door, &relay_address)).await.unwrap();
    client.send(b"sealed").await.unwrap();
    until(|| gate.sink.packets_of(1) == 1).await;
    spoil.send(()).unwrap();
    until(|| gate.connections.snapshot().open == 0).await;
    assert_eq!(gate.sink.ended(1), Some(CloseReason::Protocol));
    gate.stop().await;
}
