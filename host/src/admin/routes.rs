//! The paths of the control port: each takes a request apart, asks the [`HostControl`], and puts the answer into JSON.
//! Nothing is told without the token. The [control port](super::control_port) serves them; they decide nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequestParts, Path, RawQuery, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::event_json::{
    MAX_LISTED_PAYLOAD_BYTES, event_id, event_id_text, event_json, event_sequence, listed_event_json,
};
use super::host_control::{ANSWER_LIMIT, BACKUP_LIMIT, SAVE_LIMIT, SWAP_LIMIT};
use super::token::Token;
use super::{ControlError, HostControl};
use crate::store::{EventQuery, ListedEvent, Page};

/// Events in one answer at most: few enough that the host holds their payloads without notice.
pub(super) const MAX_PAGE: usize = 256;

/// Events in one answer where the request does not say.
const DEFAULT_PAGE: usize = 100;

/// Everything that can be asked.
pub(super) fn routes<H: HostControl>(host: Arc<H>, token: Token) -> Router {
    Router::new()
        .route("/v1/status", get(status::<H>))
        .route("/v1/tasks/{id}/cancel", post(cancel_task::<H>))
        .route("/v1/services", get(services::<H>))
        .route("/v1/services/dead-letters", get(dead_letters::<H>))
        .route("/v1/services/{service}/kill", post(kill_service::<H>))
        .route("/v1/guests/{guest}/swap", post(swap::<H>))
        .route("/v1/guests/{guest}/swap-back", post(swap_back::<H>))
        .route("/v1/guests/{guest}/history", get(history::<H>))
        .route("/v1/events", get(events::<H>))
        .route("/v1/events/{id}", get(event::<H>))
        .route("/v1/events/{id}/cancel", post(cancel_event::<H>))
        .route("/v1/events/{id}/retry", post(retry_event::<H>))
        .route("/v1/events/{id}/drop", post(drop_event::<H>))
        .route("/v1/save", post(save::<H>))
        .route("/v1/backup", post(backup::<H>))
        .method_not_allowed_fallback(async || failure(StatusCode::METHOD_NOT_ALLOWED, "this path takes another method"))
        .fallback(async || failure(StatusCode::NOT_FOUND, "the control port has no such path"))
        .layer(middleware::from_fn_with_state(Arc::new(token), require_token))
        .with_state(host)
}

async fn require_token(State(token): State<Arc<Token>>, request: Request, next: Next) -> Response {
    let given = request.headers().get(header::AUTHORIZATION);
    if given.is_some_and(|given| token.opens(given.as_bytes())) {
        next.run(request).await
    } else {
        let mut refused = failure(StatusCode::UNAUTHORIZED, "the token of the data directory's control.json is needed");
        refused.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        refused
    }
}

async fn status<H: HostControl>(State(host): State<Arc<H>>) -> Response {
    answer(Patience::LOOP, host.status(), |status| status).await
}

async fn cancel_task<H: HostControl>(State(host): State<Arc<H>>, Id(id): Id) -> Response {
    let Ok(task) = id.parse() else {
        return failure(StatusCode::BAD_REQUEST, &format!("a task is named by its number, not by {id:?}"));
    };
    answer(Patience::LOOP, host.cancel_task(task), |()| json!({ "cancelled": task })).await
}

async fn services<H: HostControl>(State(host): State<Arc<H>>) -> Response {
    answer(Patience::SERVICES, host.services(), |services| json!(services)).await
}

async fn dead_letters<H: HostControl>(State(host): State<Arc<H>>) -> Response {
    answer(Patience::SERVICES, host.dead_letters(), |letters| json!(letters)).await
}

async fn kill_service<H: HostControl>(State(host): State<Arc<H>>, Id(service): Id) -> Response {
    answer(Patience::SERVICES, host.kill_service(service), |handle| json!({ "killed": handle })).await
}

