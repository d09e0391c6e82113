//! Services, events, saves and backups through the control port and its client.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::control_file::ControlFile;
use super::routes::MAX_PAGE;
use super::test_host::{Host, Running, asked, generation, raw, running, swapped};
use super::{ControlClient, ControlClientError, EventFilter};
use crate::store::Event;

fn event(sequence: u64, due_ms: u64, guest: &str) -> Event {
    Event { guest: guest.into(), ..Event::sample(sequence, due_ms) }
}

/// Event 1 is pending, 2 waits for its next attempt, 3 is parked.
fn three_events() -> Host {
    let retrying = event(2, 20, "rules").failed(20, "no crop", 10, 5);
    let parked = event(3, 30, "weather").failed(30, "no sky", 10, 1);
    Host::with_events(vec![event(1, 10, "rules"), retrying, parked])
}

/// Asks through the client, away from the port's runtime.
async fn through_client<T: Send + 'static>(
    root: &Path,
    ask: impl FnOnce(&ControlClient) -> Result<T, ControlClientError> + Send + 'static,
) -> Result<T, ControlClientError> {
    let root = root.to_owned();
    asked(move || ask(&ControlClient::find(root)?)).await
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, ControlClientError>) -> (u16, String) {
    match answer.unwrap_err() {
        ControlClientError::Refused { status, message } => (status, message),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn every_path_and_every_bad_request_is_answered_in_json() {
    let Running { root, port, .. } = running(three_events()).await;
    let token = ControlFile::read(root.path()).unwrap().token.as_header();
    let request = |line: &str, body: &str| {
        let length = body.len();
        format!(
            "{line} HTTP/1.1\nHost: x\nConnection: close\nAuthorization: {token}\nContent-Type: application/json\n\
             Content-Length: {length}\n\n{body}"
        )
    };
    for (line, body, status) in [
        ("GET /v1/events", "", 200),
        ("GET /v1/events?guest=rules&parked=false&limit=1", "", 200),
        ("GET /v1/events?limit=0", "", 400),
        ("GET /v1/events?after=9", "", 400),
        ("GET /v1/events?oops=9", "", 400),
        ("POST /v1/events", "", 405),
        ("GET /v1/events/1", "", 200),
        ("GET /v1/events/10-1", "", 200),
        ("GET /v1/events/99", "", 404),
        ("GET /v1/events/one", "", 400),
        ("GET /v1/events/-1", "", 400),
        ("GET /v1/events/%ff", "", 400),
        ("DELETE /v1/events/1", "", 405),
        ("GET /v1/events/1/cancel", "", 405),
        ("POST /v1/events/1/forget", "", 404),
        ("POST /v1/events/x/cancel", "", 400),
        ("POST /v1/events/99/cancel", "", 404),
        ("POST /v1/events/99/retry", "", 404),
        ("POST /v1/events/99/drop", "", 404),
        ("POST /v1/events/1/retry", "", 409),
        ("POST /v1/events/1/drop", "", 409),
        ("POST /v1/events/2/drop", "", 409),
        ("GET /v1/services", "", 200),
        ("POST /v1/services", "", 405),
        ("GET /v1/services/dead-letters", "", 200),
        ("GET /v1/services/chat", "", 404),
        ("GET /v1/services/chat/kill", "", 405),
        ("POST /v1/services/chat/forget", "", 404),
        ("POST /v1/services//kill", "", 404),
        ("POST /v1/services/%ff/kill", "", 400),
        ("POST /v1/services/nobody/kill", "", 404),
        ("POST /v1/services/rules/kill", "", 409),
        ("POST /v1/services/chat/kill", "", 200),
        ("GET /v1/guests/rules/history", "", 200),
        ("GET /v1/guests/nobody/history", "", 404),
        ("GET /v1/guests/rules/swap", "", 405),
        ("POST /v1/guests/rules/swap", "{}", 422),
        ("POST /v1/guests/rules/swap", "{\"file\": \"rules.wasm\"}", 400),
        ("POST /v1/guests/rules/swap", "{\"file\": \"/broken.wasm\"}", 422),
        ("POST /v1/guests/nobody/swap", "{\"file\": \"/rules.wasm\"}", 404),
        ("POST /v1/guests/rules/swap", "{\"file\": \"/rules.wasm\"}", 200),
        ("POST /v1/guests/rules/swap-back", "", 200),
        ("GET /v1/save", "", 405),
        ("POST /v1/save", "", 200),
        ("GET /v1/backup", "", 405),
        ("POST /v1/backup", "", 400),
        ("POST /v1/backup", "{\"file\": ", 400),
        ("POST /v1/backup", "{\"file\": 5}", 422),
        ("POST /v1/backup", "{}", 422),
        ("POST /v1/backup", "{\"file\": \"/tmp/a\", \"to\": 5}", 422),
        ("POST /v1/backup", "{\"file\": \"a.db\"}", 400),
        ("POST /v1/backup", "{\"file\": \"\"}", 400),
        ("POST /v1/backup", "{\"file\": \"/tmp/a\"}", 200),
    ] {
        let (answered, answer) = raw(port.address(), &request(line, body)).await;
        assert_eq!(answered, status, "{line} {body}: {answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{line}: {error}: {answer}"));
        assert_eq!(
            answer["error"].as_str().is_some_and(|line| !line.contains('\n')),
            status != 200,
            "{line}: {answer}"
        );
    }
    port.close().await;
}

#[tokio::test]
async fn without_the_token_nothing_is_told_or_done_about_events_and_services() {
    let host = three_events();
    let (backups, killed) = (Arc::clone(&host.backups), Arc::clone(&host.killed));
    let Running { port, .. } = running(host).await;
    for line in [
        "GET /v1/events",
        "GET /v1/events/1",
        "POST /v1/events/1/cancel",
        "POST /v1/events/3/retry",
        "POST /v1/events/3/drop",
        "GET /v1/services",
        "GET /v1/services/dead-letters",
        "POST /v1/services/chat/kill",
        "POST /v1/guests/rules/swap",
        "POST /v1/guests/rules/swap-back",
        "POST /v1/save",
        "POST /v1/backup",
    ] {
        let body = "{\"file\":\"/tmp/a\"}";
        let headers =
            format!("Host: x\nConnection: close\nContent-Type: application/json\nContent-Length: {}", body.len());
        let (status, answer) = raw(port.address(), &format!("{line} HTTP/1.1\n{headers}\n\n{body}")).await;
        assert_eq!(status, 401, "{line}: {answer}");
    }
    assert!(backups.lock().unwrap().is_empty() && killed.lock().unwrap().is_empty());
    port.close().await;
}

#[tokio::test]
async fn services_and_dead_letters_are_told_with_their_totals() {
    let Running { root, port, .. } = running(Host::default()).await;
    let services = through_client(root.path(), ControlClient::services).await.unwrap();
    let chat = json!({
        "handle": 70, "guest": "chat", "kind": "service", "names": ["chat", "a/b c%20?ä"], "mailbox": 3, "in_hand": 1,
        "messages": 12, "memory_bytes": 65_536, "used_ms": 5,
    });
    assert_eq!((&services["list"][0], &services["list"][1]["kind"]), (&chat, &json!("game")));
    assert_eq!((&services["services"]["running"], &services["services"]["mailbox_max"]), (&json!(1), &json!(0)));
    let letters = through_client(root.path(), ControlClient::dead_letters).await.unwrap();
    let letter = json!({"source": 0, "to": 69, "bytes": 5, "reason": "there is no service 69"});
    assert_eq!(letters, json!({"count": 9, "last": [letter]}));
    port.close().await;
}

#[tokio::test]
async fn a_service_is_killed_by_its_handle_or_by_whatever_name_it_has() {
    let host = Host::default();
    let killed = Arc::clone(&host.killed);
    let Running { root, port, .. } = running(host).await;
    for service in ["70", "chat", "a/b c%20?ä"] {
        let answer = through_client(root.path(), move |client| client.kill_service(service)).await.unwrap();
        assert_eq!(answer, json!({"killed": 70}), "{service}");
    }
    assert_eq!(*killed.lock().unwrap(), [70, 70, 70]);
    for (service, status, said) in [
        ("71", 409, "\"71\" is a game, and only services are killed"),
        (
            "72",
            404,
            "there is no service \"72\": it has ended, or never was; `wheelhouse services` lists those there are",
        ),
        (
            "..",
            404,
            "there is no service \"..\": it has ended, or never was; `wheelhouse services` lists those there are",
        ),
    ] {
        let answer = through_client(root.path(), move |client| client.kill_service(service)).await;
        assert_eq!(refusal(answer), (status, said.to_owned()), "{service}");
    }
    port.close().await;
}

#[tokio::test]
async fn an_event_is_shown_retried_dropped_and_cancelled_as_its_state_allows() {
    let Running { root, port, .. } = running(three_events()).await;
    let root = root.path();
    let shown = through_client(root, |client| client.event(3)).await.unwrap();
    assert_eq!((&shown["id"], &shown["parked"], &shown["error"]), (&json!("30-3"), &json!(true), &json!("no sky")));

    let answer = through_client(root, |client| client.drop_event(1)).await;
    let mend = "event 1 is not parked; `wheelhouse events cancel 1` removes it all the same";
    assert_eq!(refusal(answer), (409, mend.to_owned()));
    let answer = through_client(root, |client| client.retry_event(1)).await;
    assert_eq!(refusal(answer), (409, "event 1 has not failed; it runs when it is due".to_owned()));

    assert_eq!(through_client(root, |client| client.retry_event(2)).await.unwrap(), json!({"retried": 2}));
    assert_eq!(through_client(root, |client| client.retry_event(3)).await.unwrap(), json!({"retried": 3}));
    assert_eq!(through_client(root, |client| client.event(3)).await.unwrap()["parked"], false);
    assert_eq!(through_client(root, |client| client.cancel_event(1)).await.unwrap(), json!({"cancelled": 1}));
    let answer = through_client(root, |client| client.cancel_event(1)).await;
    let gone = "there is no event 1: it has run, was cancelled, or never was";
    assert_eq!(refusal(answer), (404, gone.to_owned()));
    port.close().await;
}

#[tokio::test]
async fn a_parked_event_is_dropped() {
    let Running { root, port, .. } = running(three_events()).await;
    assert_eq!(through_client(root.path(), |client| client.drop_event(3)).await.unwrap(), json!({"dropped": 3}));
    assert_eq!(refusal(through_client(root.path(), |client| client.event(3)).await).0, 404);
    port.close().await;
}

/// The sequences that the client lists, and whether it says that there are more.
async fn listed(root: &Path, filter: EventFilter, limit: Option<u64>) -> (Vec<u64>, bool) {
    let list = move |client: &ControlClient| {
        let mut pages = client.events(filter, limit);
        let listed = pages.by_ref().collect::<Result<Vec<_>, _>>()?;
        let sequences = listed.iter().flatten().filter_map(|event| event["sequence"].as_u64()).collect();
        Ok((sequences, pages.has_more()))
    };
    through_client(root, list).await.unwrap()
}

#[tokio::test]
async fn the_client_pages_until_it_has_what_was_asked() {
    let page = MAX_PAGE as u64;
    let all = 2 * page + 3;
    // Many with one time, so that pages end between equal ones.
    let host = Host::with_events((0..all).map(|sequence| event(sequence, sequence / 100, "rules")).collect());
    let queries = Arc::clone(&host.queries);
    let Running { root, port, .. } = running(host).await;
    for (limit, expected, requests) in [
        (None, all, 3),
        (Some(all), all, 3),
        (Some(all + 5), all, 3),
        (Some(page + 1), page + 1, 2),
        (Some(page), page, 1),
        (Some(1), 1, 1),
        (Some(0), 0, 0),
    ] {
        queries.lock().unwrap().clear();
        let (sequences, more) = listed(root.path(), EventFilter::default(), limit).await;
        assert_eq!(sequences, (0..expected).collect::<Vec<_>>(), "{limit:?}");
        assert_eq!(more, 0 < expected && expected < all, "{limit:?}");
        assert_eq!(queries.lock().unwrap().len(), requests, "{limit:?}");
    }
    port.close().await;
}

#[tokio::test]
async fn no_request_makes_the_host_read_more_than_a_page() {
    let host = three_events();
    let queries = Arc::clone(&host.queries);
    let Running { root, port, .. } = running(host).await;
    let all = through_client(root.path(), |client| client.get("/v1/events?limit=1000000")).await.unwrap();
    assert_eq!((all["events"].as_array().map(Vec::len), &all["next"]), (Some(3), &Value::Null));
    let asked = queries.lock().unwrap()[0].clone();
    assert_eq!((asked.limit, asked.longest_payload), (MAX_PAGE, 4096));
    let first = through_client(root.path(), |client| client.get("/v1/events?limit=2")).await.unwrap();
    assert_eq!(first["next"], "20-2");
    port.close().await;
}

#[tokio::test]
async fn the_list_is_narrowed_by_guest_and_by_what_is_parked() {
    let Running { root, port, .. } = running(three_events()).await;
    let filter = |guest: Option<&str>, parked_only| EventFilter { guest: guest.map(str::to_owned), parked_only };
    assert_eq!(listed(root.path(), filter(Some("rules"), false), None).await.0, [1, 2]);
    assert_eq!(listed(root.path(), filter(None, true), None).await.0, [3]);
    for none in [filter(Some("rules"), true), filter(Some("a&parked=true"), false)] {
        assert!(listed(root.path(), none.clone(), None).await.0.is_empty(), "{none:?}");
    }
    port.close().await;
}

#[tokio::test]
async fn an_event_of_any_length_reaches_the_client() {
    let long = Event { payload: Arc::from(vec![0; 12 << 20]), ..event(1, 10, "rules") };
    let Running { root, port, .. } = running(Host::with_events(vec![long])).await;
    let shown = through_client(root.path(), |client| client.event(1)).await.unwrap();
    assert_eq!(shown["payload"].as_str().map(str::len), Some(24 << 20));
    port.close().await;
}

#[tokio::test]
async fn a_backup_goes_to_the_file_that_was_named_and_needs_a_path_that_can_be_told() {
    let host = Host::default();
    let backups = Arc::clone(&host.backups);
    let Running { root, port, .. } = running(host).await;
    let done = through_client(root.path(), |client| client.backup(Path::new("/tmp/ä b.db"))).await.unwrap();
    assert_eq!(done, json!({"backup": "/tmp/ä b.db"}));
    assert_eq!(*backups.lock().unwrap(), [Path::new("/tmp/ä b.db")]);

    let refused = through_client(root.path(), |client| client.backup(Path::new("b.db"))).await;
    assert_eq!(refusal(refused), (400, "a backup needs the absolute path of a new file, not \"b.db\"".to_owned()));
    let odd = through_client(root.path(), |client| client.backup(Path::new(OsStr::from_bytes(b"/\xff")))).await;
    assert!(matches!(odd, Err(ControlClientError::NotText { .. })));
    assert_eq!(through_client(root.path(), ControlClient::save).await.unwrap(), json!({"saved": true}));
    port.close().await;
}

#[tokio::test]
async fn what_the_store_says_to_a_save_or_backup_that_fails_reaches_the_operator() {
    let broken = Some("the disk is full".to_owned());
    let Running { root, port, .. } = running(Host { broken, ..Host::default() }).await;
    let save = through_client(root.path(), ControlClient::save).await;
    assert_eq!(refusal(save), (503, "the world is not saved: the disk is full".to_owned()));
    let backup = through_client(root.path(), |client| client.backup(Path::new("/b.db"))).await;
    assert_eq!(refusal(backup), (422, "the disk is full".to_owned()));
    port.close().await;
}

#[tokio::test]
async fn a_client_swaps_guests_reads_their_history_and_is_told_what_is_refused() {
    let Running { root, port, .. } = running(Host::default()).await;
    let path = root.path().to_owned();
    asked(move || {
        let client = ControlClient::find(path).unwrap();
        assert_eq!(client.swap("rules", Path::new("/guests/rules.wasm")).unwrap(), swapped(3));
        assert_eq!(client.swap_back("rules").unwrap(), swapped(2));
        assert_eq!(client.history("rules").unwrap(), [generation()]);
        let refused = client.swap("rules", Path::new("/guests/broken.wasm")).unwrap_err();
        assert_eq!(refused.to_string(), "rules is not swapped: the file is broken");
        let nobody = client.swap("a/b", Path::new("/guests/rules.wasm")).unwrap_err();
        assert!(nobody.to_string().starts_with("there is no guest \"a/b\""), "{nobody}");
    })
    .await;
    port.close().await;
}
