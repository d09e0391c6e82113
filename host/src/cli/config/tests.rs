use std::path::{Path, PathBuf};
use std::time::Duration;

use super::known_keys::full_shape;
use super::{LoadError, load, parse};
use crate::guest::{GuestKind, GuestSettings, RestartPolicy};
use crate::server::config::Config;
use crate::server::config::rules::LARGEST;

const EXAMPLE: &str = include_str!("../../../../wheelhouse.example.toml");

fn complaints(text: &str) -> Vec<String> {
    match parse(text, Path::new("w.toml")) {
        Ok(_) => Vec::new(),
        Err(error) => error.to_string().lines().map(str::to_owned).collect(),
    }
}

/// A game guest, for tables that are about something else.
const GAME: &str = "[[guests]]\nname = \"rules\"\nkind = \"game\"\nfile = \"rules.wasm\"\n";

#[test]
fn each_bad_input_gets_its_own_line() {
    let cases = [
        // Numbers.
        ("[loop]\nqueue_capacity = 0", "w.toml:2: loop.queue_capacity is 0: it must be positive"),
        ("[loop]\n\nqueue_capacity = -4", "w.toml:3: loop.queue_capacity is -4: it must be positive"),
        ("timers.tick_ms = 0", "w.toml:1: timers.tick_ms is 0: it must be positive"),
        ("[guest]\ndeadline_ms = 5.5", "w.toml:2: guest.deadline_ms is 5.5: it must be a whole number"),
        ("[guest]\ndeadline_ms = \"50\"", "w.toml:2: guest.deadline_ms is \"50\": it must be a whole number"),
        ("[events]\nmax_attempts = 0", "w.toml:2: events.max_attempts is 0: it must be positive"),
        ("[gate]\nmax_frame_bytes = 65536", "w.toml:2: gate.max_frame_bytes is 65536: it must be at most 65535"),
        (
            "[dispatch]\ntarget_tps = 99999999999999999999999999999999999999999",
            "w.toml:2: dispatch.target_tps is 99999999999999999999999999999999999999999: it must be at most 1000",
        ),
        // Keys.
        (
            "[loop]\nqueue_capcity = 5",
            "w.toml:2: loop.queue_capcity is not a key that there is: did you mean queue_capacity?",
        ),
        ("[lop]\n", "w.toml:1: lop is not a key that there is: did you mean loop?"),
        ("[loop]\ntick_ms = 5", "w.toml:2: loop.tick_ms is not a key that there is: did you mean tick_ms of [timers]?"),
        (
            "think_intervall_ms = 5",
            "w.toml:1: think_intervall_ms is not a key that there is: did you mean think_interval_ms of [npcs]?",
        ),
        (
            "[gate]\ndrain_timeout_s = 2",
            "w.toml:2: gate.drain_timeout_s is not a key that there is: did you mean drain_timeout_ms?",
        ),
        ("[dispatch]\nmax_task = 2", "w.toml:2: dispatch.max_task is not a key that there is: did you mean max_tasks?"),
        (
            "[store]\nqqq = 5",
            "w.toml:2: store.qqq is not a key that there is: [store] has checkpoint_interval_s, max_pending_batches",
        ),
        // Types and words.
        ("loop = 5", "w.toml:1: loop is 5: it must be a table, [loop]"),
        ("data_dir = 5", "w.toml:1: data_dir is 5: it must be a string in quotes"),
        ("data_dir = \"\"", "w.toml:1: data_dir is \"\": it must name a directory"),
        ("[guest]\ncode_cache = 1", "w.toml:2: guest.code_cache is 1: it must be true or false"),
        ("[log]\nlevel = \"wran\"", "w.toml:2: log.level is \"wran\": did you mean \"warn\"?"),
        ("[log]\nformat = \"xml\"", "w.toml:2: log.format is \"xml\": it must be one of text, json"),
        (
            "[gate]\nlisten = \"localhost\"",
            "w.toml:2: gate.listen is \"localhost\": it must be an IP address and a port, like \"127.0.0.1:7171\"",
        ),
        (
            "[gate]\nwebsocket_listen = \"7172\"",
            "w.toml:2: gate.websocket_listen is \"7172\": it must be an IP address and a port, like \"127.0.0.1:7171\"",
        ),
        ("[gate]\nhandshake_timeout_ms = 0", "w.toml:2: gate.handshake_timeout_ms is 0: it must be positive"),
        (
            "[gate]\ntls_certificate = \"gate.crt\"",
            "w.toml:2: gate.tls_certificate is \"gate.crt\": TLS takes a key too: set `gate.tls_key`, or leave both out",
        ),
        (
            "[gate]\n\ntls_key = \"gate.key\"",
            "w.toml:3: gate.tls_key is \"gate.key\": TLS takes a certificate too: set `gate.tls_certificate`, or leave \
             both out",
        ),
        (
            "[admin]\nlisten = \"0.0.0.0:80\"",
            "w.toml:2: admin.listen is \"0.0.0.0:80\": the control port must listen on a loopback address, \
             like \"127.0.0.1:0\"",
        ),
        // Not TOML.
        ("[loop\nqueue_capacity = 5", "w.toml:1:6: unclosed table, expected `]`"),
        ("[loop]\nqueue_capacity = ", "w.toml:2:18: string values must be quoted, expected literal string"),
        ("data_dir = \"a\"\ndata_dir = \"b\"", "w.toml:2:1: duplicate key"),
    ];
    for (text, line) in cases {
        assert_eq!(complaints(text), [line], "for {text:?}");
    }
}

