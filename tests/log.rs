//! The log of a running program, read line by line as it comes, so that a test can wait for a line.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Instant;

use crate::PATIENCE;

/// What the program has written so far.
#[derive(Clone)]
pub struct Log(Arc<Shared>);

#[derive(Default)]
struct Shared {
    page: Mutex<Page>,
    changed: Condvar,
}

#[derive(Default)]
struct Page {
    lines: Vec<String>,
    is_closed: bool,
}

impl Log {
    /// Reads until the program closes it.
    pub fn follow(stream: impl Read + Send + 'static) -> Self {
        let log = Self(Arc::default());
        let of_thread = log.clone();
        thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            let mut line = Vec::new();
            while matches!(stream.read_until(b'\n', &mut line), Ok(1..)) {
                let text = String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned();
                of_thread.change(|page| page.lines.push(text));
                line.clear();
            }
            of_thread.change(|page| page.is_closed = true);
        });
        log
    }

    fn change(&self, change: impl FnOnce(&mut Page)) {
        change(&mut self.page());
        self.0.changed.notify_all();
    }

    fn page(&self) -> MutexGuard<'_, Page> {
        self.0.page.lock().expect("nobody panics while holding it")
    }

    /// Waits for a line that holds all of `parts`, and answers it.
    pub fn wait_for(&self, parts: &[&str]) -> String {
        self.wait_for_several(1, parts).remove(0)
    }

    /// Waits until as many lines hold all of `parts`, and answers them.
    pub fn wait_for_several(&self, count: usize, parts: &[&str]) -> Vec<String> {
        let until = Instant::now() + PATIENCE;
        let mut page = self.page();
        loop {
            let found: Vec<&String> = page.lines.iter().filter(|line| holds(line, parts)).collect();
            if found.len() >= count {
                return found.into_iter().cloned().collect();
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(
                !page.is_closed && !left.is_zero(),
                "the log has {} of the {count} lines with {parts:?}; its end is\n{}",
                found.len(),
                page.lines[page.lines.len().saturating_sub(60)..].join("\n")
            );
            page = self.0.changed.wait_timeout(page, left).expect("nobody panics while holding it").0;
        }
    }

    /// Waits until the program has closed it, and answers all of it.
    pub fn wait_for_end(&self) -> Vec<String> {
        let page = self.page();
        let closed = self.0.changed.wait_timeout_while(page, PATIENCE, |page| !page.is_closed);
        let (page, timeout) = closed.expect("nobody panics while holding it");
        assert!(!timeout.timed_out(), "the program did not end; its log is\n{}", page.lines.join("\n"));
        page.lines.clone()
    }

    /// The lines so far that hold all of `parts`.
    pub fn lines_with(&self, parts: &[&str]) -> Vec<String> {
        self.page().lines.iter().filter(|line| holds(line, parts)).cloned().collect()
    }
}

fn holds(line: &str, parts: &[&str]) -> bool {
    parts.iter().all(|part| line.contains(part))
}
