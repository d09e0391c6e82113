//! An event as JSON, as the control port tells it and `wheelhouse events --json` prints it, and how its id is written.

use std::fmt::Write;

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::store::{Event, EventId, ListedEvent};

/// Longer payloads are left out of lists, so that a page of events is never a page of megabytes.
pub(super) const MAX_LISTED_PAYLOAD_BYTES: usize = 4096;

/// An id as it is shown: when the event is due in milliseconds, and its sequence.
pub(super) fn event_id_text(id: EventId) -> String {
    format!("{}-{}", id.due_ms, id.sequence)
}

/// The id that is written so.
pub(super) fn event_id(text: &str) -> Option<EventId> {
    let (due_ms, sequence) = text.split_once('-')?;
    Some(EventId { due_ms: number(due_ms)?, sequence: number(sequence)? })
}

/// The sequence in an id, or alone as it may be written too: it names an event by itself, and stays the same while the
/// event repeats.
pub fn event_sequence(text: &str) -> Option<u64> {
    event_id(text).map(|id| id.sequence).or_else(|| number(text))
}

/// Digits alone: `parse` would take a plus sign as well.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// An event with everything about it.
pub(super) fn event_json(event: &Event) -> Value {
    with_payload(event, Some(&event.payload), event.payload.len())
}

/// An event in a list: a payload that was left out is `null`.
pub(super) fn listed_event_json(listed: &ListedEvent) -> Value {
    let ListedEvent { event, payload_bytes } = listed;
    let is_there = event.payload.len() == *payload_bytes;
    with_payload(event, is_there.then_some(&*event.payload), *payload_bytes)
}

fn with_payload(event: &Event, payload: Option<&[u8]>, payload_bytes: usize) -> Value {
    let (payload, encoding) = payload.map(readable).unzip();
    json!({
        "id": event_id_text(event.id()),
        "due_ms": event.due_ms,
        "sequence": event.sequence,
        "guest": &*event.guest,
        "kind": &*event.kind,
        "payload": payload,
        "payload_encoding": encoding,
        "payload_bytes": payload_bytes,
        "due": utc(event.due_ms),
        "next_ms": event.next_ms,
        "repeat": event.repeat,
        "attempts": event.attempts,
        "parked": event.parked,
        "error": event.error.as_deref(),
    })
}

/// Bytes as text where they are text, and else in hexadecimal digits.
fn readable(bytes: &[u8]) -> (String, &'static str) {
    let printable = |character: char| !character.is_control() || matches!(character, '\n' | '\r' | '\t');
    match std::str::from_utf8(bytes) {
        Ok(text) if text.chars().all(printable) => (text.to_owned(), "text"),
        _ => {
            let mut hex = String::with_capacity(bytes.len() * 2);
            for byte in bytes {
                // Writing to a string cannot fail.
                let _ = write!(hex, "{byte:02x}");
            }
            (hex, "hex")
        }
    }
}

/// Wall-clock milliseconds as a date and time in UTC; none after the year 9999, where RFC 3339 ends.
pub(super) fn utc(wall_ms: u64) -> Option<String> {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(wall_ms) * 1_000_000).ok()?;
    time.format(&Rfc3339).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::store::{LATEST_MS, MissedRuns, Repetition};

    fn event(payload: &[u8]) -> Event {
        Event {
            sequence: 7,
            guest: "rules".into(),
            kind: "ripen".into(),
            payload: Arc::from(payload),
            due_ms: 1_767_323_045_678,
            next_ms: 1_767_323_046_678,
            repeat: Some(Repetition { interval_ms: 5000, missed: MissedRuns::CatchUp }),
            attempts: 1,
            parked: false,
            error: Some("no crop".into()),
        }
    }

    #[test]
    fn everything_about_an_event_is_told() {
        let expected = json!({
            "id": "1767323045678-7",
            "due_ms": 1_767_323_045_678_u64,
            "sequence": 7,
            "guest": "rules",
            "kind": "ripen",
            "payload": "field 3",
            "payload_encoding": "text",
            "payload_bytes": 7,
            "due": "2026-01-02T03:04:05.678Z",
            "next_ms": 1_767_323_046_678_u64,
            "repeat": {"interval_ms": 5000, "missed": "catch-up"},
            "attempts": 1,
            "parked": false,
            "error": "no crop",
        });
        assert_eq!(event_json(&event(b"field 3")), expected);
        assert_eq!(listed_event_json(&ListedEvent { event: event(b"field 3"), payload_bytes: 7 }), expected);
    }

    #[test]
    fn what_an_event_does_not_have_is_null() {
        let plain = event_json(&Event { repeat: None, error: None, due_ms: LATEST_MS, ..event(b"") });
        for key in ["repeat", "error", "due"] {
            assert_eq!(plain[key], Value::Null, "{key}");
        }
        assert_eq!((&plain["payload"], &plain["payload_bytes"]), (&json!(""), &json!(0)));
    }

    #[test]
    fn a_payload_is_text_where_it_can_be_read_and_hexadecimal_where_not() {
        for (payload, shown, encoding) in [
            ("grüße\n".as_bytes(), "grüße\n", "text"),
            (b"\x1b[2J", "1b5b324a", "hex"),
            (b"\xff\x00", "ff00", "hex"),
            (b"", "", "text"),
        ] {
            let event = event_json(&event(payload));
            assert_eq!((&event["payload"], &event["payload_encoding"]), (&json!(shown), &json!(encoding)));
        }
    }

    #[test]
    fn a_list_leaves_long_payloads_out_and_says_how_long_they_are() {
        let listed = listed_event_json(&ListedEvent { event: event(b""), payload_bytes: 4097 });
        assert_eq!((&listed["payload"], &listed["payload_encoding"]), (&Value::Null, &Value::Null));
        assert_eq!(listed["payload_bytes"], 4097);
        let long = event(&[b'x'; 4097]);
        assert_eq!(event_json(&long)["payload"].as_str().map(str::len), Some(4097));
        let empty = listed_event_json(&ListedEvent { event: event(b""), payload_bytes: 0 });
        assert_eq!(empty["payload"], "");
    }

    #[test]
    fn an_event_is_named_by_its_id_or_its_sequence_and_by_nothing_else() {
        assert_eq!(event_sequence(&event_id_text(event(b"").id())), Some(7));
        assert_eq!(event_sequence("7"), Some(7));
        assert_eq!(event_sequence("18446744073709551615"), Some(u64::MAX));
        for text in ["", "-", "7-", "-7", "+7", "5-+7", "1-2-3", "x", "18446744073709551616", "7 "] {
            assert_eq!(event_sequence(text), None, "{text:?}");
        }
    }
}
