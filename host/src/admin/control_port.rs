//! The control port: HTTP on the loopback interface, through which an operator asks the running host for its status
//! and gives it orders. The server opens it over its [`HostControl`]; every request must carry the token that lies in
//! the data directory. It decides nothing: each answer is the host's.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::control_file::{ControlFile, Published};
use super::token::Token;
use super::{AdminOptionError, AdminOptions, DataDir};

/// How long the host may take over an answer: long for a loop that is alive, short for a person who waits.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// How long requests under way may take once the port is asked to close.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// What can be asked of a running host.
pub trait HostControl: Send + Sync + 'static {
    /// The status object.
    fn status(&self) -> impl Future<Output = Result<Value, ControlError>> + Send;

    /// Cancels a task or job.
    fn cancel_task(&self, task: u64) -> impl Future<Output = Result<(), ControlError>> + Send;
}

/// Why the host did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ControlError {
    /// The task has ended, or never was.
    #[error("there is no task {task}: it has ended, or never was")]
    NoSuchTask {
        /// The id given.
        task: u64,
    },
    /// The host is starting, stopping or has failed.
    #[error("the host cannot answer now: {reason}")]
    Unavailable {
        /// What keeps it.
        reason: String,
    },
}

impl IntoResponse for ControlError {
    fn into_response(self) -> Response {
        let status = match self {
            Self::NoSuchTask { .. } => StatusCode::NOT_FOUND,
            Self::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
        };
        failure(status, &self.to_string())
    }
}

/// Why the control port did not open.
#[derive(Debug, Error)]
pub enum ControlPortError {
    /// The address is not one the control port may have.
    #[error(transparent)]
    Option(#[from] AdminOptionError),
    /// The address cannot be listened on.
    #[error("cannot open the control port on {address}: {error}; set `admin.listen` to \"127.0.0.1:0\"")]
    Bind {
        /// `admin.listen`.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// The system gave no randomness for the token.
    #[error("cannot make a token for the control port: {error}; is /dev/urandom there?")]
    Token {
        /// What the system said.
        error: io::Error,
    },
    /// Clients cannot be told where it is.
    #[error("cannot write {path}: {error}; let this user write to the data directory", path = .path.display())]
    Publish {
        /// The control file.
        path: std::path::PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// An open control port.
#[derive(Debug)]
pub struct ControlPort {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<io::Result<()>>,
    published: Published,
}

/// A control port that has its address and answers nobody yet: an address that is taken shows before anything is
/// started for it.
#[derive(Debug)]
pub struct BoundControlPort {
    address: SocketAddr,
    listener: TcpListener,
}

impl BoundControlPort {
    /// Takes the address. Must be called within a tokio runtime.
    pub async fn bind(options: &AdminOptions) -> Result<Self, ControlPortError> {
        options.validate()?;
        let failed = |error| ControlPortError::Bind { address: options.listen, error };
        let listener = TcpListener::bind(options.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { address, listener })
    }

    /// Opens the port, and tells clients in the data directory where it is. Must be called within a tokio runtime.
    pub fn open<H: HostControl>(self, data_dir: &DataDir, host: Arc<H>) -> Result<ControlPort, ControlPortError> {
        let Self { address, listener } = self;
        let token = Token::random().map_err(|error| ControlPortError::Token { error })?;
        let file = ControlFile { address, token: token.clone(), process: std::process::id() };
        let path = ControlFile::path_in(data_dir.path());
        let published = file.publish(data_dir.path()).map_err(|error| ControlPortError::Publish { path, error })?;

        let (stop, stopped) = oneshot::channel::<()>();
        let server = axum::serve(listener, routes(host, token)).with_graceful_shutdown(async move {
            // A port that was dropped without a stop closes as well.
            let _ = stopped.await;
        });
        let server = tokio::spawn(server.into_future());
        tracing::debug!(%address, "control port open");
        Ok(ControlPort { address, stop, server, published })
    }
}

impl ControlPort {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Withdraws the control file and closes the port; requests under way get a moment to finish.
    pub async fn close(self) {
        let Self { stop, mut server, published, .. } = self;
        drop(published);
        let _ = stop.send(());
        match timeout(CLOSE_LIMIT, &mut server).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => tracing::warn!(%error, "the control port had failed"),
            Ok(Err(error)) => tracing::warn!(%error, "the control port had failed"),
            Err(_) => server.abort(),
        }
    }
}

fn routes<H: HostControl>(host: Arc<H>, token: Token) -> Router {
    Router::new()
        .route("/v1/status", get(status::<H>))
        .route("/v1/tasks/{id}/cancel", post(cancel_task::<H>))
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
    answer(host.status(), |status| Json(status).into_response()).await
}

async fn cancel_task<H: HostControl>(State(host): State<Arc<H>>, Path(id): Path<String>) -> Response {
    let Ok(task) = id.parse() else {
        return failure(StatusCode::BAD_REQUEST, &format!("a task is named by its number, not by {id:?}"));
    };
    answer(host.cancel_task(task), |()| Json(json!({ "cancelled": task })).into_response()).await
}

async fn answer<T>(asked: impl Future<Output = Result<T, ControlError>>, good: impl FnOnce(T) -> Response) -> Response {
    match timeout(ANSWER_LIMIT, asked).await {
        Ok(Ok(value)) => good(value),
        Ok(Err(error)) => error.into_response(),
        Err(_) => {
            let reason = format!("its loop has not answered for {} s", ANSWER_LIMIT.as_secs());
            ControlError::Unavailable { reason }.into_response()
        }
    }
}

fn failure(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({ "error": message }))).into_response()
}