#[test]
fn each_guest_that_cannot_be_gets_its_own_line() {
    let cases = [
        ("guests = 5", "w.toml:1: guests is 5: guests are written as [[guests]], one for each"),
        (
            "[[guests]]\nname = \"a\"\nkind = \"game\"",
            "w.toml:1: guests[0].file is missing: every guest needs name, kind and file",
        ),
        (
            "[[guests]]\nname = \"a b\"\nkind = \"game\"\nfile = \"a.wasm\"",
            "w.toml:2: guests[0].name is \"a b\": a name has 1 to 64 letters, digits, - and _",
        ),
        (
            "[[guests]]\nname = \"a\"\nkind = \"gam\"\nfile = \"a.wasm\"",
            "w.toml:3: guests[0].kind is \"gam\": did you mean \"game\"?",
        ),
        (
            "[[guests]]\nname = \"wolf\"\nkind = \"thinker\"\nfile = \"wolf.wasm\"",
            "w.toml:3: guests[0].kind is \"thinker\": no guest of kind \"game\" is enabled that would give it work",
        ),
        (
            "[gate]\nguest = \"wolf\"",
            "w.toml:2: gate.guest is \"wolf\": no enabled guest of kind \"game\" has that name",
        ),
    ];
    for (text, line) in cases {
        assert_eq!(complaints(text), [line], "for {text:?}");
    }
}

