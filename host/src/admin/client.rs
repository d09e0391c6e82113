//! The client of the control port: finds the running host through its data directory and asks it. Blocking, for the
//! commands of the command line; each error says what was tried and what helps.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use thiserror::Error;

use super::DataDir;
use super::control_file::ControlFile;

/// Longer than the port waits for its host, so that the port's own message arrives.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

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
            .timeout_global(Some(ANSWER_LIMIT))
            .http_status_as_error(false)
            .max_redirects(0)
            // A proxy from the environment would be asked for its own loopback interface, and see the token.
            .proxy(None)
            .build();
        Ok(Self { data_dir, file, agent: config.into() })
    }

    /// The status object of the host.
    pub fn status(&self) -> Result<Value, ControlClientError> {
        let request = self.agent.get(self.url("/v1/status"));
        self.answer(request.header("authorization", self.file.token.as_header()).call())
    }

    /// Cancels a task or job.
    pub fn cancel_task(&self, task: u64) -> Result<(), ControlClientError> {
        let request = self.agent.post(self.url(&format!("/v1/tasks/{task}/cancel")));
        self.answer(request.header("authorization", self.file.token.as_header()).send_empty()).map(drop)
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.file.address)
    }

    fn answer(
        &self,
        asked: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Value, ControlClientError> {
        let mut response = asked.map_err(|error| self.unanswered(error))?;
        let status = response.status();
        if status == 401 {
            let path = ControlFile::path_in(&self.data_dir);
            return Err(ControlClientError::TokenMismatch { path, address: self.file.address });
        }
        let text = response.body_mut().read_to_string().map_err(|error| self.unanswered(error))?;
        let body = serde_json::from_str::<Value>(&text);
        if status.is_success() {
            return body.map_err(|error| self.no_answer(format!("its answer is not JSON: {error}")));
        }
        let said = body.ok().and_then(|body| body["error"].as_str().map(str::to_owned));
        let message = said.unwrap_or_else(|| format!("the host answered with HTTP status {status}"));
        Err(ControlClientError::Refused { status: status.as_u16(), message })
    }

    fn unanswered(&self, error: ureq::Error) -> ControlClientError {
        if DataDir::is_in_use(&self.data_dir) {
            return self.no_answer(match error {
                ureq::Error::Io(error) => error.to_string(),
                ureq::Error::Timeout(_) => format!("no answer within {} s", ANSWER_LIMIT.as_secs()),
                other => other.to_string(),
            });
        }
        ControlClientError::Stale {
            path: self.data_dir.clone(),
            control_file: ControlFile::path_in(&self.data_dir),
            process: self.file.process,
        }
    }

    fn no_answer(&self, reason: String) -> ControlClientError {
        ControlClientError::NoAnswer { path: self.data_dir.clone(), address: self.file.address, reason }
    }
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
