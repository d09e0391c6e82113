use super::*;

const MAP: &str = r#"{
    "name": "test", "size": [4, 2], "deep": {"rows": ["~"], "list": [{"kind": "no"}]},
    "rows": ["~~..", "~.\u002e."],
    "features": [{"kind": "well", "x": 2, "y": 1}, {"x": 0, "kind": "gate"}, {"kind": "well", "note": {"kind": "no"}}],
    "legend": {"~": "water", ".": "grass"}
}"#;

/// Runs a census in steps of so many bytes: its steps, and its end.
fn census(map: &str, bytes_per_step: usize) -> (usize, Result<String, String>) {
    let mut census = Census::start(map.into()).unwrap();
    for steps in 1.. {
        match census.read(bytes_per_step) {
            Ok(None) => {}
            Ok(Some(result)) => return (steps, Ok(result)),
            Err(message) => return (steps, Err(message)),
        }
    }
    unreachable!("a census ends")
}

#[test]
fn tiles_and_features_are_counted_by_kind() {
    let (_, result) = census(MAP, 1_000_000);
    assert_eq!(result.unwrap(), r#"{"tiles":{"grass":5,"water":3},"features":{"gate":1,"well":2}}"#);
}

#[test]
fn many_small_steps_count_the_same_as_one() {
    let (steps, result) = census(MAP, 1);
    assert!(steps > 50, "{steps}");
    assert_eq!(result, census(MAP, 1_000_000).1);
}

#[test]
fn a_census_goes_on_from_its_saved_state() {
    let mut before = Census::start(MAP.into()).unwrap();
    assert_eq!(before.read(MAP.len() / 2), Ok(None));
    let saved = wheelhouse_guest::postcard::to_allocvec(&before).unwrap();
    let mut after: Census = wheelhouse_guest::postcard::from_bytes(&saved).unwrap();
    assert_eq!(after.read(MAP.len()).map(Option::unwrap), census(MAP, 1_000_000).1);
}

#[test]
fn a_map_that_is_no_json_fails_with_the_place() {
    for (map, part) in [
        ("{\"rows\": [\"~\"", "cut short"),
        ("{\"rows\": [\"~\"]} x", "byte"),
        ("{\"rows\": [\"~\",]}", "must not stand here"),
        ("{\"rows\" [\"~\"]}", "must not stand here"),
        ("{,}", "must not stand here"),
        ("{\"a\": ]", "must not stand here"),
        ("[}", "must not stand here"),
        ("{} {}", "ended before"),
        ("", "empty"),
    ] {
        let message = match Census::start(map.into()) {
            Ok(_) => census(map, 7).1.unwrap_err(),
            Err(refusal) => refusal.message().to_owned(),
        };
        assert!(message.contains(part), "{map}: {message}");
    }
}

#[test]
fn a_tile_that_the_legend_lacks_is_named() {
    let (_, result) = census(r#"{"legend": {"~": "water"}, "rows": ["~?"]}"#, 100);
    assert_eq!(result.unwrap_err(), "the legend has no tile '?'");
}

#[test]
fn a_map_that_nests_without_end_is_refused() {
    let (_, result) = census(&"[".repeat(10_000), 100);
    assert!(result.unwrap_err().contains("too deep"));
}