#[test]
fn each_bad_addition_to_a_guest_gets_its_own_line() {
    let cases = [
        (
            "grants = [\"kv\", \"requests\"]",
            "w.toml:5: guests[0].grants[1] is \"requests\": that interface is part of the grant \"services\"",
        ),
        (
            "grants = [\"sockets\"]",
            "w.toml:5: guests[0].grants[0] is \"sockets\": a game can be granted only timers, tasks, events, entities, \
             kv, services, gate, metrics",
        ),
        (
            "start = true",
            "w.toml:5: guests[0].start is true: only a service has that key, and this is a game; leave it out",
        ),
        (
            "arguments = \"a\"",
            "w.toml:5: guests[0].arguments is \"a\": only a service has that key, and this is a game; leave it out",
        ),
        (
            "restart = \"always\"",
            "w.toml:5: guests[0].restart is \"always\": only a service has that key, and this is a game; leave it out",
        ),
        (
            "sockets = [\"a:1\"]",
            "w.toml:5: guests[0].sockets is [\"a:1\"]: only a service has that key, and this is a game; leave it out",
        ),
        (
            "grants = [\"log\"]",
            "w.toml:5: guests[0].grants[0] is \"log\": every guest has it without a grant; leave it out",
        ),
        ("grants = [\"entitis\"]", "w.toml:5: guests[0].grants[0] is \"entitis\": did you mean \"entities\"?"),
        ("grants = \"kv\"", "w.toml:5: guests[0].grants is \"kv\": it must be a list, like [\"entities\", \"kv\"]"),
        ("max_memory_mb = 4097", "w.toml:5: guests[0].max_memory_mb is 4097: it must be at most 4096"),
        ("memory_mb = 4", "w.toml:5: guests[0].memory_mb is not a key that there is: did you mean max_memory_mb?"),
        (
            "config.born = 2020-01-01",
            "w.toml:5: guests[0].config.born is 2020-01-01: JSON has no dates; write it as a string",
        ),
        ("config.odds = [nan]", "w.toml:5: guests[0].config.odds[0] is nan: JSON has only finite numbers"),
        (
            "[[guests]]\nname = \"rules\"\nkind = \"job\"\nfile = \"b.wasm\"",
            "w.toml:6: guests[1].name is \"rules\": guests[0] has that name already, and each needs its own",
        ),
        (
            "[[guests]]\nname = \"fox\"\nkind = \"thinker\"\nfile = \"fox.wasm\"\ngrants = [\"gate\"]",
            "w.toml:9: guests[1].grants[0] is \"gate\": a thinker can be granted only entities, kv, metrics",
        ),
    ];
    for (text, line) in cases {
        assert_eq!(complaints(&format!("{GAME}{text}")), [line], "for {text:?}");
    }
}

#[test]
fn no_game_and_no_service_that_is_launched_first_has_the_name_of_a_part_of_the_host() {
    let mend = "a part of the host has that name among services, so this guest would be without; give it another";
    for name in ["logger", "dead-letters", "gate"] {
        let guest = format!("[[guests]]\nname = \"{name}\"\nfile = \"a.wasm\"\nkind = ");
        let line = format!("w.toml:2: guests[0].name is \"{name}\": {mend}");
        assert_eq!(complaints(&format!("{guest}\"game\"")), std::slice::from_ref(&line));
        assert_eq!(complaints(&format!("{guest}\"service\"\nstart = true")), [line]);
        assert!(complaints(&format!("{guest}\"service\"")).is_empty(), "others may be launched under other names");
        assert!(complaints(&format!("{guest}\"game\"\nenabled = false")).is_empty());
    }
}

/// A service.
const MAILER: &str = "[[guests]]\nname = \"mailer\"\nkind = \"service\"\nfile = \"mailer.wasm\"\n";

#[test]
fn each_key_of_a_service_that_cannot_be_gets_its_own_line() {
    let cases = [
        (
            "grants = [\"kv\"]",
            "w.toml:5: guests[0].grants[0] is \"kv\": a service can be granted only services, sockets, gate, metrics",
        ),
        ("start = \"yes\"", "w.toml:5: guests[0].start is \"yes\": it must be true or false"),
        ("restart = \"on-failures\"", "w.toml:5: guests[0].restart is \"on-failures\": did you mean \"on-failure\"?"),
        (
            "restart = \"when it likes\"",
            "w.toml:5: guests[0].restart is \"when it likes\": it must be one of never, on-failure, always",
        ),
        (
            "arguments = \"port 5\"",
            "w.toml:5: guests[0].arguments is \"port 5\": nobody would get them; add start = true, which launches the \
             service that does",
        ),
        ("arguments = 5", "w.toml:5: guests[0].arguments is 5: it must be a string in quotes"),
        (
            "sockets = \"mx:25\"",
            "w.toml:5: guests[0].sockets is \"mx:25\": it must be a list, like [\"db.example.org:5432\"]",
        ),
        (
            "sockets = [\"mx:25\"]",
            "w.toml:5: guests[0].sockets is [\"mx:25\"]: add \"sockets\" to the grants, without which it connects to \
             nobody",
        ),
        (
            "grants = [\"services\", \"sockets\"]",
            "w.toml:5: guests[0].grants[1] is \"sockets\": name the hosts that it may connect to, as in sockets = \
             [\"db.example.org:5432\"]",
        ),
        (
            "grants = [\"sockets\"]\nsockets = [\"mx:25\", \"mx\"]",
            "w.toml:6: guests[0].sockets[1] is \"mx\": it must be a host and a port, like \"db.example.org:5432\", or \
             \"db.example.org:*\" for all ports",
        ),
    ];
    for (text, line) in cases {
        assert_eq!(complaints(&format!("{MAILER}{text}")), [line], "for {text:?}");
    }
}

