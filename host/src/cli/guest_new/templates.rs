//! The files of the templates, which are in `guest-sdk/templates`, and what is filled in: `{{name}}` and the like.

use std::path::Path;

use super::Lang;
use crate::guest::{Grant, GuestKind};

/// One project to be made.
pub(super) struct Template<'a> {
    pub name: &'a str,
    pub kind: GuestKind,
    pub lang: Lang,
    /// Where the Rust SDK is.
    pub sdk: &'a Path,
}

/// A file of a template: where it goes, and its text.
type File = (&'static str, &'static str);

const README: &str = include_str!("../../../../guest-sdk/templates/README.md");

/// The contract, which every project has a copy of.
const CONTRACT: &[File] = &[
    ("wit/actor.wit", include_str!("../../../../wit/actor.wit")),
    ("wit/async-calls.wit", include_str!("../../../../wit/async-calls.wit")),
    ("wit/bulk.wit", include_str!("../../../../wit/bulk.wit")),
    ("wit/calls.wit", include_str!("../../../../wit/calls.wit")),
    ("wit/clock.wit", include_str!("../../../../wit/clock.wit")),
    ("wit/entities.wit", include_str!("../../../../wit/entities.wit")),
    ("wit/events.wit", include_str!("../../../../wit/events.wit")),
    ("wit/gate.wit", include_str!("../../../../wit/gate.wit")),
    ("wit/groups.wit", include_str!("../../../../wit/groups.wit")),
    ("wit/kv.wit", include_str!("../../../../wit/kv.wit")),
    ("wit/lifecycle.wit", include_str!("../../../../wit/lifecycle.wit")),
    ("wit/log.wit", include_str!("../../../../wit/log.wit")),
    ("wit/metrics.wit", include_str!("../../../../wit/metrics.wit")),
    ("wit/random.wit", include_str!("../../../../wit/random.wit")),
    ("wit/requests.wit", include_str!("../../../../wit/requests.wit")),
    ("wit/services.wit", include_str!("../../../../wit/services.wit")),
    ("wit/shared.wit", include_str!("../../../../wit/shared.wit")),
    ("wit/sockets.wit", include_str!("../../../../wit/sockets.wit")),
    ("wit/stepping.wit", include_str!("../../../../wit/stepping.wit")),
    ("wit/tasks.wit", include_str!("../../../../wit/tasks.wit")),
    ("wit/thinking.wit", include_str!("../../../../wit/thinking.wit")),
    ("wit/timers.wit", include_str!("../../../../wit/timers.wit")),
    ("wit/types.wit", include_str!("../../../../wit/types.wit")),
    ("wit/worlds.wit", include_str!("../../../../wit/worlds.wit")),
];

