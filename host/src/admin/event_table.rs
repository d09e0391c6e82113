//! Events as a person reads them: what `wheelhouse events list` and `events show` print without `--json`, made of the
//! JSON that the control port tells. A list is laid out page by page, so that it may be longer than memory.

use serde_json::Value;

use super::cells::{clean, cut};
use super::event_json::utc;
use super::status::{duration, grouped, line, size};

const COLUMNS: [&str; 8] = ["id", "due", "guest", "kind", "repeats", "attempts", "state", "error"];

/// Seconds are enough in a list, where the eye looks for the day.
const SECOND_MS: u64 = 1000;

/// The column with numbers, which stand under each other by their ends.
const ATTEMPTS: usize = 5;

/// What is shown of a kind in a list: a guest chooses its length.
const MAX_KIND_CHARS: usize = 40;

/// What is shown of an error in a list; `events show` shows all of it.
const MAX_ERROR_CHARS: usize = 60;

/// Lays out a list of events.
#[derive(Debug)]
pub struct EventTable {
    now_ms: u64,
    /// Of each column; they only grow from page to page. Nothing before the first.
    widths: Option<[usize; COLUMNS.len()]>,
}

impl EventTable {
    /// A table to be read at the wall-clock time `now_ms`.
    pub fn new(now_ms: u64) -> Self {
        Self { now_ms, widths: None }
    }

    /// The next events as lines for a terminal, under a heading if they are the first.
    pub fn page(&mut self, events: &[Value]) -> String {
        let rows: Vec<_> = events.iter().map(|event| row(event, self.now_ms)).collect();
        let begins = self.widths.is_none();
        let widths = self.widths.get_or_insert_with(|| COLUMNS.map(|name| name.chars().count()));
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut out = String::new();
        if begins && !rows.is_empty() {
            write_row(&mut out, &COLUMNS.map(str::to_owned), widths);
        }
        for row in &rows {
            write_row(&mut out, row, widths);
        }
        out
    }
}

fn write_row(out: &mut String, cells: &[String; COLUMNS.len()], widths: &[usize; COLUMNS.len()]) {
    let mut text = String::new();
    for (at, (cell, &width)) in cells.iter().zip(widths).enumerate() {
        text.push_str(&if at == ATTEMPTS { format!("{cell:>width$}  ") } else { format!("{cell:width$}  ") });
    }
    line(out, &text);
}

fn row(event: &Value, now_ms: u64) -> [String; COLUMNS.len()] {
    let text = |key: &str, most: usize| cut(&clean(event[key].as_str().unwrap_or_default()), most);
    let error = event["error"].as_str().map_or_else(|| "-".to_owned(), |error| cut(&clean(error), MAX_ERROR_CHARS));
    [
        text("id", usize::MAX),
        at(&event["due_ms"], SECOND_MS, now_ms),
        text("guest", usize::MAX),
        text("kind", MAX_KIND_CHARS),
        event["repeat"]["interval_ms"].as_f64().map_or_else(|| "-".to_owned(), |ms| duration(ms * 1000.0)),
        grouped(event["attempts"].as_f64().unwrap_or_default()),
        state(event).to_owned(),
        error,
    ]
}

/// Everything about one event as lines for a terminal.
pub fn event_details(event: &Value, now_ms: u64) -> String {
    let text = |key: &str| clean(event[key].as_str().unwrap_or_default());
    let mut fields = vec![
        ("guest", text("guest")),
        ("kind", text("kind")),
        ("state", state(event).to_owned()),
        ("due", at(&event["due_ms"], 1, now_ms)),
    ];
    if state(event) == "retrying" {
        fields.push(("next attempt", at(&event["next_ms"], 1, now_ms)));
    }
    let repeat = &event["repeat"];
    if let Some(interval_ms) = repeat["interval_ms"].as_f64() {
        let missed = match repeat["missed"].as_str() {
            Some("catch-up") => "missed runs are caught up",
            _ => "one run stands for all that were missed",
        };
        fields.push(("repeats", format!("every {}; {missed}", duration(interval_ms * 1e3))));
    }
    fields.push(("attempts", grouped(event["attempts"].as_f64().unwrap_or_default())));
    if event["error"].is_string() {
        fields.push(("error", text("error")));
    }
    let bytes = size(event["payload_bytes"].as_f64().unwrap_or_default());
    let encoding = match event["payload_encoding"].as_str() {
        Some("hex") => ", hexadecimal",
        _ => "",
    };
    fields.push(("payload", format!("{} ({bytes}{encoding})", text("payload")).trim_start().to_owned()));

    let mut out = String::new();
    line(&mut out, &format!("event {}", text("id")));
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in fields {
        line(&mut out, &format!("  {name:width$}  {value}"));
    }
    out
}

/// Where the event stands: on its way, set aside, or on its way after a failure.
fn state(event: &Value) -> &'static str {
    match (event["parked"].as_bool(), event["attempts"].as_u64()) {
        (Some(true), _) => "parked",
        (_, None | Some(0)) => "pending",
        (_, Some(_)) => "retrying",
    }
}

/// A time of day, to the last `step_ms`, and how far from now it is.
fn at(wall_ms: &Value, step_ms: u64, now_ms: u64) -> String {
    let Some(wall_ms) = wall_ms.as_u64() else { return "-".to_owned() };
    match utc(wall_ms / step_ms * step_ms) {
        Some(utc) => format!("{utc}, {}", relative(wall_ms, now_ms)),
        None => "after the year 9999".to_owned(),
    }
}

