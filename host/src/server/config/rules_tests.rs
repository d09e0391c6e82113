use super::Config;
use super::rules::LARGEST;
use crate::clock::ManualClock;
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
