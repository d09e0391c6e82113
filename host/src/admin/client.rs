//! The client of the control port: finds the running host through its data directory and asks it. Blocking, for the
//! commands of the command line; each error says what was tried and what helps.

use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use thiserror::Error;

use super::DataDir;
use super::client_events::{EventFilter, EventPages};
use super::control_file::ControlFile;
use super::host_control::{ANSWER_LIMIT, BACKUP_LIMIT, SAVE_LIMIT, SWAP_LIMIT};
use crate::guest::{Generation, Swapped};

/// How much longer than the port waits for its host the client waits for the port, so that the port's own message
/// arrives.
const GRACE: Duration = Duration::from_secs(5);

/// Why a running host could not be asked, or did not do as asked.
#[derive(Debug, Error)]
pub enum ControlClientError {
    /// There is no such directory.
    #[error("there is no data directory {path}; name the one that the host was started with", path = .path.display())]
    NoDataDir {
        /// The directory.
        path: PathBuf,
    },
    /// Nothing runs there.
    #[error("no host is running on the data directory {path}; start one with `wheelhouse serve`, or name the right directory", path = .path.display())]
    NotRunning {
        /// The directory.
        path: PathBuf,
    },
    /// A host holds the directory and has not opened its control port yet, or no more.
    #[error("the host on the data directory {path} is starting or stopping; try again in a moment", path = .path.display())]
    NotOpen {
        /// The directory.
        path: PathBuf,
    },
    /// The host that wrote the control file is gone.
    #[error("no host is running on the data directory {path}: {control_file} was left by process {process}, which ended without stopping; start the host again", path = .path.display(), control_file = .control_file.display())]
    Stale {
        /// The directory.
        path: PathBuf,
        /// The file left behind.
        control_file: PathBuf,
        /// The process that wrote it.
        process: u32,
    },
    /// The control file cannot be read.
    #[error("cannot read {path}: {error}; run this as the user who runs the host", path = .path.display())]
    Unreadable {
        /// The control file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The control file is not what a host writes.
    #[error("{path} is damaged: {error}; restart the host to have it written anew", path = .path.display())]
    Damaged {
        /// The control file.
        path: PathBuf,
        /// What is wrong with it.
        error: io::Error,
    },
    /// The host runs but its port does not answer.
    #[error("the host on the data directory {path} does not answer at its control port {address}: {reason}; try again, and restart the host if it stays so", path = .path.display())]
    NoAnswer {
        /// The directory.
        path: PathBuf,
        /// Where it was asked.
        address: SocketAddr,
        /// What happened.
        reason: String,
    },
    /// The token is not the host's.
    #[error("the host at {address} refuses the token in {path}: the file is of another start; try again, and restart the host if it stays so", path = .path.display())]
    TokenMismatch {
        /// The control file.
        path: PathBuf,
        /// Where it was asked.
        address: SocketAddr,
    },
    /// The name of a file cannot be told to the host.
    #[error("the file name {path:?} is not UTF-8; name the file in UTF-8")]
    NotText {
        /// The path.
        path: PathBuf,
    },
    /// The host answered that it cannot or will not.
    #[error("{message}")]
    Refused {
        /// The HTTP status code.
        status: u16,
        /// What the host said.
        message: String,
    },
}

/// A way to one running host.
#[derive(Debug)]
pub struct ControlClient {
    data_dir: PathBuf,
    file: ControlFile,
    agent: ureq::Agent,
}

impl ControlClient {
    /// Finds the host that runs on a data directory. It is first spoken to with a question.
    pub fn find(data_dir: impl Into<PathBuf>) -> Result<Self, ControlClientError> {
        let data_dir = data_dir.into();
        let file = match ControlFile::read(&data_dir) {
            Ok(file) => file,
            Err(error) => return Err(unread(data_dir, error)),
        };
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            // A proxy from the environment would be asked for its own loopback interface, and see the token.
            .proxy(None)
            .build();
        Ok(Self { data_dir, file, agent: config.into() })
    }

