//! The status as a person reads it: `wheelhouse status` without `--json` prints what [`status_table`] makes of the
//! JSON object. Sections and fields are not listed here: the rooms that own them may add some, and units are read off
//! the ends of the names. Missing sections are skipped.

use std::fmt::Write;

use serde_json::{Map, Value};

/// Known names in the order in which they are shown; others follow in the order of the object.
const ORDER: [&str; 46] = [
    // sections
    "loop",
    "timers",
    "tasks",
    "npcs",
    "services",
    "events",
    "store",
    "connections",
    "guests",
    // fields of several sections
    "name",
    "kind",
    "state",
    "generation",
    "calls",
    "failures",
    "queued",
    "running",
    "steps",
    "launched",
    "finished",
    "exited",
    "failed",
    "messages",
    "dead_letters",
    "queue_depth",
    "oldest_age_us",
    "pending",
    "in_memory",
    "fired",
    "retried",
    "parked",
    "commits",
    "batch_events",
    "total",
    "open",
    "active",
    "accepted",
    "rejected",
    "abandoned",
    "executed",
    "faults",
    // fields of a histogram
    "last",
    "p50",
    "p99",
    "max",
    "count",
];

/// The status object as lines for a terminal, with a line break at the end of each.
pub fn status_table(status: &Value) -> String {
    let Value::Object(status) = status else {
        return format!("{}\n", shown("", status));
    };
    let mut out = String::new();
    for (name, value) in in_order(status) {
        match value {
            Value::Object(section) if !section.is_empty() => write_section(&mut out, name, section),
            Value::Array(rows) if rows.iter().any(Value::is_object) => write_rows(&mut out, name, rows),
            Value::Object(_) | Value::Array(_) => {}
            single => line(&mut out, &format!("{} {}", label(name), shown(name, single))),
        }
    }
    out
}

/// Single values first, then sections; within both, known names first.
fn in_order(object: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = object.iter().collect();
    let rank = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
    entries.sort_by_key(|(name, value)| (value.is_array() || value.is_object(), rank(name)));
    entries
}

/// A section: its name, and below it one field a line, the values in one column.
fn write_section(out: &mut String, name: &str, section: &Map<String, Value>) {
    if !out.is_empty() {
        out.push('\n');
    }
    line(out, &label(name));
    let entries = in_order(section);
    let width = entries.iter().map(|(name, _)| label(name).chars().count()).max().unwrap_or(0);
    for (name, value) in entries {
        line(out, &format!("  {:width$}  {}", label(name), shown(name, value)));
    }
}