impl Template<'_> {
    /// All files, by their paths in the project.
    pub fn files(&self) -> Vec<(String, String)> {
        let (name, kind) = (self.name, self.kind);
        let fixed = self.of_language().iter().chain(self.of_kind()).chain(CONTRACT);
        let mut files: Vec<_> = fixed.map(|(path, text)| ((*path).to_owned(), self.filled(text))).collect();
        files.push(("README.md".to_owned(), self.filled(README)));
        if let Some(language) = self.lang.in_project_file() {
            let (source, grants) = (self.source(), self.grants());
            let text = format!(
                "# What `wheelhouse guest build` makes of this folder.\nname = \"{name}\"\nkind = \"{kind}\"\nlanguage = \"{language}\"\n\
                 source = \"{source}\"\n# What it may import: name what you use here and in the host's configuration.\n\
                 grants = [{grants}]\n"
            );
            files.push((super::PROJECT_FILE.to_owned(), text));
        }
        files
    }

    fn of_language(&self) -> &'static [File] {
        match self.lang {
            Lang::Rust => &[
                ("Cargo.toml", include_str!("../../../../guest-sdk/templates/rust/Cargo.toml")),
                (".gitignore", "/build\n/target\n"),
            ],
            Lang::Js => &[
                ("package.json", include_str!("../../../../guest-sdk/templates/js/package.json")),
                (".gitignore", "/build\n/node_modules\n"),
            ],
            Lang::Python => &[
                ("requirements.txt", include_str!("../../../../guest-sdk/templates/python/requirements.txt")),
                (".gitignore", "/build\n/.venv\n__pycache__\n"),
            ],
            Lang::C => {
                &[("Makefile", include_str!("../../../../guest-sdk/templates/c/Makefile")), (".gitignore", "/build\n")]
            }
        }
    }

    fn of_kind(&self) -> &'static [File] {
        match (self.lang, self.kind) {
            (Lang::Rust, GuestKind::Game) => {
                &[("src/lib.rs", include_str!("../../../../guest-sdk/templates/rust/game/lib.rs"))]
            }
            (Lang::Rust, GuestKind::Thinker) => {
                &[("src/lib.rs", include_str!("../../../../guest-sdk/templates/rust/thinker/lib.rs"))]
            }
            (Lang::Rust, GuestKind::StepTask) => {
                &[("src/lib.rs", include_str!("../../../../guest-sdk/templates/rust/step-task/lib.rs"))]
            }
            (Lang::Rust, GuestKind::Job) => {
                &[("src/lib.rs", include_str!("../../../../guest-sdk/templates/rust/job/lib.rs"))]
            }
            (Lang::Rust, GuestKind::Service) => {
                &[("src/lib.rs", include_str!("../../../../guest-sdk/templates/rust/service/lib.rs"))]
            }
            (Lang::Js, GuestKind::Game) => &[
                ("guest.js", include_str!("../../../../guest-sdk/templates/js/game/guest.js")),
                ("logic.js", include_str!("../../../../guest-sdk/templates/js/game/logic.js")),
                ("logic.test.js", include_str!("../../../../guest-sdk/templates/js/game/logic.test.js")),
            ],
            (Lang::Js, GuestKind::Thinker) => &[
                ("guest.js", include_str!("../../../../guest-sdk/templates/js/thinker/guest.js")),
                ("logic.js", include_str!("../../../../guest-sdk/templates/js/thinker/logic.js")),
                ("logic.test.js", include_str!("../../../../guest-sdk/templates/js/thinker/logic.test.js")),
            ],
            (Lang::Js, GuestKind::StepTask) => &[
                ("guest.js", include_str!("../../../../guest-sdk/templates/js/step-task/guest.js")),
                ("logic.js", include_str!("../../../../guest-sdk/templates/js/step-task/logic.js")),
                ("logic.test.js", include_str!("../../../../guest-sdk/templates/js/step-task/logic.test.js")),
            ],
            (Lang::Js, GuestKind::Job) => &[
                ("guest.js", include_str!("../../../../guest-sdk/templates/js/job/guest.js")),
                ("logic.js", include_str!("../../../../guest-sdk/templates/js/job/logic.js")),
                ("logic.test.js", include_str!("../../../../guest-sdk/templates/js/job/logic.test.js")),
            ],
            (Lang::Js, GuestKind::Service) => &[
                ("guest.js", include_str!("../../../../guest-sdk/templates/js/service/guest.js")),
                ("logic.js", include_str!("../../../../guest-sdk/templates/js/service/logic.js")),
                ("logic.test.js", include_str!("../../../../guest-sdk/templates/js/service/logic.test.js")),
            ],
            (Lang::Python, GuestKind::Game) => &[
                ("guest.py", include_str!("../../../../guest-sdk/templates/python/game/guest.py")),
                ("logic.py", include_str!("../../../../guest-sdk/templates/python/game/logic.py")),
                ("test_logic.py", include_str!("../../../../guest-sdk/templates/python/game/test_logic.py")),
            ],
            (Lang::Python, GuestKind::Thinker) => &[
                ("guest.py", include_str!("../../../../guest-sdk/templates/python/thinker/guest.py")),
                ("logic.py", include_str!("../../../../guest-sdk/templates/python/thinker/logic.py")),
                ("test_logic.py", include_str!("../../../../guest-sdk/templates/python/thinker/test_logic.py")),
            ],
            (Lang::Python, GuestKind::StepTask) => &[
                ("guest.py", include_str!("../../../../guest-sdk/templates/python/step-task/guest.py")),
                ("logic.py", include_str!("../../../../guest-sdk/templates/python/step-task/logic.py")),
                ("test_logic.py", include_str!("../../../../guest-sdk/templates/python/step-task/test_logic.py")),
            ],
            (Lang::Python, GuestKind::Job) => &[
                ("guest.py", include_str!("../../../../guest-sdk/templates/python/job/guest.py")),
                ("logic.py", include_str!("../../../../guest-sdk/templates/python/job/logic.py")),
                ("test_logic.py", include_str!("../../../../guest-sdk/templates/python/job/test_logic.py")),
            ],
            (Lang::Python, GuestKind::Service) => &[
                ("guest.py", include_str!("../../../../guest-sdk/templates/python/service/guest.py")),
                ("logic.py", include_str!("../../../../guest-sdk/templates/python/service/logic.py")),
                ("test_logic.py", include_str!("../../../../guest-sdk/templates/python/service/test_logic.py")),
            ],
            (Lang::C, GuestKind::Game) => &[
                ("src/guest.c", include_str!("../../../../guest-sdk/templates/c/game/src/guest.c")),
                ("src/logic.c", include_str!("../../../../guest-sdk/templates/c/game/src/logic.c")),
                ("src/logic.h", include_str!("../../../../guest-sdk/templates/c/game/src/logic.h")),
                ("test/test_logic.c", include_str!("../../../../guest-sdk/templates/c/game/test/test_logic.c")),
            ],
            (Lang::C, GuestKind::Thinker) => &[
                ("src/guest.c", include_str!("../../../../guest-sdk/templates/c/thinker/src/guest.c")),
                ("src/logic.c", include_str!("../../../../guest-sdk/templates/c/thinker/src/logic.c")),
                ("src/logic.h", include_str!("../../../../guest-sdk/templates/c/thinker/src/logic.h")),
                ("test/test_logic.c", include_str!("../../../../guest-sdk/templates/c/thinker/test/test_logic.c")),
            ],
            (Lang::C, GuestKind::StepTask) => &[
                ("src/guest.c", include_str!("../../../../guest-sdk/templates/c/step-task/src/guest.c")),
                ("src/logic.c", include_str!("../../../../guest-sdk/templates/c/step-task/src/logic.c")),
                ("src/logic.h", include_str!("../../../../guest-sdk/templates/c/step-task/src/logic.h")),
                ("test/test_logic.c", include_str!("../../../../guest-sdk/templates/c/step-task/test/test_logic.c")),
            ],
            (Lang::C, GuestKind::Job) => &[
                ("src/guest.c", include_str!("../../../../guest-sdk/templates/c/job/src/guest.c")),
                ("src/logic.c", include_str!("../../../../guest-sdk/templates/c/job/src/logic.c")),
                ("src/logic.h", include_str!("../../../../guest-sdk/templates/c/job/src/logic.h")),
                ("test/test_logic.c", include_str!("../../../../guest-sdk/templates/c/job/test/test_logic.c")),
            ],
            (Lang::C, GuestKind::Service) => &[
                ("src/guest.c", include_str!("../../../../guest-sdk/templates/c/service/src/guest.c")),
                ("src/logic.c", include_str!("../../../../guest-sdk/templates/c/service/src/logic.c")),
                ("src/logic.h", include_str!("../../../../guest-sdk/templates/c/service/src/logic.h")),
                ("test/test_logic.c", include_str!("../../../../guest-sdk/templates/c/service/test/test_logic.c")),
            ],
        }
    }

    /// The language as it is written.
    pub fn language(&self) -> &'static str {
        match self.lang {
            Lang::Rust => "Rust",
            Lang::Js => "JavaScript",
            Lang::Python => "Python",
            Lang::C => "C",
        }
    }

    fn source(&self) -> &'static str {
        match self.lang {
            Lang::Rust | Lang::C => "src",
            Lang::Js => "guest.js",
            Lang::Python => "guest.py",
        }
    }

    /// What the template's code needs.
    fn grants(&self) -> String {
        let needs: &[Grant] = if self.kind == GuestKind::Game { &[Grant::Gate] } else { &[] };
        needs.iter().map(|grant| format!("\"{grant}\"")).collect::<Vec<_>>().join(", ")
    }

    fn filled(&self, text: &str) -> String {
        let what = match self.kind {
            GuestKind::Game => "It keeps a visitor book: whoever sends `hello` hears which visitor it is.",
            GuestKind::Thinker => {
                "Its NPCs pace to and fro, and run from players. A game decides which NPCs it thinks for."
            }
            GuestKind::StepTask => {
                "It counts the primes below a number, some at a step. A game starts it, with the number."
            }
            GuestKind::Job => {
                "It counts the primes below a number, straight through. A game starts it, with the number."
            }
            GuestKind::Service => "It counts: `add 5` adds, any other message asks for the sum.",
        };
        let (prepare, test, more) = match self.lang {
            Lang::Rust => ("", "cargo test", "The SDK's own pages: `cargo doc --open --package wheelhouse-guest`."),
            Lang::Js => ("npm install\n", "node --test", "Names in WIT become camel case: `on-packet` is `onPacket`."),
            Lang::Python => (
                "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt\n",
                "python3 -m unittest",
                "`.venv/bin/componentize-py -d wit -w KIND bindings bindings` writes it down as Python, for editors.",
            ),
            Lang::C => (
                "python3 -m venv .venv && .venv/bin/pip install ziglang    # or have wasi-sdk in /opt/wasi-sdk\n",
                "make test",
                "`guest build` generates the header that `guest.c` includes.",
            ),
        };
        let keys =
            if self.kind == GuestKind::Service { "start = true          # launch one with the host\n" } else { "" };
        let file = format!("build/{}.wasm", self.name);
        [
            ("{{name}}", self.name),
            ("{{kind}}", self.kind.as_str()),
            ("{{language}}", self.language()),
            ("{{what}}", what),
            ("{{prepare}}", prepare),
            ("{{file}}", &file),
            ("{{test}}", test),
            ("{{grants}}", &self.grants()),
            ("{{keys}}", keys),
            ("{{more}}", more),
            ("{{sdk}}", &self.sdk.to_string_lossy()),
        ]
        .into_iter()
        .fold(text.to_owned(), |text, (key, value)| text.replace(key, value))
    }
}
