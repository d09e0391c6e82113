//! One build that is many versions: a mark in the guest's code says which it is and what it does wrong, and a test that
//! wants another version writes another mark into a copy of the file.
//!
//! A mark is a version and, behind a blank, a harm: `restore:refuse`, `restore:trap`, `restore:loop`, `restore:schedule`,
//! `init:trap`, `third` (the third packet, think or message of an instance traps), or nothing.

use std::cell::Cell;
use std::sync::LazyLock;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use wheelhouse_guest::Refusal;

/// What stands before the mark in the file.
const PREFIX: &[u8] = b"changeling=";

/// The mark, filled up with blanks.
static MARK: [u8; 64] = *b"changeling=1                                                    ";

/// What the mark says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub version: String,
    pub harm: String,
}

impl Mark {
    /// The mark in this guest's code.
    pub fn read() -> &'static Self {
        static READ: LazyLock<Mark> = LazyLock::new(|| {
            // SAFETY: it is a static. Read as if it could change, so that the compiler does not know what it says.
            let mark = unsafe { std::ptr::read_volatile(&raw const MARK) };
            let text = String::from_utf8_lossy(&mark[PREFIX.len()..]).trim().to_owned();
            let (version, harm) = text.split_once(' ').unwrap_or((&text, ""));
            Mark { version: version.into(), harm: harm.into() }
        });
        &READ
    }

    /// Does what the mark says is to be done wrong in `call`.
    pub fn misbehave(&self, call: &str) -> Result<(), Refusal> {
        match self.harm.strip_prefix(call).and_then(|harm| harm.strip_prefix(':')) {
            Some("refuse") => Err(Refusal::new("it refuses as its mark says")),
            Some("trap") => panic!("it panics as its mark says"),
            Some("loop") => loop {
                std::hint::spin_loop();
            },
            _ => Ok(()),
        }
    }

    /// Counts a call of this instance; the third traps where the mark says so.
    pub fn count(&self) {
        thread_local! {
            static CALLS: Cell<u32> = const { Cell::new(0) };
        }
        let calls = CALLS.get() + 1;
        CALLS.set(calls);
        assert!(self.harm != "third" || calls != 3, "the third call panics as its mark says");
    }
}

/// A part of a state that takes no room, and misbehaves as the mark says when the state is restored.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Marked;

impl<'de> Deserialize<'de> for Marked {
    fn deserialize<D: Deserializer<'de>>(_deserializer: D) -> Result<Self, D::Error> {
        Mark::read().misbehave("restore").map(|()| Self).map_err(|_| D::Error::custom("it refuses as its mark says"))
    }
}
