//! What is told of the versions of a guest's code: those that run or have run, and how a swap went. Plain data; the server
//! keeps the books.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One version of a guest's code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// Counted from 1 and never used again for this guest.
    pub number: u64,
    /// SHA-256 of the file, in hexadecimal digits.
    pub hash: String,
    /// Length of the file.
    pub bytes: u64,
    /// The file that it came from.
    pub file: PathBuf,
    /// When it began to run, in milliseconds since 1970.
    pub since_ms: u64,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It runs.
    Running,
    /// Another took its place.
    Replaced,
    /// It failed in its probation, and the one before came back. The reason is its last failure.
    Failed(String),
    /// An operator had the one before come back.
    TakenBack,
}

/// How a swap went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swapped {
    pub guest: String,
    /// The generation that runs now.
    pub generation: u64,
    /// SHA-256 of its file, in hexadecimal digits.
    pub hash: String,
    /// Time from the order to the end.
    pub took_ms: u64,
    /// The part of it that compiling took.
    pub compile_ms: u64,
    /// The longest that the loop served nobody because of it.
    pub pause_us: u64,
    /// It was that very file which ran already: nothing was done.
    pub is_unchanged: bool,
    /// What whoever ordered it should know besides, a sentence each.
    pub notes: Vec<String>,
}
