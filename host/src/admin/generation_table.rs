//! Generations as a person reads them: what `wheelhouse guests history` prints without `--json`.

use super::cells::{Column, Table, clean, cut};
use super::event_json::utc;
use super::status::size;
use crate::guest::{Fate, Generation};

/// Digits of a hash that are shown: enough to tell two files apart.
const HASH_DIGITS: usize = 12;

/// What is shown of a failure.
const MAX_REASON_CHARS: usize = 100;

const SECOND_MS: u64 = 1000;

/// The generations of a guest as lines for a terminal, oldest first.
pub fn generation_table(generations: &[Generation]) -> String {
    let mut table = Table::new([
        Column::number("generation"),
        Column::words("since"),
        Column::words("hash"),
        Column::number("size"),
        Column::words("file"),
        Column::words(""),
    ]);
    table.rows.extend(generations.iter().map(|generation| {
        [
            generation.number.to_string(),
            utc(generation.since_ms / SECOND_MS * SECOND_MS).unwrap_or_default(),
            generation.hash.chars().take(HASH_DIGITS).collect(),
            size(generation.bytes as f64),
            clean(&generation.file.display().to_string()),
            fate(&generation.fate),
        ]
    }));
    table.lines()
}

fn fate(fate: &Fate) -> String {
    match fate {
        Fate::Running => "runs".to_owned(),
        Fate::Replaced => "was replaced".to_owned(),
        Fate::TakenBack => "was taken back".to_owned(),
        Fate::Failed(reason) => format!("failed: {}", cut(&clean(reason), MAX_REASON_CHARS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_are_listed_with_what_became_of_them() {
        let generation = |number, bytes, fate| Generation {
            number,
            hash: "0123456789abcdef".repeat(4),
            bytes,
            file: "guests/build/rules.wasm".into(),
            since_ms: 1_700_000_000_999,
            fate,
        };
        let failed = Fate::Failed("on-packet: wasm trap:\n unreachable".to_owned());
        let expected = "\
generation  since                 hash              size  file
         1  2023-11-14T22:13:20Z  0123456789ab  20.0 KiB  guests/build/rules.wasm  runs
        12  2023-11-14T22:13:20Z  0123456789ab   1.0 MiB  guests/build/rules.wasm  failed: on-packet: wasm trap:  unreachable
";
        let table = generation_table(&[generation(1, 20_480, Fate::Running), generation(12, 1 << 20, failed)]);
        assert_eq!(table, expected);
    }
}