#[test]
fn a_service_is_read_with_everything_that_it_can_have() {
    let text = format!(
        "{MAILER}grants = [\"services\", \"sockets\"]\nstart = true\narguments = \"a\"\nrestart = \"on-failure\"\n\
         sockets = [\"mx:25\"]\n"
    );
    let config = parse(&text, Path::new("w.toml")).unwrap();
    let mailer = &config.guests[0];
    assert_eq!((mailer.kind, mailer.start, mailer.arguments.as_deref()), (GuestKind::Service, true, Some("a")));
    assert_eq!((mailer.restart, &*mailer.sockets), (RestartPolicy::OnFailure, ["mx:25".to_owned()].as_slice()));
}

#[test]
fn several_problems_are_told_at_once_in_order_of_the_file() {
    let lines = complaints("[timers]\ntick_ms = 0\n[loop]\nbudget = 5\nqueue_capacity = \"x\"\n[gate]\nguets = \"a\"");
    let starts: Vec<&str> = lines.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(starts, ["w.toml:2:", "w.toml:4:", "w.toml:5:", "w.toml:7:"]);
}

#[test]
fn no_text_however_odd_makes_the_loader_panic() {
    for text in ["\0", "\u{feff}", "é = ", "[[guests]]", "[guests]", "guests = [[]]", "[[loop]]", "[[guests.config]]"]
    {
        let _ = parse(text, Path::new("w.toml"));
    }
    // Every beginning of a long valid file.
    for (end, _) in EXAMPLE.char_indices() {
        let _ = parse(&EXAMPLE[..end], Path::new("w.toml"));
    }
}

#[test]
fn a_long_value_is_cut_in_the_complaint() {
    let lines = complaints(&format!("[log]\nlevel = \"{}\"", "x".repeat(10_000)));
    assert_eq!(lines.len(), 1);
    assert!(lines[0].len() < 200, "{}", lines[0]);
}

#[test]
fn a_file_that_is_not_there_is_told_with_the_mend() {
    let directory = tempfile::tempdir().unwrap();
    let error = load(&directory.path().join("wheelhouse.toml")).unwrap_err();
    assert!(matches!(error, LoadError::NotThere { .. }));
    assert!(error.to_string().contains("wheelhouse.toml is not there: copy wheelhouse.example.toml"), "{error}");
}

#[test]
fn a_file_that_is_no_text_is_told_and_so_is_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("wheelhouse.toml");
    std::fs::write(&file, [0xff, 0xfe, 0x00]).unwrap();
    assert!(matches!(load(&file), Err(LoadError::Unreadable { .. })));
    assert!(matches!(load(directory.path()), Err(LoadError::Unreadable { .. })));
}