    /// The status object of the host.
    pub fn status(&self) -> Result<Value, ControlClientError> {
        self.get("/v1/status")
    }

    /// Cancels a task or job.
    pub fn cancel_task(&self, task: u64) -> Result<(), ControlClientError> {
        self.post(&format!("/v1/tasks/{task}/cancel"), ANSWER_LIMIT, None).map(drop)
    }

    /// Everybody who has a mailbox, and the totals.
    pub fn services(&self) -> Result<Value, ControlClientError> {
        self.get("/v1/services")
    }

    /// The messages that reached nobody.
    pub fn dead_letters(&self) -> Result<Value, ControlClientError> {
        self.get("/v1/services/dead-letters")
    }

    /// Ends a service that is named by its handle, or else by a name that it has.
    pub fn kill_service(&self, service: &str) -> Result<Value, ControlClientError> {
        self.post(&format!("/v1/services/{}/kill", path_segment(service)), ANSWER_LIMIT, None)
    }

    /// Pending events in the order of their ids, page by page until there are `limit`, or all of them. While the host
    /// runs, one that repeats may be met again under its next id.
    pub fn events(&self, filter: EventFilter, limit: Option<u64>) -> EventPages<'_> {
        EventPages::new(self, filter, limit)
    }

    /// The pending event with that sequence.
    pub fn event(&self, sequence: u64) -> Result<Value, ControlClientError> {
        self.get(&format!("/v1/events/{sequence}"))
    }

    /// Removes a pending event. Returns what the host answered, as the other orders do.
    pub fn cancel_event(&self, sequence: u64) -> Result<Value, ControlClientError> {
        self.post(&format!("/v1/events/{sequence}/cancel"), ANSWER_LIMIT, None)
    }

    /// Sends an event that is parked, or waits for its next attempt, on its way again.
    pub fn retry_event(&self, sequence: u64) -> Result<Value, ControlClientError> {
        self.post(&format!("/v1/events/{sequence}/retry"), ANSWER_LIMIT, None)
    }

    /// Removes an event only if it is parked.
    pub fn drop_event(&self, sequence: u64) -> Result<Value, ControlClientError> {
        self.post(&format!("/v1/events/{sequence}/drop"), ANSWER_LIMIT, None)
    }

    /// Has everything written down, and returns when it is on disk.
    pub fn save(&self) -> Result<Value, ControlClientError> {
        self.post("/v1/save", SAVE_LIMIT, None)
    }

    /// Has a copy of everything durable written to a new file on the host's machine. The path must be absolute.
    pub fn backup(&self, file: &Path) -> Result<Value, ControlClientError> {
        self.post("/v1/backup", BACKUP_LIMIT, Some(file_order(file)?))
    }

    /// Has a guest run the code in a file on the host's machine from here on. The path must be absolute.
    pub fn swap(&self, guest: &str, file: &Path) -> Result<Swapped, ControlClientError> {
        let path = format!("/v1/guests/{}/swap", path_segment(guest));
        self.post(&path, SWAP_LIMIT, Some(file_order(file)?)).and_then(|answer| self.typed(answer))
    }

    /// Has a guest run the code that it ran before.
    pub fn swap_back(&self, guest: &str) -> Result<Swapped, ControlClientError> {
        let path = format!("/v1/guests/{}/swap-back", path_segment(guest));
        self.post(&path, SWAP_LIMIT, None).and_then(|answer| self.typed(answer))
    }

    /// The generations of a guest's code that are kept, oldest first.
    pub fn history(&self, guest: &str) -> Result<Vec<Generation>, ControlClientError> {
        let mut answer = self.get(&format!("/v1/guests/{}/history", path_segment(guest)))?;
        self.typed(answer["generations"].take())
    }

