//! The configuration that a test gives its host: the defaults, free ports, and what the test says otherwise.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The folder of the whole project.
pub fn workspace() -> &'static Path {
    tests_folder().parent().expect("the tests are in a folder of the workspace")
}

/// The folder of the tests.
pub fn tests_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A configuration in the making.
#[derive(Clone, Debug)]
pub struct Config {
    keys: Vec<(String, String)>,
    guests: Vec<Guest>,
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl Config {
    /// The defaults, with free ports and a data directory `data` in the world's folder.
    pub fn new() -> Self {
        let free_port = "\"127.0.0.1:0\"";
        let config = Self { keys: Vec::new(), guests: Vec::new() };
        config.set("data_dir", "\"data\"").set("gate.listen", free_port).set("admin.listen", free_port)
    }

    /// Sets a key, written with dots, to a value, written as in TOML.
    pub fn set(mut self, key: &str, value: impl ToString) -> Self {
        self.keys.retain(|(known, _)| known != key);
        self.keys.push((key.to_owned(), value.to_string()));
        self
    }

    /// Lets guests have so little memory that they have filled it long before their deadline, also on a busy machine.
    pub fn with_little_memory(self) -> Self {
        self.set("guest.max_memory_mb", 8)
    }

    /// Lets guests take as long as they like, for tests that are about something else: on a machine that is busy enough a
    /// start, or a packet, takes longer than a guest usually may.
    pub fn patient(self) -> Self {
        self.set("guest.deadline_ms", 5000).set("guest.init_deadline_ms", 5000)
    }

    /// Adds a guest.
    pub fn guest(mut self, guest: Guest) -> Self {
        self.guests.push(guest);
        self
    }

    /// The text of the file.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for (key, value) in &self.keys {
            writeln!(text, "{key} = {value}").expect("a string takes everything");
        }
        self.guests.iter().for_each(|guest| text.push_str(&guest.to_toml()));
        text
    }
}

/// A guest of a configuration.
#[derive(Clone, Debug)]
pub struct Guest {
    name: String,
    kind: String,
    file: PathBuf,
    grants: Vec<String>,
    /// Further keys of its entry.
    entry: String,
    config: String,
}

impl Guest {
    /// A guest with every grant that its kind can have; a service may connect to this machine.
    pub fn new(name: &str, kind: &str, file: impl Into<PathBuf>) -> Self {
        let grants: &[&str] = match kind {
            "game" => &["timers", "tasks", "events", "entities", "kv", "services", "gate", "metrics"],
            "service" => &["services", "sockets", "gate", "metrics"],
            "job" => &["metrics"],
            _ => &["entities", "kv", "metrics"],
        };
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            file: file.into(),
            grants: grants.iter().map(ToString::to_string).collect(),
            entry: if kind == "service" { "sockets = [\"127.0.0.1:*\"]\n".to_owned() } else { String::new() },
            config: String::new(),
        }
    }

    /// The same guest under another name.
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Sets a key of the guest's entry to a value, written as in TOML.
    pub fn key(mut self, key: &str, value: impl ToString) -> Self {
        writeln!(self.entry, "{key} = {}", value.to_string()).expect("a string takes everything");
        self
    }

    /// Sets a key of the guest's own table to a value, written as in TOML.
    pub fn set(mut self, key: &str, value: impl ToString) -> Self {
        writeln!(self.config, "{key} = {}", value.to_string()).expect("a string takes everything");
        self
    }

    /// Has the guest do the harm of that name, in the call that `when` names.
    pub fn misbehave(self, harm: &str, when: &str) -> Self {
        self.set("misbehave", format!("{harm:?}")).set("when", format!("{when:?}"))
    }

    /// Takes a grant away.
    pub fn without(mut self, grant: &str) -> Self {
        self.grants.retain(|granted| granted != grant);
        self
    }

    fn to_toml(&self) -> String {
        let Self { name, kind, file, grants, entry, config } = self;
        let needed = format!("name = {name:?}\nkind = {kind:?}\nfile = {file:?}\ngrants = {grants:?}");
        format!("[[guests]]\n{needed}\n{entry}[guests.config]\n{config}")
    }
}

/// The hostile guest of a kind, from `tests/guests`.
pub fn hostile(name: &str, kind: &str) -> Guest {
    let package = if kind == "step-task" { "hostile-step".to_owned() } else { format!("hostile-{kind}") };
    Guest::new(name, kind, built(&tests_folder().join("guests"), &package))
}

/// Another guest from `tests/guests`, under the name of its package.
pub fn helpful(package: &str, kind: &str) -> Guest {
    Guest::new(package, kind, built(&tests_folder().join("guests"), package))
}

/// The guest that keeps ledgers and schedules events, from `tests/guests`.
pub fn ledger() -> Guest {
    Guest::new("ledger", "game", built(&tests_folder().join("guests"), "ledger"))
}

/// A guest of the example world.
pub fn example(name: &str, kind: &str) -> Guest {
    Guest::new(name, kind, built(&workspace().join("guests"), name))
}

pub(crate) fn built(folder: &Path, package: &str) -> PathBuf {
    let file = folder.join(format!("build/{package}.wasm"));
    assert!(
        file.is_file(),
        "{} is not built: run `just test`, or `wheelhouse guest build guests tests/guests` before the tests",
        file.display()
    );
    file
}