/// A list of objects: one column for each name that any of them has.
fn write_rows(out: &mut String, name: &str, rows: &[Value]) {
    if !out.is_empty() {
        out.push('\n');
    }
    line(out, &label(name));
    let rows: Vec<_> = rows.iter().filter_map(Value::as_object).collect();
    let mut columns: Vec<&String> = Vec::new();
    for (name, _) in rows.iter().flat_map(|row| in_order(row)) {
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
    let cell =
        |row: &Map<String, Value>, name: &str| row.get(name).map_or_else(String::new, |value| shown(name, value));
    let widths: Vec<_> = columns
        .iter()
        .map(|name| {
            let cells = rows.iter().map(|row| cell(row, name).chars().count());
            cells.chain([label(name).chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let mut heading = String::new();
    for (name, width) in columns.iter().zip(&widths) {
        let _ = write!(heading, "  {:width$}", label(name));
    }
    line(out, &heading);
    for row in rows {
        let mut cells = String::new();
        for (name, width) in columns.iter().zip(&widths) {
            let text = cell(row, name);
            // Numbers stand under each other by their ends.
            let _ = match row.get(*name) {
                Some(Value::Number(_)) => write!(cells, "  {text:>width$}"),
                _ => write!(cells, "  {text:width$}"),
            };
        }
        line(out, &cells);
    }
}

/// Adds a line, without blanks at its end.
pub(super) fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}

/// A name without its unit.
fn label(name: &str) -> String {
    let bare = unit(name).map_or(name, |(bare, _)| bare);
    bare.replace('_', " ")
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    /// Of so many microseconds each.
    Time(f64),
    /// Of so many bytes each.
    Size(f64),
    Percent,
}

/// What the end of a name says about its value, and what is left of the name.
fn unit(name: &str) -> Option<(&str, Unit)> {
    let (bare, end) = name.rsplit_once('_')?;
    let unit = match end {
        "us" => Unit::Time(1.0),
        "ms" => Unit::Time(1e3),
        "s" => Unit::Time(1e6),
        "bytes" => Unit::Size(1.0),
        "kb" => Unit::Size(1024.0),
        "percent" => Unit::Percent,
        _ => return None,
    };
    Some((bare, unit))
}

/// A value in words. Fields of an object without units of their own have that of the object.
fn shown(name: &str, value: &Value) -> String {
    shown_in(unit(name).map(|(_, unit)| unit), value)
}

fn shown_in(of: Option<Unit>, value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        // A name may come from a configuration; a terminal must not obey it.
        Value::String(text) => text.chars().filter(|character| !character.is_control()).collect(),
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            match of {
                Some(Unit::Time(us)) => duration(number * us),
                Some(Unit::Size(bytes)) => size(number * bytes),
                Some(Unit::Percent) => format!("{number:.1} %"),
                None if number.fract() == 0.0 => grouped(number),
                None => format!("{number:.2}"),
            }
        }
        Value::Array(items) => items.iter().map(|item| shown_in(of, item)).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                let own = unit(name).map(|(_, unit)| unit);
                format!("{} {}", label(name), shown_in(own.or(of), value))
            };
            in_order(fields).into_iter().map(field).collect::<Vec<_>>().join("   ")
        }
    }
}

/// So many microseconds in words.
pub(super) fn duration(us: f64) -> String {
    let whole_s = (us / 1e6) as u64;
    match us {
        _ if us < 1e3 => format!("{us:.0} µs"),
        _ if us < 1e6 => format!("{:.1} ms", us / 1e3),
        _ if us < 60e6 => format!("{:.1} s", us / 1e6),
        _ if us < 3600e6 => format!("{} min {} s", whole_s / 60, whole_s % 60),
        _ if us < 86_400e6 => format!("{} h {} min", whole_s / 3600, whole_s / 60 % 60),
        _ => format!("{} d {} h", whole_s / 86_400, whole_s / 3600 % 24),
    }
}

/// So many bytes in words.
pub(super) fn size(bytes: f64) -> String {
    match bytes {
        _ if bytes < 1024.0 => format!("{bytes:.0} B"),
        _ if bytes < 1024.0 * 1024.0 => format!("{:.1} KiB", bytes / 1024.0),
        _ if bytes < 1024.0 * 1024.0 * 1024.0 => format!("{:.1} MiB", bytes / 1024.0 / 1024.0),
        _ => format!("{:.1} GiB", bytes / 1024.0 / 1024.0 / 1024.0),
    }
}

