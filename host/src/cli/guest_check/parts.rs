//! What a guest's file is made of: how long it is, the memory that it begins with, and the tools that made it, as far as
//! they have left their names in it.

use std::fmt::Write;

use serde::Serialize;
use wasmparser::{KnownCustom, Parser, Payload};

const KIB: u64 = 1024;

/// The parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Parts {
    /// Length of the file.
    pub file_bytes: u64,
    /// Length of the component that the host makes of it, where it is a core module.
    pub component_bytes: Option<u64>,
    /// What its memories begin with.
    pub memory_bytes: u64,
    /// What they may grow to by themselves, where it says so; the host limits them in any case.
    pub max_memory_bytes: Option<u64>,
    /// The language, if the tools tell.
    pub language: Option<String>,
    /// The tools that made it, with their versions.
    pub made_by: Vec<String>,
}

impl Parts {
    /// Looks through a file and the component that it is, or becomes.
    pub fn of(file: &[u8], component: &[u8]) -> Self {
        let is_encoded = file.len() != component.len();
        let mut parts = Self {
            file_bytes: file.len() as u64,
            component_bytes: is_encoded.then_some(component.len() as u64),
            ..Self::default()
        };
        let (mut languages, mut exports) = (Vec::new(), Vec::new());
        let (mut memory, mut max) = (0, Some(0));
        for payload in Parser::new(0).parse_all(component).map_while(Result::ok) {
            match payload {
                Payload::MemorySection(memories) => {
                    for found in memories.into_iter().map_while(Result::ok) {
                        let page = 1_u64 << found.page_size_log2.unwrap_or(16);
                        memory += found.initial * page;
                        max = max.zip(found.maximum).map(|(sum, pages)| sum + pages * page);
                    }
                }
                Payload::CustomSection(section) => {
                    if let KnownCustom::Producers(fields) = section.as_known() {
                        note_producers(fields, &mut languages, &mut parts.made_by);
                    }
                }
                Payload::ExportSection(section) => {
                    exports.extend(section.into_iter().map_while(Result::ok).map(|export| export.name.to_owned()));
                }
                _ => {}
            }
        }
        parts.memory_bytes = memory;
        parts.max_memory_bytes = max.filter(|bytes| *bytes > 0);
        parts.made_by.dedup();
        parts.language = language(&languages, &parts.made_by, &exports);
        parts
    }

    /// Lines for a person.
    pub fn in_words(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = match self.component_bytes {
            None => writeln!(text, "it has {} KiB", self.file_bytes.div_ceil(KIB)),
            Some(component) => writeln!(
                text,
                "it is a core module of {} KiB, of which the host makes a component of {} KiB",
                self.file_bytes.div_ceil(KIB),
                component.div_ceil(KIB)
            ),
        };
        let most = self.max_memory_bytes.map(|bytes| format!(", and grows to {} KiB at most", bytes / KIB));
        let _ = writeln!(text, "it begins with {} KiB of memory{}", self.memory_bytes / KIB, most.unwrap_or_default());
        let tools = if self.made_by.is_empty() { String::new() } else { format!(" ({})", self.made_by.join(", ")) };
        let _ = match &self.language {
            Some(language) => writeln!(text, "it is written in {language}{tools}"),
            None => writeln!(text, "it does not say in which language it is written{tools}"),
        };
        text
    }
}

fn note_producers(
    fields: wasmparser::ProducersSectionReader<'_>,
    languages: &mut Vec<String>,
    tools: &mut Vec<String>,
) {
    for field in fields.into_iter().map_while(Result::ok) {
        for value in field.values.into_iter().map_while(Result::ok) {
            if field.name == "language" {
                languages.push(value.name.to_owned());
            } else {
                let tool = format!("{} {}", value.name, value.version.split(' ').next().unwrap_or_default());
                if !tools.contains(&tool) && !value.name.starts_with("wit-component") {
                    tools.push(tool);
                }
            }
        }
    }
}

/// The language in which the author has written: the engines of other languages are written in some of their own.
fn language(told: &[String], tools: &[String], exports: &[String]) -> Option<String> {
    let has = |name: &str| tools.iter().any(|tool| tool.to_lowercase().contains(name));
    let exports = |name: &str| exports.iter().any(|export| export.contains(name));
    if has("componentize-py") || exports("componentize_py") {
        return Some("Python".to_owned());
    }
    if has("componentize-js") || has("componentizejs") || has("starling") || exports("StarlingMonkey") {
        return Some("JavaScript".to_owned());
    }
    for (name, shown) in [("Rust", "Rust"), ("TinyGo", "Go"), ("Go", "Go"), ("C_plus_plus", "C++"), ("C11", "C")] {
        if told.iter().any(|language| language == name) {
            return Some(shown.to_owned());
        }
    }
    if has("tinygo") {
        return Some("Go".to_owned());
    }
    (has("clang") || has("zig") || has("wit-bindgen-c")).then(|| "C".to_owned()).or_else(|| told.first().cloned())
}
