//! How an operator reaches a running host: the data directory that belongs to one host at a time, the control port on
//! the loopback interface, the client that `wheelhouse status` uses, and the status as a table. The server implements
//! [`HostControl`]; this room carries questions and answers and decides nothing by itself.

mod client;
mod control_file;
mod control_port;
mod data_dir;
mod options;
mod status;
mod token;

pub use client::{ControlClient, ControlClientError};
pub use control_port::{BoundControlPort, ControlError, ControlPort, ControlPortError, HostControl};
pub use data_dir::{DataDir, DataDirError};
pub use options::{AdminOptionError, AdminOptions};
pub use status::status_table;

#[cfg(test)]
mod control_tests;
