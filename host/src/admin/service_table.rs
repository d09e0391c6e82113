//! Services as a person reads them: what `wheelhouse services` prints without `--json`, made of the JSON that the control
//! port tells.

use serde_json::Value;

use super::cells::{Column, Table, clean, cut};
use super::status::{duration, grouped, line, size};

/// What is shown of the names of one service: a guest chooses how many there are.
const MAX_NAMES_CHARS: usize = 40;

/// What is shown of the reason why a message reached nobody.
const MAX_REASON_CHARS: usize = 100;

/// The services of the host, its games and its own parts, as lines for a terminal; the totals below them.
pub fn service_table(answer: &Value) -> String {
    let mut table = Table::new([
        Column::words("handle"),
        Column::words("guest"),
        Column::words("names"),
        Column::words("kind"),
        Column::number("mailbox"),
        Column::number("in hand"),
        Column::number("messages"),
        Column::number("memory"),
        Column::number("time used"),
    ]);
    for service in answer["list"].as_array().into_iter().flatten() {
        table.rows.push([
            service["handle"].to_string(),
            text(&service["guest"]),
            names(&service["names"]),
            text(&service["kind"]),
            number(&service["mailbox"]),
            number(&service["in_hand"]),
            number(&service["messages"]),
            size(service["memory_bytes"].as_f64().unwrap_or_default()),
            duration(service["used_ms"].as_f64().unwrap_or_default() * 1e3),
        ]);
    }
    let mut out = table.lines();
    let total = |key: &str| number(&answer["services"][key]);
    let [running, launched, exited, failed] = ["running", "launched", "exited", "failed"].map(total);
    line(&mut out, &format!("{running} running, {launched} launched, {exited} exited, {failed} failed"));
    let [messages, dead_letters, mailbox_max] = ["messages", "dead_letters", "mailbox_max"].map(total);
    let nobody = format!("{dead_letters} reached nobody");
    line(&mut out, &format!("{messages} messages handled, {nobody}, {mailbox_max} in the longest mailbox ever"));
    out
}

/// The last messages that reached nobody, as lines for a terminal.
pub fn dead_letter_table(answer: &Value) -> String {
    let letters: Vec<&Value> = answer["last"].as_array().into_iter().flatten().collect();
    if letters.is_empty() {
        return "every message has reached somebody\n".to_owned();
    }
    let mut table =
        Table::new([Column::words("from"), Column::words("to"), Column::number("bytes"), Column::words("reason")]);
    for letter in &letters {
        let source = match letter["source"].as_u64() {
            Some(0) => "host".to_owned(),
            _ => letter["source"].to_string(),
        };
        let reason = cut(&text(&letter["reason"]), MAX_REASON_CHARS);
        table.rows.push([source, letter["to"].to_string(), number(&letter["bytes"]), reason]);
    }
    let mut out = table.lines();
    let count = answer["count"].as_u64().unwrap_or_default();
    if count > letters.len() as u64 {
        line(&mut out, &format!("the last of {}", grouped(count as f64)));
    }
    out
}

fn text(value: &Value) -> String {
    clean(value.as_str().unwrap_or_default())
}

fn number(value: &Value) -> String {
    grouped(value.as_f64().unwrap_or_default())
}

fn names(names: &Value) -> String {
    let names: Vec<String> = names.as_array().into_iter().flatten().map(text).collect();
    if names.is_empty() { "-".to_owned() } else { cut(&names.join(", "), MAX_NAMES_CHARS) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn totals() -> Value {
        json!({
            "running": 2, "launched": 1200, "exited": 1197, "failed": 1, "messages": 5_000_000, "dead_letters": 3,
            "mailbox_max": 1024,
        })
    }

    #[test]
    fn services_are_listed_with_what_they_have_and_the_totals_stand_below() {
        let list = json!([
            {
                "handle": 900_100_200_300_u64, "guest": "rules", "kind": "game", "names": ["rules"], "mailbox": 0,
                "in_hand": 0, "messages": 12, "memory_bytes": 0, "used_ms": 0,
            },
            {
                "handle": 900_100_200_301_u64, "guest": "chat", "kind": "service", "names": ["chat", "talk"],
                "mailbox": 1500, "in_hand": 64, "messages": 4_999_000, "memory_bytes": 131_072, "used_ms": 61_500,
            },
            {
                "handle": 900_100_200_302_u64, "guest": "agent", "kind": "service", "names": [], "mailbox": 0,
                "in_hand": 0, "messages": 1, "memory_bytes": 65_536, "used_ms": 3,
            },
        ]);
        let expected = "\
handle        guest  names       kind     mailbox  in hand   messages     memory  time used
900100200300  rules  rules       game           0        0         12        0 B       0 µs
900100200301  chat   chat, talk  service    1,500       64  4,999,000  128.0 KiB  1 min 1 s
900100200302  agent  -           service        0        0          1   64.0 KiB     3.0 ms
2 running, 1,200 launched, 1,197 exited, 1 failed
5,000,000 messages handled, 3 reached nobody, 1,024 in the longest mailbox ever
";
        assert_eq!(service_table(&json!({"list": list, "services": totals()})), expected);
    }

    #[test]
    fn dead_letters_are_told_with_the_reason_and_how_many_there_were() {
        let letter = |source: u64| json!({"source": source, "to": 7, "bytes": 1234, "reason": "there is no service 7"});
        let some = json!({"count": 2, "last": [letter(0), letter(88)]});
        let expected = "\
from  to  bytes  reason
host  7   1,234  there is no service 7
88    7   1,234  there is no service 7
";
        assert_eq!(dead_letter_table(&some), expected);
        let many = json!({"count": 1000, "last": [letter(0)]});
        assert!(dead_letter_table(&many).ends_with("\nthe last of 1,000\n"));
        assert_eq!(dead_letter_table(&json!({"count": 0, "last": []})), "every message has reached somebody\n");
    }

    #[test]
    fn a_service_cannot_command_the_terminal_nor_fill_it() {
        let mut service = json!({"handle": 7, "guest": "chat", "kind": "service"});
        service["names"] = json!(["\u{1b}[2J\nchat", "x".repeat(64)]);
        let lines = service_table(&json!({"list": [service], "services": totals()}));
        assert!(lines.contains(&format!("  [2J chat, {}…  service", "x".repeat(29))), "{lines}");
        let letter = json!({"source": 1, "to": 2, "bytes": 0, "reason": format!("\u{9b}1m{}", "y".repeat(200))});
        let lines = dead_letter_table(&json!({"count": 1, "last": [letter]}));
        assert!(lines.ends_with(&format!("  1m{}…\n", "y".repeat(97))), "{lines}");
    }
}
