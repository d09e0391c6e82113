//! The layout of the database and its versions. A version is a file of SQL that brings the one before it forward; what a
//! released version did is never changed. Called when a database is created or brought forward, never in between.

use rusqlite::Connection;
use rusqlite_migration::{M, Migrations};

/// By which a database of Wheelhouse is told from others: `WHLS`.
pub const APPLICATION_ID: i32 = i32::from_be_bytes(*b"WHLS");

const VERSIONS: &[M<'static>] = &[M::up(include_str!("0001_world.sql")), M::up(include_str!("0002_events.sql"))];

/// The version that this program writes.
pub const VERSION: i64 = VERSIONS.len() as i64;

/// Brings a database forward to [`VERSION`], each step as a whole or not at all.
pub fn bring_forward(connection: &mut Connection) -> Result<(), rusqlite_migration::Error> {
    Migrations::from_slice(VERSIONS).to_latest(connection)
}

/// Lays an empty database out as an older version did.
#[cfg(test)]
pub fn lay_out(connection: &mut Connection, version: usize) -> Result<(), rusqlite_migration::Error> {
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    Migrations::from_slice(VERSIONS).to_version(connection, version)
}