/// A page of events and, where there are more, what `after` must be for the next.
async fn events<H: HostControl>(State(host): State<Arc<H>>, RawQuery(query): RawQuery) -> Response {
    let mut query = match event_query(query.as_deref().unwrap_or_default()) {
        Ok(query) => query,
        Err(complaint) => return failure(StatusCode::BAD_REQUEST, &complaint),
    };
    query.limit = query.limit.min(MAX_PAGE);
    query.longest_payload = MAX_LISTED_PAYLOAD_BYTES;
    let told = |Page { events, is_last }: Page<ListedEvent>| {
        let next = events.last().filter(|_| !is_last).map(|last| event_id_text(last.event.id()));
        json!({ "events": events.iter().map(listed_event_json).collect::<Vec<_>>(), "next": next })
    };
    answer(Patience::DATABASE, host.events(query), told).await
}

/// What of the events is asked for.
fn event_query(query: &str) -> Result<EventQuery, String> {
    let mut asked = EventQuery { limit: DEFAULT_PAGE, ..EventQuery::default() };
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        let wants = |what: &str| format!("{key} must be {what}, not {value:?}");
        match &*key {
            "guest" => asked.guest = Some(Arc::from(&*value)),
            "parked" => asked.parked_only = value.parse().map_err(|_| wants("true or false"))?,
            "after" => asked.after = Some(event_id(&value).ok_or_else(|| wants("the id of an event"))?),
            "limit" => {
                let limit = value.parse().ok().filter(|limit| *limit > 0);
                asked.limit = limit.ok_or_else(|| wants("a positive number"))?;
            }
            _ => return Err(format!("events are asked for by guest, parked, after and limit, not by {key:?}")),
        }
    }
    Ok(asked)
}

/// What a path names. One that is no text is refused in JSON, like the rest.
struct Id(String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(id)) => Ok(Self(id)),
            Err(rejection) => Err(failure(rejection.status(), &rejection.body_text())),
        }
    }
}

/// The sequence of the event that a path names.
struct Sequence(u64);

impl<S: Send + Sync> FromRequestParts<S> for Sequence {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let Id(id) = Id::from_request_parts(parts, state).await?;
        event_sequence(&id).map(Self).ok_or_else(|| {
            failure(StatusCode::BAD_REQUEST, &format!("an event is named by its id or its sequence, not by {id:?}"))
        })
    }
}

async fn event<H: HostControl>(State(host): State<Arc<H>>, Sequence(sequence): Sequence) -> Response {
    answer(Patience::DATABASE, host.event(sequence), |event| event_json(&event)).await
}

async fn cancel_event<H: HostControl>(State(host): State<Arc<H>>, Sequence(sequence): Sequence) -> Response {
    answer(Patience::LOOP, host.cancel_event(sequence), |()| json!({ "cancelled": sequence })).await
}

async fn retry_event<H: HostControl>(State(host): State<Arc<H>>, Sequence(sequence): Sequence) -> Response {
    answer(Patience::LOOP, host.retry_event(sequence), |()| json!({ "retried": sequence })).await
}

async fn drop_event<H: HostControl>(State(host): State<Arc<H>>, Sequence(sequence): Sequence) -> Response {
    answer(Patience::LOOP, host.drop_event(sequence), |()| json!({ "dropped": sequence })).await
}

async fn save<H: HostControl>(State(host): State<Arc<H>>) -> Response {
    answer(Patience::SAVE, host.save(), |()| json!({ "saved": true })).await
}

/// The body of a request that is about a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileOrder {
    file: PathBuf,
}

/// The absolute path that a request is about; `what` needs it. An answer that refuses it where it has none.
fn path_of(order: Result<Json<FileOrder>, JsonRejection>, what: &str) -> Result<PathBuf, Box<Response>> {
    match order {
        Ok(Json(FileOrder { file })) if file.is_absolute() => Ok(file),
        Ok(Json(FileOrder { file })) => {
            Err(Box::new(failure(StatusCode::BAD_REQUEST, &format!("{what}, not {file:?}"))))
        }
        Err(rejection) => Err(Box::new(failure(rejection.status(), &rejection.body_text()))),
    }
}

async fn backup<H: HostControl>(State(host): State<Arc<H>>, order: Result<Json<FileOrder>, JsonRejection>) -> Response {
    match path_of(order, "a backup needs the absolute path of a new file") {
        Ok(file) => {
            let done = json!({ "backup": file });
            answer(Patience::BACKUP, host.backup(file), |()| done).await
        }
        Err(refused) => *refused,
    }
}

