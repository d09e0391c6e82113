//! The keys there are, with the type of each, and which one was meant by a key that there is not. The loader asks; the
//! answer comes from the settings themselves, serialised, so that no second list can fall behind them.

use std::path::PathBuf;

use serde_json::Value;

use crate::guest::component::grant_of;
use crate::guest::{Grant, GuestKind, GuestSettings, RestartPolicy};
use crate::server::config::{Config, KeyPath};

/// A configuration in which every key has a value, as JSON: the shape that a file is held against.
pub fn full_shape() -> Value {
    let mut config = Config::default();
    config.gate.guest = Some(String::new());
    config.gate.watchdog = Some(String::new());
    config.service.threads = Some(1);
    let gate = &mut config.gate.options;
    gate.websocket_listen = Some(gate.listen);
    gate.tls_certificate = Some(PathBuf::new());
    gate.tls_key = Some(PathBuf::new());
    let mut guest = GuestSettings::new("", GuestKind::Game, PathBuf::new());
    guest.grants.push(Grant::Kv);
    guest.arguments = Some(String::new());
    guest.sockets.push(String::new());
    guest.max_memory_mb = Some(config.guest.max_memory_mb);
    config.guests.push(guest);
    // Settings hold numbers, strings and maps with string keys: all of that is JSON.
    serde_json::to_value(config).unwrap_or_default()
}

/// Keys that may not be left out, by the table they belong to.
pub fn required_in(table: &KeyPath) -> &'static [&'static str] {
    if table.without_indices() == "guests" { &["name", "kind", "file"] } else { &[] }
}

/// The words that a key takes, where it takes only certain ones.
pub fn words_of(key: &KeyPath) -> Option<Vec<&'static str>> {
    match key.without_indices().as_str() {
        "log.level" => Some(vec!["error", "warn", "info", "debug", "trace"]),
        "log.format" => Some(vec!["text", "json"]),
        "guests.kind" => Some(GuestKind::ALL.map(GuestKind::as_str).to_vec()),
        "guests.grants" => Some(Grant::ALL.map(Grant::as_str).to_vec()),
        "guests.restart" => Some(RestartPolicy::ALL.map(RestartPolicy::as_str).to_vec()),
        _ => None,
    }
}

/// Why a word that the contract knows is none that the key takes.
pub fn complaint_about_word(key: &KeyPath, word: &str) -> Option<String> {
    if key.without_indices() != "guests.grants" {
        return None;
    }
    match word {
        "log" | "clock" | "random" => Some("every guest has it without a grant; leave it out".to_owned()),
        _ => grant_of(word).map(|grant| format!("that interface is part of the grant \"{grant}\"")),
    }
}

/// What to say about the unknown key `key` of the table at `table`.
pub fn complaint_about_unknown(shape: &Value, table: &KeyPath, siblings: &[&str], key: &str) -> String {
    let section = table.without_indices();
    let unknown = "is not a key that there is:";
    if let Some(other) = sections_with(shape, key).into_iter().find(|other| *other != section) {
        return format!("{unknown} did you mean {key} of {}?", heading(&other));
    }
    if let Some(near) = nearest(siblings, key, 0.45) {
        return format!("{unknown} did you mean {near}?");
    }
    let everywhere = all_keys(shape);
    let names: Vec<&str> = everywhere.iter().map(|(_, name)| name.as_str()).collect();
    if let Some(near) = nearest(&names, key, 0.7)
        && let Some((other, _)) = everywhere.iter().find(|(_, name)| name == near)
    {
        return format!("{unknown} did you mean {near} of {}?", heading(other));
    }
    let place = if section.is_empty() { "the top level".to_owned() } else { heading(&section) };
    format!("{unknown} {place} has {}", siblings.join(", "))
}

fn heading(section: &str) -> String {
    if section == "guests" { "[[guests]]".to_owned() } else { format!("[{section}]") }
}

/// The known word nearest to `word`, if one is near enough: 1.0 is the same word.
pub fn nearest<'a>(known: &[&'a str], word: &str, at_least: f64) -> Option<&'a str> {
    let near = |candidate: &&'a str| (strsim::normalized_damerau_levenshtein(candidate, word), *candidate);
    let best = known.iter().map(near).max_by(|left, right| left.0.total_cmp(&right.0));
    best.filter(|(likeness, _)| *likeness >= at_least).map(|(_, candidate)| candidate)
}

fn sections_with(shape: &Value, key: &str) -> Vec<String> {
    all_keys(shape).into_iter().filter(|(_, name)| name == key).map(|(section, _)| section).collect()
}

/// Every key inside a section, with its section.
fn all_keys(shape: &Value) -> Vec<(String, String)> {
    let mut keys = Vec::new();
    for (section, value) in shape.as_object().into_iter().flatten() {
        let table = value.as_array().and_then(|entries| entries.first()).unwrap_or(value);
        keys.extend(table.as_object().into_iter().flatten().map(|(name, _)| (section.clone(), name.clone())));
    }
    keys
}
