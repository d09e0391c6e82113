//! The book of generations: which versions of each guest's code have run, kept in the data directory with their files and
//! what they saved last, so that any of the last few can come back. It also decides what a host runs at its start: the
//! file that the configuration names, or what was swapped in last, if that file is still the one it was then.
//!
//! Whoever swaps calls it, from any thread but the loop's: it reads and writes files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::guest::{Fate, Generation, GuestSettings};

/// The file in a guest's folder that says which generations there are.
const HISTORY_FILE: &str = "history.json";

/// All guests' generations.
#[derive(Debug)]
pub struct Generations {
    folder: PathBuf,
    keep: usize,
    histories: Mutex<BTreeMap<String, History>>,
}

/// One guest's.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct History {
    /// SHA-256 of the file that the configuration named when the generation that runs began to.
    configured: String,
    /// Oldest first.
    generations: Vec<Generation>,
}

impl History {
    fn running(&self) -> Option<&Generation> {
        self.generations.iter().rfind(|generation| generation.fate == Fate::Running)
    }

    fn next_number(&self) -> u64 {
        self.generations.iter().map(|generation| generation.number).max().unwrap_or(0) + 1
    }

    fn settle(&mut self, number: u64, fate: Fate) {
        if let Some(generation) = self.generations.iter_mut().find(|generation| generation.number == number) {
            generation.fate = fate;
        }
    }
}

/// New code that has begun to run.
pub struct Begun<'a> {
    pub guest: &'a GuestSettings,
    pub number: u64,
    pub bytes: &'a [u8],
    /// Where it came from.
    pub file: &'a Path,
    pub now_ms: u64,
}

impl Generations {
    /// The book in a folder, which need not be there yet.
    pub fn open(folder: PathBuf, keep: usize) -> Self {
        // What runs and what it could go back to.
        Self { folder, keep: keep.max(2), histories: Mutex::default() }
    }

    /// What a guest runs at the start of a host, whose configured file holds `configured`: `load` is tried with that, or
    /// first with what was swapped in last. Answers the code, and the number of its generation.
    pub fn begin<C>(
        &self,
        guest: &GuestSettings,
        configured: &[u8],
        now_ms: u64,
        load: impl Fn(&[u8], &Path) -> Option<C>,
    ) -> (Option<C>, u64) {
        let hash = hash_of(configured);
        let mut history = self.read(&guest.name);
        let last = history.running().cloned();
        let is_as_it_was = history.configured == hash;
        let other = last.as_ref().filter(|last| last.hash != hash);
        let load_kept = |last: &Generation| {
            let bytes = self.code(&guest.name, last).ok()?;
            load(&bytes, &self.code_file(&guest.name, last.number))
        };
        if let Some(last) = other.filter(|_| is_as_it_was)
            && let Some(code) = load_kept(last)
        {
            tracing::info!(
                guest = guest.name,
                generation = last.number,
                file = %last.file.display(),
                "a guest runs what was swapped in last, and not its configured file, which is as it was then"
            );
            let number = last.number;
            self.lock().insert(guest.name.clone(), history);
            return (Some(code), number);
        }
        match (load(configured, &guest.file), last) {
            (Some(code), Some(last)) if last.hash == hash => {
                history.configured = hash;
                self.keep_history(guest, history);
                (Some(code), last.number)
            }
            (Some(code), _) => {
                let number = history.next_number();
                self.lock().insert(guest.name.clone(), history);
                self.note_begun(&Begun { guest, number, bytes: configured, file: &guest.file, now_ms });
                (Some(code), number)
            }
            (None, last) => {
                let kept =
                    last.filter(|last| last.hash != hash).and_then(|last| Some((load_kept(&last)?, last.number)));
                if let Some((_, generation)) = &kept {
                    tracing::error!(
                        guest = guest.name,
                        generation,
                        "a guest runs what it ran last in place of that file"
                    );
                }
                let number = kept.as_ref().map_or_else(|| history.next_number(), |(_, number)| *number);
                self.lock().insert(guest.name.clone(), history);
                (kept.map(|(code, _)| code), number)
            }
        }
    }

    /// The number that the next new code of a guest gets.
    pub fn next_number(&self, guest: &str) -> u64 {
        self.lock().get(guest).map_or(1, History::next_number)
    }

    /// The generations of a guest that are kept, oldest first.
    pub fn of(&self, guest: &str) -> Vec<Generation> {
        self.lock().get(guest).map(|history| history.generations.clone()).unwrap_or_default()
    }

    /// The one that runs.
    pub fn running(&self, guest: &str) -> Option<Generation> {
        self.lock().get(guest)?.running().cloned()
    }

