//! The control port and its client together, over the real loopback interface and a real data directory.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::control_file::ControlFile;
use super::test_host::{Host, Running, asked, raw, running};
use super::token::Token;
use super::{AdminOptions, BoundControlPort, ControlClient, ControlClientError, DataDir};

async fn status_in(data_dir: &Path) -> Result<Value, ControlClientError> {
    let data_dir = data_dir.to_owned();
    asked(move || ControlClient::find(data_dir)?.status()).await
}

#[tokio::test]
async fn a_client_with_the_data_directory_gets_the_status() {
    let Running { root, port, .. } = running(Host::default()).await;
    assert!(port.address().ip().is_loopback());
    assert_eq!(status_in(root.path()).await.unwrap(), json!({"uptime_ms": 5, "loop": {"executed": 3}}));
    let mode = fs::metadata(root.path().join("control.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    port.close().await;
}

#[tokio::test]
async fn a_task_is_cancelled_once_and_then_unknown() {
    let Running { root, port, .. } = running(Host::default()).await;
    let client = Arc::new(ControlClient::find(root.path()).unwrap());
    let again = Arc::clone(&client);
    asked(move || client.cancel_task(7)).await.unwrap();
    let refused = asked(move || again.cancel_task(7)).await.unwrap_err();
    assert!(matches!(refused, ControlClientError::Refused { status: 404, .. }));
    assert_eq!(refused.to_string(), "there is no task 7: it has ended, or never was");
    port.close().await;
}

#[tokio::test]
async fn nothing_is_told_without_the_token_and_the_rest_is_json_too() {
    let Running { root, port, .. } = running(Host::default()).await;
    let header = ControlFile::read(root.path()).unwrap().token.as_header();
    let authorized = format!("Host: x\nConnection: close\nAuthorization: {header}\n\n");
    for (request, status) in [
        ("GET /v1/status HTTP/1.1\nHost: x\nConnection: close\n\n".to_owned(), 401),
        ("GET /nowhere HTTP/1.1\nHost: x\nConnection: close\n\n".to_owned(), 401),
        ("GET /v1/status HTTP/1.1\nHost: x\nConnection: close\nAuthorization: Bearer no\n\n".to_owned(), 401),
        (format!("GET /nowhere HTTP/1.1\n{authorized}"), 404),
        (format!("DELETE /v1/status HTTP/1.1\n{authorized}"), 405),
        (format!("POST /v1/tasks/x/cancel HTTP/1.1\n{authorized}"), 400),
        (format!("POST /v1/tasks/%ff/cancel HTTP/1.1\n{authorized}"), 400),
        (format!("POST /v1/tasks/8/cancel HTTP/1.1\n{authorized}"), 404),
        (format!("GET /v1/status HTTP/1.1\n{authorized}"), 200),
    ] {
        let (answered, body) = raw(port.address(), &request).await;
        assert_eq!(answered, status, "{request}");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["error"].is_string(), status != 200, "{body}");
    }
    port.close().await;
}

#[tokio::test]
async fn a_closed_port_takes_its_file_along_and_nobody_is_found_there() {
    let Running { root, data_dir, port } = running(Host::default()).await;
    port.close().await;
    let stopping = status_in(root.path()).await.unwrap_err().to_string();
    assert!(stopping.ends_with("is starting or stopping; try again in a moment"), "{stopping}");
    drop(data_dir);
    let path = root.path().display().to_string();
    let none = status_in(root.path()).await.unwrap_err().to_string();
    assert!(none.starts_with(&format!("no host is running on the data directory {path}; start one")), "{none}");
    let missing = status_in(&root.path().join("nowhere")).await.unwrap_err().to_string();
    assert!(missing.starts_with(&format!("there is no data directory {path}/nowhere; name")), "{missing}");
}

/// A control file that points to a port on which nothing listens, as a killed host leaves it.
fn leave_control_file(data_dir: &Path, address: SocketAddr) {
    let file = ControlFile { address, token: Token::random().unwrap(), process: 4711 };
    std::mem::forget(file.publish(data_dir).unwrap());
}

fn closed_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn the_file_of_a_killed_host_is_told_from_a_host_that_does_not_answer() {
    let root = tempfile::tempdir().unwrap();
    leave_control_file(root.path(), closed_port());
    let stale = status_in(root.path()).await.unwrap_err();
    assert!(matches!(stale, ControlClientError::Stale { process: 4711, .. }), "{stale}");

    let _held = DataDir::open(root.path()).unwrap();
    let silent = status_in(root.path()).await.unwrap_err();
    assert!(matches!(silent, ControlClientError::NoAnswer { .. }), "{silent}");
}

#[tokio::test]
async fn a_token_of_another_start_is_refused_with_the_file_named() {
    let Running { root, port, .. } = running(Host::default()).await;
    let other = tempfile::tempdir().unwrap();
    leave_control_file(other.path(), port.address());
    let refused = status_in(other.path()).await.unwrap_err();
    assert!(matches!(refused, ControlClientError::TokenMismatch { .. }), "{refused}");
    assert!(refused.to_string().contains(&other.path().join("control.json").display().to_string()));
    drop(root);
    port.close().await;
}

#[tokio::test]
async fn a_damaged_control_file_is_named() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("control.json"), "{\"address\": 5").unwrap();
    let damaged = status_in(root.path()).await.unwrap_err().to_string();
    assert!(damaged.starts_with(&format!("{} is damaged: ", root.path().join("control.json").display())), "{damaged}");
    assert!(!damaged.contains('\n'));
}

#[tokio::test]
async fn a_host_whose_loop_hangs_is_reported_and_not_waited_for_without_end() {
    let Running { root, port, .. } = running(Host { hangs: true, ..Host::default() }).await;
    let header = ControlFile::read(root.path()).unwrap().token.as_header();
    let request = format!("GET /v1/status HTTP/1.1\nHost: x\nConnection: close\nAuthorization: {header}\n\n");
    let (status, body) = raw(port.address(), &request).await;
    assert_eq!(status, 503);
    assert!(body.contains("its loop has not answered for 5 s"), "{body}");
    port.close().await;
}

#[tokio::test]
async fn the_control_port_is_never_open_to_the_network() {
    let options = AdminOptions { listen: "0.0.0.0:0".parse().unwrap() };
    let refused = BoundControlPort::bind(&options).await.unwrap_err().to_string();
    assert!(refused.starts_with("admin.listen = \"0.0.0.0:0\": the control port opens on the loopback"), "{refused}");
}

#[tokio::test]
async fn a_taken_port_is_one_line_with_the_mend() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = AdminOptions { listen: taken.local_addr().unwrap() };
    let refused = BoundControlPort::bind(&options).await.unwrap_err().to_string();
    assert!(refused.starts_with(&format!("cannot open the control port on {}: ", options.listen)), "{refused}");
    assert!(refused.ends_with("; set `admin.listen` to \"127.0.0.1:0\""), "{refused}");
}
