use super::Config;
use super::rules::LARGEST;
use crate::clock::ManualClock;
use crate::guest::{Grant, GuestKind, GuestSettings};
use crate::server::{Host, StartError};

#[test]
fn a_program_that_builds_its_settings_is_held_to_the_same_rules() {
    let mut config = Config::default();
    config.validate().unwrap();
    config.game_loop.queue_capacity = 0;
    config.npcs.sight_radius = 129;
    let lines = config.validate().unwrap_err().to_string();
    assert_eq!(
        lines,
        "loop.queue_capacity is 0: it must be positive\nnpcs.sight_radius is 129: it must be at most 128"
    );
}

#[test]
fn a_host_starts_nothing_with_a_configuration_that_breaks_a_rule() {
    let root = tempfile::tempdir().unwrap();
    let mut config = Config { data_dir: root.path().join("data"), ..Config::default() };
    config.gate.guest = Some("rules".to_owned());
    let error = Host::start(&config, ManualClock::shared()).err().unwrap();
    assert!(matches!(error, StartError::Config(_)));
    assert_eq!(error.to_string(), "gate.guest is \"rules\": no enabled guest of kind \"game\" has that name");
    assert!(!config.data_dir.exists());
}

#[test]
fn services_need_no_game_and_the_watchdog_may_be_any_service() {
    let mut config = Config::default();
    config.gate.watchdog = Some("whoever registers it".to_owned());
    let mut lobby = GuestSettings::new("lobby", GuestKind::Service, "lobby.wasm");
    lobby.start = true;
    lobby.enabled = false;
    config.guests.push(lobby);
    config.validate().unwrap();
    config.guests[0].enabled = true;
    config.validate().unwrap();
    assert_eq!(config.gate_guest(), None);
    for (name, shown) in [(String::new(), "\"\"".to_owned()), ("x".repeat(65), format!("\"{}...", "x".repeat(56)))] {
        config.gate.watchdog = Some(name);
        let line = config.validate().unwrap_err().to_string();
        assert_eq!(line, format!("gate.watchdog is {shown}: the name of a service has 1 to 64 bytes"));
    }
}

#[test]
fn a_place_to_connect_to_is_a_host_and_a_port_or_all_of_them() {
    let is_taken = |place: &str| {
        let mut guest = GuestSettings::new("mailer", GuestKind::Service, "mailer.wasm");
        guest.grants.push(Grant::Sockets);
        guest.sockets.push(place.to_owned());
        Config { guests: vec![guest], ..Config::default() }.validate().is_ok()
    };
    for place in ["db.example.org:5432", "localhost:*", "127.0.0.1:1", "my_db-2:65535", "::1:80", "fe80::1:*"] {
        assert!(is_taken(place), "{place}");
    }
    for place in [
        "",
        ":",
        "host",
        "host:",
        ":80",
        "*:80",
        "host:0",
        "host:65536",
        "host:+80",
        "host:**",
        "host: 80",
        "a b:80",
        "http://host:80",
        "host:80:90",
        "[::1]:80",
        "host:80/path",
    ] {
        assert!(!is_taken(place), "{place}");
    }
}

#[test]
fn what_the_rules_allow_at_most_the_rooms_take() {
    let mut largest = serde_json::to_value(Config::default()).unwrap();
    for (key, value) in LARGEST {
        let (section, key) = key.split_once('.').unwrap();
        if section != "guests" {
            largest[section][key] = (*value).into();
        }
    }
    let config: Config = serde_json::from_value(largest).unwrap();
    config.validate().unwrap();
    config.sim_options().validate().unwrap();
    config.gate.options.validate().unwrap();
}