    /// The one that is to come back when the one that runs is taken back: the last before it that has not failed.
    pub fn before(&self, guest: &str) -> Option<Generation> {
        let histories = self.lock();
        let history = histories.get(guest)?;
        let running = history.running()?.number;
        let is_good = |fate: &Fate| !matches!(fate, Fate::Failed(_));
        let mut all = history.generations.iter();
        all.rfind(|generation| generation.number < running && is_good(&generation.fate)).cloned()
    }

    /// The file of a generation, if it is still what it was.
    pub fn code(&self, guest: &str, generation: &Generation) -> io::Result<Vec<u8>> {
        let bytes = fs::read(self.code_file(guest, generation.number))?;
        if hash_of(&bytes) == generation.hash {
            Ok(bytes)
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidData, "it is not the file that was kept"))
        }
    }

    /// What a generation saved last, if it was replaced.
    pub fn state(&self, guest: &str, number: u64) -> Option<Vec<u8>> {
        fs::read(self.state_file(guest, number)).ok()
    }

    /// Notes that new code has begun to run, and keeps its file.
    pub fn note_begun(&self, begun: &Begun<'_>) {
        let Begun { guest, number, bytes, file, now_ms } = *begun;
        let mut history = self.lock().get(&guest.name).cloned().unwrap_or_default();
        if let Some(running) = history.running().map(|running| running.number) {
            history.settle(running, Fate::Replaced);
        }
        let hash = hash_of(bytes);
        history.configured = configured_hash(guest, file, &hash).unwrap_or(history.configured);
        history.generations.push(Generation {
            number,
            hash,
            bytes: bytes.len() as u64,
            file: file.to_owned(),
            since_ms: now_ms,
            fate: Fate::Running,
        });
        let too_many = history.generations.len().saturating_sub(self.keep);
        for old in history.generations.drain(..too_many) {
            let _ = fs::remove_file(self.code_file(&guest.name, old.number));
            let _ = fs::remove_file(self.state_file(&guest.name, old.number));
        }
        tell(guest, write(&self.code_file(&guest.name, number), bytes));
        self.keep_history(guest, history);
    }

    /// Keeps what a generation saved when it was replaced.
    pub fn keep_state(&self, guest: &GuestSettings, number: u64, state: Option<&[u8]>) {
        let file = self.state_file(&guest.name, number);
        match state {
            Some(state) => tell(guest, write(&file, state)),
            None => drop(fs::remove_file(file)),
        }
    }

    /// Notes that the generation `to` has come back in place of `from`, of which `fate` is told.
    pub fn note_returned(&self, guest: &GuestSettings, from: u64, to: u64, fate: Fate, now_ms: u64) {
        let mut history = self.lock().get(&guest.name).cloned().unwrap_or_default();
        history.settle(from, fate);
        if let Some(back) = history.generations.iter_mut().find(|generation| generation.number == to) {
            back.fate = Fate::Running;
            back.since_ms = now_ms;
        }
        if let Some(hash) = configured_hash(guest, Path::new(""), "") {
            history.configured = hash;
        }
        self.keep_history(guest, history);
    }

    fn keep_history(&self, guest: &GuestSettings, history: History) {
        // A history is numbers and strings: it is JSON.
        let text = serde_json::to_vec_pretty(&history).unwrap_or_default();
        tell(guest, write(&self.folder.join(&guest.name).join(HISTORY_FILE), &text));
        self.lock().insert(guest.name.clone(), history);
    }

    fn read(&self, guest: &str) -> History {
        let text = fs::read(self.folder.join(guest).join(HISTORY_FILE)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn code_file(&self, guest: &str, number: u64) -> PathBuf {
        self.folder.join(guest).join(format!("{number}.wasm"))
    }

    fn state_file(&self, guest: &str, number: u64) -> PathBuf {
        self.folder.join(guest).join(format!("{number}.state"))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, History>> {
        // What it guards is whole between any two statements.
        self.histories.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// SHA-256 in hexadecimal digits.
pub fn hash_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The hash of a guest's configured file as it is now, which may be the very file that has begun to run.
fn configured_hash(guest: &GuestSettings, file: &Path, hash: &str) -> Option<String> {
    let is_same =
        file == guest.file || matches!((file.canonicalize(), guest.file.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if is_same { Some(hash.to_owned()) } else { fs::read(&guest.file).ok().map(|bytes| hash_of(&bytes)) }
}

/// Writes a file whole or not at all.
fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut temporary = NamedTempFile::new_in(folder)?;
    temporary.write_all(bytes)?;
    temporary.persist(file).map(drop).map_err(|error| error.error)
}

/// A book that cannot be kept keeps nobody from running: it is told.
fn tell(guest: &GuestSettings, written: io::Result<()>) {
    if let Err(error) = written {
        tracing::error!(
            guest = guest.name,
            "a generation is not kept, so that it will not come back: {error}; make room"
        );
    }
}

#[cfg(test)]
#[path = "generations_tests.rs"]
mod tests;
