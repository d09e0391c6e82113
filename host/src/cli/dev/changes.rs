//! What has changed on disk: paths are gathered until nothing more has come for a moment, since editors write one file in
//! several steps, and a checkout writes many. Pure: whoever calls it knows the time.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// When nothing has come for so long, what came is whole.
pub const QUIET: Duration = Duration::from_millis(40);

/// However much comes, it is not waited for longer.
pub const LONGEST: Duration = Duration::from_millis(1000);

/// Folders that hold what tools have made or fetched: changes in them are nobody's doing.
const MADE: [&str; 5] = ["build", "target", "node_modules", "__pycache__", "wit"];

/// The changes that have come and not been looked at.
#[derive(Debug)]
pub struct Changes {
    /// The folder that is watched.
    root: PathBuf,
    paths: BTreeSet<PathBuf>,
    first: Duration,
    last: Duration,
}

impl Changes {
    /// None yet, below that folder.
    pub fn below(root: &Path) -> Self {
        Self { root: root.to_owned(), paths: BTreeSet::new(), first: Duration::ZERO, last: Duration::ZERO }
    }

    /// Something has changed at the time `now`.
    pub fn note(&mut self, path: &Path, now: Duration) {
        if !is_source(path.strip_prefix(&self.root).unwrap_or(path)) {
            return;
        }
        if self.paths.is_empty() {
            self.first = now;
        }
        self.paths.insert(path.to_owned());
        self.last = now;
    }

    /// How long to wait until they are whole; none when there are none.
    pub fn due_in(&self, now: Duration) -> Option<Duration> {
        let due = (self.last + QUIET).min(self.first + LONGEST);
        (!self.paths.is_empty()).then(|| due.saturating_sub(now))
    }

    /// Takes them, with the time of the first.
    pub fn take(&mut self) -> (BTreeSet<PathBuf>, Duration) {
        (std::mem::take(&mut self.paths), self.first)
    }
}

/// Whether a file is one that somebody writes: not what tools make, and not what editors keep beside it.
fn is_source(path: &Path) -> bool {
    let is_made = |component: Component<'_>| {
        let Component::Normal(name) = component else { return false };
        MADE.iter().any(|made| name == *made) || name.as_encoded_bytes().starts_with(b".")
    };
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let is_kept_beside = name.ends_with(b"~") || name.ends_with(b".swp") || name.ends_with(b".tmp") || name == b"4913";
    !is_kept_beside && name != b"Cargo.lock" && !path.components().any(is_made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    #[test]
    fn changes_are_whole_when_nothing_more_comes() {
        let mut changes = Changes::below(Path::new("/home/.hidden"));
        assert_eq!(changes.due_in(ms(0)), None);
        changes.note(Path::new("wolf/src/lib.rs"), ms(100));
        changes.note(Path::new("wolf/src/lib.rs"), ms(120));
        assert_eq!(changes.due_in(ms(120)), Some(QUIET));
        assert_eq!(changes.due_in(ms(500)), Some(ms(0)));
        let (paths, first) = changes.take();
        assert_eq!((paths.len(), first), (1, ms(100)));
        assert_eq!(changes.due_in(ms(500)), None);
    }

    #[test]
    fn changes_that_never_end_are_looked_at_all_the_same() {
        let mut changes = Changes::below(Path::new("/home/.hidden"));
        (0..100).for_each(|number| changes.note(Path::new("a.js"), ms(number * 20)));
        assert_eq!(changes.due_in(ms(1980)), Some(ms(0)));
    }

    #[test]
    fn what_tools_and_editors_write_is_no_change() {
        let mut changes = Changes::below(Path::new("/home/.hidden"));
        for path in
            ["a/target/debug/x", "a/build/a.wasm", "a/.git/index", "a/src/.lib.rs.swp", "a/lib.rs~", "a/src/4913"]
        {
            changes.note(Path::new(path), ms(1));
        }
        assert_eq!(changes.due_in(ms(1)), None);
        changes.note(Path::new("/home/.hidden/a/src/lib.rs"), ms(1));
        assert!(changes.due_in(ms(1)).is_some(), "what the folder itself is called does not matter");
    }
}