/// A whole number with its thousands apart.
pub(super) fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut text = if number < 0.0 { "-".to_owned() } else { String::new() };
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sections_fields_and_units_are_laid_out_for_a_person() {
        let status = json!({
            "uptime_ms": 3_723_000,
            "loop": {"executed": 1_234_567, "queue_depth": 0, "batch_us": {"last": 12, "max": 3400, "p50": 10, "p99": 1200}},
            "connections": {"open": 3, "accepted": 4, "closed_by": {"idle": 1, "client_left": 0}},
            "guests": [
                {"name": "meadow", "kind": "game", "calls": 1234, "failures": 0, "memory_bytes": 1_258_291},
                {"name": "sheep", "kind": "thinker", "calls": 7, "failures": 12, "memory_bytes": 900},
            ],
        });
        let expected = "\
uptime 1 h 2 min

loop
  queue depth  0
  executed     1,234,567
  batch        last 12 µs   p50 10 µs   p99 1.2 ms   max 3.4 ms

connections
  open       3
  accepted   4
  closed by  client left 0   idle 1

guests
  name    kind     calls  failures  memory
  meadow  game     1,234         0  1.2 MiB
  sheep   thinker      7        12    900 B
";
        assert_eq!(status_table(&status), expected);
    }

    #[test]
    fn events_and_the_store_are_told_like_the_rest() {
        let latency = json!({"p50": 4000, "p99": 15_000, "max": 21_000});
        let status = json!({
            "events": {
                "fired": 1234, "in_memory": 40, "lateness_us": latency, "parked": 2, "pending": 5_000_000, "retried": 3,
            },
            "store": {
                "backlog": 1, "batch_events": 12, "commit_us": latency, "commits": 99, "state": "cannot write: no room",
            },
            "connections": {"open": 3},
            "npcs": {"active": 1},
        });
        let expected = "\
npcs
  active  1

events
  pending    5,000,000
  in memory  40
  fired      1,234
  retried    3
  parked     2
  lateness   p50 4.0 ms   p99 15.0 ms   max 21.0 ms

store
  state         cannot write: no room
  commits       99
  batch events  12
  backlog       1
  commit        p50 4.0 ms   p99 15.0 ms   max 21.0 ms

connections
  open  3
";
        assert_eq!(status_table(&status), expected);
    }

    #[test]
    fn services_stand_after_what_the_loop_does_and_tell_their_lives_in_order() {
        let services = json!({
            "running": 2, "launched": 5, "exited": 2, "failed": 1, "messages": 12_345, "dead_letters": 3,
            "mailbox_max": 17,
        });
        let status = json!({"events": {"fired": 1}, "services": services, "npcs": {"active": 1}});
        let expected = "\
npcs
  active  1

services
  running       2
  launched      5
  exited        2
  failed        1
  messages      12,345
  dead letters  3
  mailbox max   17

events
  fired  1
";
        assert_eq!(status_table(&status), expected);
    }

    #[test]
    fn missing_and_empty_sections_are_skipped_and_unknown_ones_shown() {
        assert_eq!(status_table(&json!({})), "");
        let status = json!({"loop": {}, "guests": [], "services": {"alive": 2}, "seconds": 20.25});
        assert_eq!(status_table(&status), "seconds 20.25\n\nservices\n  alive  2\n");
    }

    #[test]
    fn rows_of_different_shape_share_their_columns() {
        let status = json!({"guests": [{"name": "a", "note": "new"}, {"name": "b", "calls": 5}, "odd"]});
        assert_eq!(status_table(&status), "guests\n  name  note  calls\n  a     new\n  b               5\n");
    }

    #[test]
    fn numbers_read_well_at_every_size() {
        let shown_as = |name: &str, value: Value| shown(name, &value);
        assert_eq!(shown_as("x", json!(999)), "999");
        assert_eq!(shown_as("x", json!(-1_000)), "-1,000");
        assert_eq!(shown_as("x_us", json!(999)), "999 µs");
        assert_eq!(shown_as("x_us", json!(1_500_000)), "1.5 s");
        assert_eq!(shown_as("x_s", json!(200_000)), "2 d 7 h");
        assert_eq!(shown_as("x_ms", json!(61_000)), "1 min 1 s");
        assert_eq!(shown_as("x_kb", json!(2048)), "2.0 MiB");
        assert_eq!(shown_as("loop_cpu_percent", json!(12.345)), "12.3 %");
        assert_eq!(shown_as("x", Value::Null), "-");
    }

    #[test]
    fn a_name_cannot_command_the_terminal() {
        assert_eq!(shown("name", &json!("\u{1b}[2Jmeadow\n")), "[2Jmeadow");
    }
}