#[test]
fn relative_paths_start_at_the_directory_of_the_file() {
    let config = parse(GAME, Path::new("/etc/wheelhouse/w.toml")).unwrap();
    assert_eq!(config.data_dir, PathBuf::from("/etc/wheelhouse/wheelhouse-data"));
    assert_eq!(config.guests[0].file, PathBuf::from("/etc/wheelhouse/rules.wasm"));
    let config = parse("data_dir = \"/var/lib/w\"", Path::new("/etc/w.toml")).unwrap();
    assert_eq!(config.data_dir, PathBuf::from("/var/lib/w"));
    let tls = "[gate]\ntls_certificate = \"tls/gate.crt\"\ntls_key = \"/var/lib/gate.key\"";
    let gate = parse(tls, Path::new("/etc/w.toml")).unwrap().gate.options;
    assert_eq!(gate.tls_certificate, Some(PathBuf::from("/etc/tls/gate.crt")));
    assert_eq!(gate.tls_key, Some(PathBuf::from("/var/lib/gate.key")));
}

#[test]
fn an_empty_file_is_the_defaults() {
    assert_eq!(parse("", Path::new("w.toml")).unwrap(), Config::default());
}

#[test]
fn a_guests_own_table_reaches_it_as_json() {
    let text = format!("{GAME}[guests.config]\nsheep = 3\nname = \"Dolly\"\nodds = [0.5, 1.5]\ndeep.er = true\n");
    let config = parse(&text, Path::new("w.toml")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&config.guests[0].config_json()).unwrap();
    let expected = serde_json::json!({"sheep": 3, "name": "Dolly", "odds": [0.5, 1.5], "deep": {"er": true}});
    assert_eq!(json, expected);
    assert_eq!(GuestSettings::new("a", GuestKind::Job, "a.wasm").config_json(), "{}");
}

#[test]
fn a_guest_that_is_not_enabled_does_not_count() {
    let text = format!("{GAME}enabled = false\n[gate]\nguest = \"rules\"");
    assert_eq!(complaints(&text).len(), 1);
    let config = parse(&format!("{GAME}enabled = false\n"), Path::new("w.toml")).unwrap();
    assert_eq!(config.enabled_guests().count(), 0);
    assert_eq!(config.gate_guest(), None);
}

#[test]
fn an_unknown_key_is_refused_also_where_no_loader_looks() {
    let mut shape = full_shape();
    let tables: Vec<String> =
        shape.as_object().unwrap().keys().filter(|key| shape[*key].is_object()).cloned().collect();
    assert_eq!(tables.len(), 13);
    serde_json::from_value::<Config>(shape.clone()).unwrap();
    for table in tables {
        shape[&table]["budget"] = 5.into();
        let refused = serde_json::from_value::<Config>(shape.clone()).unwrap_err().to_string();
        assert!(refused.starts_with("unknown field `budget`"), "{table}: {refused}");
        shape[&table].as_object_mut().unwrap().remove("budget");
    }
}

#[test]
fn every_number_has_a_largest_value_and_its_default_is_within() {
    let mut numbers = Vec::new();
    gather_leaves("", &full_shape(), &mut |key, value| {
        if value.is_number() {
            numbers.push((key.to_owned(), value.as_u64().unwrap()));
        }
    });
    for (key, default) in &numbers {
        let (_, largest) = LARGEST.iter().find(|(known, _)| known == key).unwrap_or_else(|| panic!("{key}"));
        assert!(default <= largest, "{key}");
    }
    assert_eq!(numbers.len(), LARGEST.len(), "the table names a key that there is not");
}

#[test]
fn durations_have_the_unit_that_their_key_names() {
    let config = Config::default();
    assert_eq!(config.guest.deadline(), Duration::from_millis(50));
    assert_eq!(config.store.checkpoint_interval(), Duration::from_secs(30));
    assert_eq!(config.events.look_ahead(), Duration::from_secs(60));
    assert_eq!(config.events.budget(), Duration::from_millis(5));
    assert_eq!(config.dispatch.options.frame(), Duration::from_nanos(16_666_666));
    assert_eq!(config.guest.max_payload_bytes(), 1 << 20);
    assert_eq!(config.service.call_limit_of(None), Duration::from_secs(30));
}