async fn swap<H: HostControl>(
    State(host): State<Arc<H>>,
    Id(guest): Id,
    order: Result<Json<FileOrder>, JsonRejection>,
) -> Response {
    match path_of(order, "a swap needs the absolute path of the guest's new file") {
        Ok(file) => answer(Patience::SWAP, host.swap(guest, file), |swapped| json!(swapped)).await,
        Err(refused) => *refused,
    }
}

async fn swap_back<H: HostControl>(State(host): State<Arc<H>>, Id(guest): Id) -> Response {
    answer(Patience::SWAP, host.swap_back(guest), |swapped| json!(swapped)).await
}

async fn history<H: HostControl>(State(host): State<Arc<H>>, Id(guest): Id) -> Response {
    answer(Patience::LOOP, host.history(guest), |generations| json!({ "generations": generations })).await
}

/// How long an answer is waited for, and what is to be said when there is none.
#[derive(Debug, Clone, Copy)]
struct Patience {
    limit: Duration,
    lateness: &'static str,
}

impl Patience {
    const LOOP: Self = Self { limit: ANSWER_LIMIT, lateness: "its loop has not answered for" };
    const SERVICES: Self = Self { limit: ANSWER_LIMIT, lateness: "its services have not answered for" };
    const DATABASE: Self = Self { limit: ANSWER_LIMIT, lateness: "its database has not answered for" };
    const SAVE: Self = Self { limit: SAVE_LIMIT, lateness: "it has been saving without an end for" };
    const SWAP: Self = Self { limit: SWAP_LIMIT, lateness: "it has been swapping without an end for" };
    const BACKUP: Self = Self { limit: BACKUP_LIMIT, lateness: "it has been writing the backup without an end for" };
}

async fn answer<T>(
    patience: Patience,
    asked: impl Future<Output = Result<T, ControlError>>,
    told: impl FnOnce(T) -> Value,
) -> Response {
    let error = match timeout(patience.limit, asked).await {
        Ok(Ok(value)) => return Json(told(value)).into_response(),
        Ok(Err(error)) => error,
        Err(_) => ControlError::Unavailable { reason: format!("{} {} s", patience.lateness, patience.limit.as_secs()) },
    };
    failure(error.status(), &error.to_string())
}

fn failure(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({ "error": message }))).into_response()
}

#[cfg(test)]
mod tests {
    use super::super::test_host::Host;
    use super::*;

    /// How many seconds pass until a host that hangs is given up.
    async fn given_up_after_s(asked: impl Future<Output = Response>) -> u64 {
        let began = tokio::time::Instant::now();
        assert_eq!(asked.await.status(), StatusCode::SERVICE_UNAVAILABLE);
        began.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_save_and_a_backup_are_waited_for_much_longer_than_a_question() {
        let host = State(Arc::new(Host { hangs: true, ..Host::default() }));
        let order = FileOrder { file: PathBuf::from("/a.db") };
        assert_eq!(given_up_after_s(status(host.clone())).await, 5);
        assert_eq!(given_up_after_s(services(host.clone())).await, 5);
        assert_eq!(given_up_after_s(event(host.clone(), Sequence(1))).await, 5);
        assert_eq!(given_up_after_s(save(host.clone())).await, 60);
        assert_eq!(given_up_after_s(backup(host, Ok(Json(order)))).await, 3600);
    }

    #[test]
    fn what_is_asked_of_the_events_is_read_or_refused_by_name() {
        assert_eq!(event_query("").unwrap(), EventQuery { limit: 100, ..EventQuery::default() });
        let all = event_query("guest=r%C3%BCles&parked=true&after=5-7&limit=9").unwrap();
        assert_eq!(all.guest.as_deref(), Some("rüles"));
        assert_eq!((all.parked_only, all.after.map(|id| (id.due_ms, id.sequence)), all.limit), (true, Some((5, 7)), 9));
        for (query, complaint) in [
            ("limit=0", "limit must be a positive number, not \"0\""),
            ("limit=-1", "limit must be a positive number, not \"-1\""),
            ("limit", "limit must be a positive number, not \"\""),
            ("parked=yes", "parked must be true or false, not \"yes\""),
            ("after=7", "after must be the id of an event, not \"7\""),
            ("offset=7", "events are asked for by guest, parked, after and limit, not by \"offset\""),
        ] {
            assert_eq!(event_query(query).unwrap_err(), complaint, "{query}");
        }
    }
}