fn relative(wall_ms: u64, now_ms: u64) -> String {
    let seconds = wall_ms.abs_diff(now_ms) / 1000;
    let span = match seconds {
        0 => return "now".to_owned(),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", grouped((seconds / 86_400) as f64)),
    };
    if wall_ms > now_ms { format!("in {span}") } else { format!("{span} ago") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// 2026-01-02 03:04:05.678 UTC.
    const NOW_MS: u64 = 1_767_323_045_678;

    fn event(sequence: u64, due_ms: u64) -> Value {
        json!({
            "id": format!("{due_ms}-{sequence}"), "due_ms": due_ms, "sequence": sequence, "guest": "rules",
            "kind": "ripen", "payload": "field 3", "payload_encoding": "text", "payload_bytes": 7,
            "next_ms": due_ms, "repeat": null, "attempts": 0, "parked": false, "error": null,
        })
    }

    fn failed(mut event: Value, attempts: u32, parked: bool, error: &str) -> Value {
        event["attempts"] = attempts.into();
        event["parked"] = parked.into();
        event["error"] = error.into();
        event
    }

    #[test]
    fn a_list_shows_what_runs_when_and_how_it_went() {
        let events = [
            failed(event(7, NOW_MS - 12_000), 5, true, "trap: unreachable\n  at rules"),
            failed(event(8, NOW_MS), 1, false, "no crop"),
            event(12, NOW_MS + 300_000),
        ];
        let expected = "\
id                due                             guest  kind   repeats  attempts  state     error
1767323033678-7   2026-01-02T03:03:53Z, 12 s ago  rules  ripen  -               5  parked    trap: unreachable   at rules
1767323045678-8   2026-01-02T03:04:05Z, now       rules  ripen  -               1  retrying  no crop
1767323345678-12  2026-01-02T03:09:05Z, in 5 min  rules  ripen  -               0  pending   -
";
        assert_eq!(EventTable::new(NOW_MS).page(&events), expected);
    }

    #[test]
    fn later_pages_have_no_heading_and_columns_that_do_not_shrink() {
        let mut table = EventTable::new(NOW_MS);
        let first = table.page(&[event(1_000_000, NOW_MS)]);
        let second = table.page(&[event(1, NOW_MS)]);
        assert_eq!((first.lines().count(), second.lines().count()), (2, 1));
        assert_eq!(first.lines().nth(1).unwrap().find("2026"), second.find("2026"));
        assert_eq!(EventTable::new(NOW_MS).page(&[]), "");
    }

    #[test]
    fn a_guest_cannot_command_the_terminal_nor_fill_it() {
        let mut hostile = failed(event(7, NOW_MS), 1, false, &"x".repeat(1000));
        hostile["kind"] = "\u{1b}[2J\u{9b}1mripen\n".into();
        let lines = EventTable::new(NOW_MS).page(&[hostile.clone()]);
        assert!(lines.contains("  [2J1mripen   "), "{lines}");
        assert!(lines.ends_with(&format!("  {}…\n", "x".repeat(59))), "{lines}");
        hostile["payload"] = "\u{1b}]0;owned\u{7}".into();
        let details = event_details(&hostile, NOW_MS);
        assert!(!details.chars().any(|character| character.is_control() && character != '\n'), "{details:?}");
    }

    #[test]
    fn one_event_is_shown_with_everything_about_it() {
        let mut event = failed(event(7, NOW_MS), 2, false, "no crop");
        event["next_ms"] = (NOW_MS + 4000).into();
        event["repeat"] = json!({"interval_ms": 90_000, "missed": "coalesce"});
        let expected = "\
event 1767323045678-7
  guest         rules
  kind          ripen
  state         retrying
  due           2026-01-02T03:04:05.678Z, now
  next attempt  2026-01-02T03:04:09.678Z, in 4 s
  repeats       every 1 min 30 s; one run stands for all that were missed
  attempts      2
  error         no crop
  payload       field 3 (7 B)
";
        assert_eq!(event_details(&event, NOW_MS), expected);
    }

    #[test]
    fn an_event_that_never_failed_nor_repeats_is_shown_without_that() {
        let mut event = event(7, NOW_MS);
        event["payload"] = "ff00".into();
        event["payload_encoding"] = "hex".into();
        event["payload_bytes"] = 2.into();
        let details = event_details(&event, NOW_MS);
        let names: Vec<_> = details.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(names, ["guest", "kind", "state", "due", "attempts", "payload"]);
        assert!(details.ends_with("payload   ff00 (2 B, hexadecimal)\n"), "{details}");
    }

    #[test]
    fn how_far_a_time_is_from_now_reads_well_at_every_distance() {
        for (distance_s, words) in [
            (0, "now"),
            (59, "in 59 s"),
            (60, "in 1 min"),
            (3600, "in 1 h"),
            (172_800, "in 2 d"),
            (86_400_000, "in 1,000 d"),
        ] {
            assert_eq!(relative(NOW_MS + distance_s * 1000, NOW_MS), words);
        }
        assert_eq!(relative(NOW_MS - 7_200_000, NOW_MS), "2 h ago");
        assert_eq!(at(&u64::MAX.into(), 1, NOW_MS), "after the year 9999");
    }
}