/// Calls `visit` with the dotted key and the value of every leaf, and for every list with its first entry.
fn gather_leaves(prefix: &str, value: &serde_json::Value, visit: &mut dyn FnMut(&str, &serde_json::Value)) {
    let value = value.as_array().and_then(|entries| entries.first()).unwrap_or(value);
    match value.as_object() {
        Some(table) if prefix != "guests.config" => {
            for (key, value) in table {
                let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                gather_leaves(&key, value, visit);
            }
        }
        _ => visit(prefix, value),
    }
}

/// The example as it would be if the keys that are left out were not: they stand there as `#key = value`.
fn full_example() -> String {
    let shown = |line: &'static str| match line.strip_prefix('#') {
        Some(key) if key.starts_with(|letter: char| letter.is_ascii_lowercase()) => key,
        _ => line,
    };
    EXAMPLE.lines().map(shown).collect::<Vec<_>>().join("\n")
}

/// Whether a key stands in a document, in whichever entry of a list.
fn names(value: &serde_json::Value, key: &str) -> bool {
    let (step, rest) = key.split_once('.').unwrap_or((key, ""));
    match (value, value.get(step)) {
        (serde_json::Value::Array(entries), _) => entries.iter().any(|entry| names(entry, key)),
        (_, Some(found)) => rest.is_empty() || names(found, rest),
        (_, None) => false,
    }
}

#[test]
fn the_example_names_every_key_with_its_default() {
    let mut example = parse(EXAMPLE, Path::new("wheelhouse.example.toml")).unwrap();
    let written: serde_json::Value = toml::from_str(&full_example()).unwrap();
    gather_leaves("", &full_shape(), &mut |key, _| assert!(names(&written, key), "the example does not name {key}"));
    parse(&full_example(), Path::new("wheelhouse.example.toml")).unwrap();

    assert_eq!(example.gate.guest.take(), example.guests.first().map(|guest| guest.name.clone()));
    let limits = example.guest.clone();
    let first = example.guests.first().unwrap();
    assert!(first.enabled);
    assert_eq!(first.max_memory_bytes(&limits), limits.max_memory_bytes());
    example.guests.clear();
    assert_eq!(example, Config::default());
}

#[test]
fn the_example_says_something_about_every_key() {
    let mut explained = std::collections::HashSet::new();
    let (mut section, mut above) = (String::new(), "");
    let example = full_example();
    for line in example.lines() {
        if let Some(heading) = line.strip_prefix('[') {
            section = heading.trim_matches(['[', ']']).to_owned();
        } else if let Some((key, _)) = line.split_once(" = ").filter(|_| !line.starts_with("# ")) {
            let name = format!("{section}.{key}");
            // Each key is explained where it stands first; Meadow's own keys are explained together.
            let fresh = !section.ends_with(".config") && explained.insert(name.clone());
            assert!(!fresh || above.starts_with('#'), "{name} has no comment above it");
        }
        above = line;
    }
}

#[test]
fn the_demo_world_is_a_valid_configuration() {
    let meadow = include_str!("../../../../guests/meadow.toml");
    let config = parse(meadow, Path::new("guests/meadow.toml")).unwrap();
    let names: Vec<&str> = config.guests.iter().map(|guest| guest.name.as_str()).collect();
    assert_eq!(names, ["rules", "sheep", "wolf", "terrain", "census"]);
    assert_eq!(config.guests[0].file, PathBuf::from("guests/build/rules.wasm"));
}

#[test]
fn the_lobby_is_a_valid_configuration_whose_watchdog_starts_with_the_host() {
    let lobby = include_str!("../../../../guests/lobby.toml");
    let config = parse(lobby, Path::new("guests/lobby.toml")).unwrap();
    let watchdog = config.gate.watchdog.as_ref().unwrap();
    let is_started = |guest: &GuestSettings| guest.start && guest.name == *watchdog;
    assert!(config.enabled_guests().any(is_started), "{watchdog}");
}
