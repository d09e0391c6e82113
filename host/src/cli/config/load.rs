//! Reads a [`Config`] from a TOML file. Every command with `--config` calls [`load`]. What is wrong comes back as one
//! line each, with the file and the line in it, the key, its value and what would be right; a file with anything wrong
//! gives no configuration at all.

use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::known_keys;
use crate::server::config::rules::complaint_about_number;
use crate::server::config::{Config, KeyPath, Problem, Step};

/// Why a file gave no configuration.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is no such file.
    #[error(
        "{} is not there: copy wheelhouse.example.toml and edit it, or name another file with --config",
        .file.display()
    )]
    NotThere {
        /// The file.
        file: PathBuf,
    },
    /// The file is there but cannot be read as text.
    #[error("{} cannot be read: {source}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{}:{line}:{column}: {message}", .file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// The file is TOML, but no configuration. Shows one line for each problem.
    #[error("{}", lines(.problems))]
    Wrong {
        /// What is wrong, in order of the file; never empty.
        problems: Vec<PlacedProblem>,
    },
}

/// A problem and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedProblem {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; none where the key is not in the file.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: Problem,
}

impl fmt::Display for PlacedProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:", self.file.display())?;
        if let Some(line) = self.line {
            write!(out, "{line}:")?;
        }
        write!(out, " {}", self.problem)
    }
}

fn lines(problems: &[PlacedProblem]) -> String {
    problems.iter().map(PlacedProblem::to_string).collect::<Vec<_>>().join("\n")
}

/// Reads and checks a configuration. Paths in it that are relative start at the directory of the file.
pub fn load(file: &Path) -> Result<Config, LoadError> {
    let text = std::fs::read_to_string(file).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => LoadError::NotThere { file: file.to_owned() },
        _ => LoadError::Unreadable { file: file.to_owned(), source },
    })?;
    parse(&text, file)
}

/// Checks the text of a configuration as if it stood in `file`, which need not be there.
pub fn parse(text: &str, file: &Path) -> Result<Config, LoadError> {
    let document = DeTable::parse(text).map_err(|error| malformed(text, file, &error))?;

    let shape = known_keys::full_shape();
    let mut check = ShapeCheck { text, shape: &shape, found: Vec::new() };
    check.table(&shape, document.get_ref(), &KeyPath::default(), None);
    if !check.found.is_empty() {
        return Err(placed(text, file, check.found));
    }

    let mut config: Config = toml::from_str(text).map_err(|error| malformed(text, file, &error))?;
    if let Err(invalid) = config.validate() {
        let find = |problem: Problem| (span_of(document.get_ref(), &problem.key), problem);
        return Err(placed(text, file, invalid.problems.into_iter().map(find).collect()));
    }
    let directory = file.parent().unwrap_or(Path::new(""));
    config.data_dir = directory.join(&config.data_dir);
    let gate = &mut config.gate.options;
    for file in [&mut gate.tls_certificate, &mut gate.tls_key].into_iter().flatten() {
        *file = directory.join(&*file);
    }
    for guest in &mut config.guests {
        guest.file = directory.join(&guest.file);
    }
    Ok(config)
}