    fn typed<T: DeserializeOwned>(&self, answer: Value) -> Result<T, ControlClientError> {
        serde_json::from_value(answer).map_err(|error| self.no_answer(format!("its answer is odd: {error}")))
    }

    /// Asks for what is at a path.
    pub(super) fn get(&self, path: &str) -> Result<Value, ControlClientError> {
        let limit = ANSWER_LIMIT + GRACE;
        let request = self.agent.get(self.url(path)).config().timeout_global(Some(limit)).build();
        self.answer(request.header("authorization", self.file.token.as_header()).call(), limit)
    }

    /// Gives an order that the host may take `limit` over.
    fn post(&self, path: &str, limit: Duration, body: Option<Value>) -> Result<Value, ControlClientError> {
        let limit = limit + GRACE;
        let request = self.agent.post(self.url(path)).config().timeout_global(Some(limit)).build();
        let request = request.header("authorization", self.file.token.as_header());
        let asked = match body {
            Some(body) => request.send_json(body),
            None => request.send_empty(),
        };
        self.answer(asked, limit)
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.file.address)
    }

    fn answer(
        &self,
        asked: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
        limit: Duration,
    ) -> Result<Value, ControlClientError> {
        let mut response = asked.map_err(|error| self.unanswered(error, limit))?;
        let status = response.status();
        if status == 401 {
            let path = ControlFile::path_in(&self.data_dir);
            return Err(ControlClientError::TokenMismatch { path, address: self.file.address });
        }
        // Without a limit of length: the host is trusted, and one event may carry a payload of any size.
        let text = response.body_mut().with_config().read_to_string().map_err(|error| self.unanswered(error, limit))?;
        let body = serde_json::from_str::<Value>(&text);
        if status.is_success() {
            return body.map_err(|error| self.no_answer(format!("its answer is not JSON: {error}")));
        }
        let said = body.ok().and_then(|body| body["error"].as_str().map(str::to_owned));
        let message = said.unwrap_or_else(|| format!("the host answered with HTTP status {status}"));
        Err(ControlClientError::Refused { status: status.as_u16(), message })
    }

    fn unanswered(&self, error: ureq::Error, limit: Duration) -> ControlClientError {
        if DataDir::is_in_use(&self.data_dir) {
            return self.no_answer(match error {
                ureq::Error::Io(error) => error.to_string(),
                ureq::Error::Timeout(_) => format!("no answer within {} s", limit.as_secs()),
                other => other.to_string(),
            });
        }
        ControlClientError::Stale {
            path: self.data_dir.clone(),
            control_file: ControlFile::path_in(&self.data_dir),
            process: self.file.process,
        }
    }

    pub(super) fn no_answer(&self, reason: String) -> ControlClientError {
        ControlClientError::NoAnswer { path: self.data_dir.clone(), address: self.file.address, reason }
    }
}

fn file_order(file: &Path) -> Result<Value, ControlClientError> {
    let name = file.to_str().ok_or_else(|| ControlClientError::NotText { path: file.to_owned() })?;
    Ok(json!({ "file": name }))
}

/// Text as a part of a path, in which nothing of it means anything.
fn path_segment(text: &str) -> String {
    let mut segment = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            segment.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(segment, "%{byte:02X}");
        }
    }
    segment
}

fn unread(data_dir: PathBuf, error: io::Error) -> ControlClientError {
    let path = ControlFile::path_in(&data_dir);
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory if !Path::is_dir(&data_dir) => {
            ControlClientError::NoDataDir { path: data_dir }
        }
        io::ErrorKind::NotFound if DataDir::is_in_use(&data_dir) => ControlClientError::NotOpen { path: data_dir },
        io::ErrorKind::NotFound => ControlClientError::NotRunning { path: data_dir },
        io::ErrorKind::InvalidData => ControlClientError::Damaged { path, error },
        _ => ControlClientError::Unreadable { path, error },
    }
}
