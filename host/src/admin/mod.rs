//! How an operator reaches a running host: the data directory that belongs to one host at a time, the control port on
//! the loopback interface, the client that the commands use, and what it answers as tables. The server implements
//! [`HostControl`]; this room carries questions and answers and decides nothing by itself.

mod cells;
mod client;
mod client_events;
mod control_file;
mod control_port;
mod data_dir;
mod event_json;
mod event_table;
mod generation_table;
mod host_control;
mod options;
mod routes;
mod service_table;
mod status;
mod token;

pub use client::{ControlClient, ControlClientError};
pub use client_events::{EventFilter, EventPages};
pub use control_port::{BoundControlPort, ControlPort, ControlPortError};
pub use data_dir::{DataDir, DataDirError};
pub use event_json::event_sequence;
pub use event_table::{EventTable, event_details};
pub use generation_table::generation_table;
pub use host_control::{ControlError, HostControl, LostMessages, ServiceList};
pub use options::{AdminOptionError, AdminOptions};
pub use service_table::{dead_letter_table, service_table};
pub use status::status_table;

#[cfg(test)]
mod control_tests;
#[cfg(test)]
mod operator_tests;
#[cfg(test)]
mod test_host;
