//! `control.json` in the data directory: where the control port of the running host is and what opens it. The port
//! publishes it when it opens and withdraws it when it closes; the client reads it. Only its owner can.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::token::Token;

const FILE_NAME: &str = "control.json";

/// What the file says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ControlFile {
    /// Where the control port listens.
    pub address: SocketAddr,
    /// What opens it.
    pub token: Token,
    /// The process id of the host.
    pub process: u32,
}

impl ControlFile {
    /// Where the file is in a data directory.
    pub fn path_in(data_dir: &Path) -> PathBuf {
        data_dir.join(FILE_NAME)
    }

    /// Reads the file; damage is an [`io::ErrorKind::InvalidData`].
    pub fn read(data_dir: &Path) -> io::Result<Self> {
        let text = fs::read(Self::path_in(data_dir))?;
        serde_json::from_slice(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Writes the file for its owner alone. A reader sees all of it or, until then, what was there before.
    pub fn publish(&self, data_dir: &Path) -> io::Result<Published> {
        let path = Self::path_in(data_dir);
        let draft = data_dir.join(format!(".{FILE_NAME}-{}", std::process::id()));
        // A draft that a killed process left would keep its own mode.
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        let text = serde_json::to_string_pretty(self)?;
        let written = writeln!(file, "{text}").and_then(|()| file.sync_all()).and_then(|()| fs::rename(&draft, &path));
        if let Err(error) = written {
            // The first error is the one to tell.
            let _ = fs::remove_file(&draft);
            return Err(error);
        }
        Ok(Published { path })
    }
}

/// The file as long as the port is open. Dropping this removes it.
#[derive(Debug)]
pub(super) struct Published {
    path: PathBuf,
}

impl Drop for Published {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the control file");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn control_file(port: u16) -> ControlFile {
        let token = Token::random().unwrap();
        ControlFile { address: SocketAddr::from(([127, 0, 0, 1], port)), token, process: 7 }
    }

    #[test]
    fn what_is_published_can_be_read_by_its_owner_alone_and_goes_with_the_port() {
        let data_dir = tempfile::tempdir().unwrap();
        let written = control_file(4711);
        let published = written.publish(data_dir.path()).unwrap();
        let read = ControlFile::read(data_dir.path()).unwrap();
        assert_eq!((read.address, read.process), (written.address, 7));
        assert!(read.token.opens(written.token.as_header().as_bytes()));
        let mode = fs::metadata(ControlFile::path_in(data_dir.path())).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(published);
        assert_eq!(fs::read_dir(data_dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_left_by_a_killed_host_is_replaced_whatever_its_mode() {
        let data_dir = tempfile::tempdir().unwrap();
        let path = ControlFile::path_in(data_dir.path());
        fs::write(&path, "{}").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let _published = control_file(4712).publish(data_dir.path()).unwrap();
        assert_eq!(ControlFile::read(data_dir.path()).unwrap().address.port(), 4712);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
