//! What can be wrong with a configuration: a key, and a complaint about it in one line. The checks make problems, the
//! loader adds the place in the file; nothing here decides what is right.

use std::fmt;

/// One step on the way to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into a table.
    Key(String),
    /// Into an array.
    Index(usize),
}

/// The way to a value, shown as `guests[1].max_memory_mb`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyPath(pub Vec<Step>);

impl KeyPath {
    /// The path of a dotted key without array indices, like `loop.queue_capacity`.
    pub fn of(dotted: &str) -> Self {
        KeyPath(dotted.split('.').map(|key| Step::Key(key.to_owned())).collect())
    }

    /// The key `key` of the guest at `index`.
    pub fn of_guest(index: usize, key: &str) -> Self {
        KeyPath(vec![Step::Key("guests".to_owned()), Step::Index(index), Step::Key(key.to_owned())])
    }

    /// This path and one step more.
    pub fn then(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        KeyPath(steps)
    }

    /// The path without array indices: what the tables of rules are keyed by.
    pub fn without_indices(&self) -> String {
        let keys = self.0.iter().filter_map(|step| match step {
            Step::Key(key) => Some(key.as_str()),
            Step::Index(_) => None,
        });
        keys.collect::<Vec<_>>().join(".")
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if position == 0 => write!(out, "{key}")?,
                Step::Key(key) => write!(out, ".{key}")?,
                Step::Index(index) => write!(out, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Something wrong with one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key.
    pub key: KeyPath,
    /// What is wrong with it and what would be right, to be read after the key.
    pub complaint: String,
}

impl Problem {
    /// A problem with a value, which is shown.
    pub fn with_value(key: KeyPath, value: impl fmt::Display, mend: impl fmt::Display) -> Self {
        let mut shown: String = value.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        if shown.chars().count() > 60 {
            shown = shown.chars().take(57).chain("...".chars()).collect();
        }
        Problem { key, complaint: format!("is {shown}: {mend}") }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.key, self.complaint)
    }
}

/// A configuration that no host starts with. Shows one line for each problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Invalid {
    /// What is wrong; never empty.
    pub problems: Vec<Problem>,
}