fn malformed(text: &str, file: &Path, error: &toml::de::Error) -> LoadError {
    let offset = error.span().map_or(0, |span| span.start);
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    LoadError::Malformed {
        file: file.to_owned(),
        line: line_at(text, offset),
        column: before[line_start..].chars().count() + 1,
        message: error.message().split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

fn placed(text: &str, file: &Path, found: Vec<(Option<Range<usize>>, Problem)>) -> LoadError {
    let place = |(span, problem): (Option<Range<usize>>, Problem)| PlacedProblem {
        file: file.to_owned(),
        line: span.map(|span| line_at(text, span.start)),
        problem,
    };
    let mut problems: Vec<PlacedProblem> = found.into_iter().map(place).collect();
    problems.sort_by_key(|problem| problem.line);
    LoadError::Wrong { problems }
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// Where the value under `key` stands, or the innermost table around it that is in the file.
fn span_of(document: &DeTable<'_>, key: &KeyPath) -> Option<Range<usize>> {
    let (first, rest) = key.0.split_first()?;
    let Step::Key(name) = first else { return None };
    let mut value = document.get(name.as_str())?;
    for step in rest {
        let inner = match (step, value.get_ref()) {
            (Step::Key(name), DeValue::Table(table)) => table.get(name.as_str()),
            (Step::Index(at), DeValue::Array(values)) => values.get(*at),
            _ => None,
        };
        match inner {
            Some(inner) => value = inner,
            None => break,
        }
    }
    Some(value.span())
}

/// Holds a document against the shape of a full configuration and gathers what does not fit.
struct ShapeCheck<'a> {
    text: &'a str,
    shape: &'a Value,
    found: Vec<(Option<Range<usize>>, Problem)>,
}

impl ShapeCheck<'_> {
    fn table(&mut self, shape: &Value, table: &DeTable<'_>, path: &KeyPath, span: Option<Range<usize>>) {
        let known: Vec<&str> = shape.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let path_of_key = path.then(Step::Key(name.to_owned()));
            match shape.get(name) {
                Some(shape) => self.value(shape, value, &path_of_key),
                None => {
                    let complaint = known_keys::complaint_about_unknown(self.shape, path, &known, name);
                    self.found.push((Some(key.span()), Problem { key: path_of_key, complaint }));
                }
            }
        }
        for required in known_keys::required_in(path).iter().filter(|key| !table.contains_key(**key)) {
            let problem = Problem {
                key: path.then(Step::Key((*required).to_owned())),
                complaint: "is missing: every guest needs name, kind and file".to_owned(),
            };
            self.found.push((span.clone(), problem));
        }
    }

    fn value(&mut self, shape: &Value, value: &Spanned<DeValue<'_>>, path: &KeyPath) {
        match (shape, value.get_ref()) {
            (_, DeValue::Table(table)) if path.without_indices() == "guests.config" => self.own_table(table, path),
            (Value::Object(_), DeValue::Table(table)) => self.table(shape, table, path, Some(value.span())),
            (Value::Array(shapes), DeValue::Array(values)) => {
                for (at, value) in values.iter().enumerate() {
                    self.value(&shapes[0], value, &path.then(Step::Index(at)));
                }
            }
            (Value::Number(_), DeValue::Integer(number)) => {
                // Out of the range of i128 is out of any range here, whichever way.
                let parsed = i128::from_str_radix(&number.as_str().replace('_', ""), number.radix());
                if let Some(mend) = complaint_about_number(path, parsed.unwrap_or(i128::MAX)) {
                    self.wrong(value, path, mend);
                }
            }
            (Value::String(_), DeValue::String(word)) => self.word(value, word, path),
            (Value::Bool(_), DeValue::Boolean(_)) => {}
            _ => self.wrong(value, path, wanted(shape, path)),
        }
    }

    fn word(&mut self, value: &Spanned<DeValue<'_>>, word: &str, path: &KeyPath) {
        if path.without_indices().ends_with("listen") && word.parse::<SocketAddr>().is_err() {
            self.wrong(value, path, "it must be an IP address and a port, like \"127.0.0.1:7171\"");
        }
        let Some(words) = known_keys::words_of(path) else { return };
        if words.contains(&word) {
            return;
        }
        match (known_keys::complaint_about_word(path, word), known_keys::nearest(&words, word, 0.5)) {
            (Some(reason), _) => self.wrong(value, path, reason),
            (None, Some(near)) => self.wrong(value, path, format!("did you mean \"{near}\"?")),
            (None, None) => self.wrong(value, path, format!("it must be one of {}", words.join(", "))),
        }
    }

    /// A guest's own table: anything that JSON can say.
    fn own_table(&mut self, table: &DeTable<'_>, path: &KeyPath) {
        for (key, value) in table {
            self.own_value(value, &path.then(Step::Key(key.get_ref().to_string())));
        }
    }

    fn own_value(&mut self, value: &Spanned<DeValue<'_>>, path: &KeyPath) {
        match value.get_ref() {
            DeValue::Table(table) => self.own_table(table, path),
            DeValue::Array(values) => {
                for (at, value) in values.iter().enumerate() {
                    self.own_value(value, &path.then(Step::Index(at)));
                }
            }
            DeValue::Datetime(_) => self.wrong(value, path, "JSON has no dates; write it as a string"),
            DeValue::Float(number) if !number.as_str().parse().is_ok_and(f64::is_finite) => {
                self.wrong(value, path, "JSON has only finite numbers");
            }
            DeValue::Integer(number) if i64::from_str_radix(number.as_str(), number.radix()).is_err() => {
                self.wrong(value, path, "it must fit in 64 bits");
            }
            _ => {}
        }
    }

    fn wrong(&mut self, value: &Spanned<DeValue<'_>>, path: &KeyPath, mend: impl fmt::Display) {
        let source = self.text.get(value.span()).unwrap_or_default();
        self.found.push((Some(value.span()), Problem::with_value(path.clone(), source, mend)));
    }
}

fn wanted(shape: &Value, path: &KeyPath) -> String {
    let section = path.without_indices();
    match shape {
        Value::Array(_) if section == "guests" => "guests are written as [[guests]], one for each".to_owned(),
        Value::Array(_) if section == "guests.sockets" => {
            "it must be a list, like [\"db.example.org:5432\"]".to_owned()
        }
        Value::Array(_) => "it must be a list, like [\"entities\", \"kv\"]".to_owned(),
        Value::Object(_) => format!("it must be a table, [{section}]"),
        Value::Number(_) => "it must be a whole number".to_owned(),
        Value::Bool(_) => "it must be true or false".to_owned(),
        _ => "it must be a string in quotes".to_owned(),
    }
}
