//! The control port: HTTP on the loopback interface, through which an operator asks the running host for its status
//! and gives it orders. The server opens it over its [`HostControl`]; every request must carry the token that lies in
//! the data directory. It decides nothing: each answer is the host's.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::control_file::{ControlFile, Published};
use super::routes::routes;
use super::token::Token;
use super::{AdminOptionError, AdminOptions, DataDir, HostControl};

/// How long requests under way may take once the port is asked to close.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

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
