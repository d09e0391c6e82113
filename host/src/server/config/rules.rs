//! What a configuration must keep to beyond having the right keys and types: every number positive and within reason,
//! and guests that fit together. Called when a host starts, and by the loader, which adds the place in the file.

use std::collections::HashMap;
use std::net::Ipv6Addr;

use serde_json::Value;

use super::problem::{Invalid, KeyPath, Problem, Step};
use super::settings::Config;
use crate::guest::component::grants_for;
use crate::guest::service_limits::MAX_NAME_BYTES;
use crate::guest::{Grant, GuestKind, GuestSettings, RestartPolicy};
use crate::net::{LONELY_CERTIFICATE, LONELY_KEY};
use crate::service::NATIVE_NAMES;

/// The largest value of each number. They are far above what is useful, and keep a slip of the finger from asking for
/// more memory than there is or for a time that overflows.
pub(crate) const LARGEST: &[(&str, u64)] = &[
    ("loop.queue_capacity", 16_777_216),
    ("loop.max_items_per_batch", 1_000_000),
    ("loop.item_budget_ms", 10_000),
    ("timers.tick_ms", 10_000),
    ("timers.wheel_size", 1_048_576),
    // As many as the wheel has numbers for.
    ("timers.max_pending", 16_777_216),
    ("timers.max_callbacks_per_batch", 1_000_000),
    ("timers.callback_budget_ms", 10_000),
    ("dispatch.target_tps", 1000),
    ("dispatch.starvation_frames", 1_000_000),
    ("dispatch.job_slice_ms", 10_000),
    ("dispatch.max_tasks", 100_000),
    ("guest.soft_budget_ms", 600_000),
    ("guest.deadline_ms", 600_000),
    ("guest.init_deadline_ms", 600_000),
    // Memories of 32-bit Wasm end here.
    ("guest.max_memory_mb", 4096),
    // A value, which may be a payload, has to fit into a row of the database.
    ("guest.max_payload_kb", 900_000),
    ("guest.max_log_lines_per_s", 1_000_000),
    ("guest.max_failures", 1_000_000),
    ("guest.failure_window_s", 86_400),
    ("guest.max_instances", 100_000),
    ("swap.probation_s", 86_400),
    ("swap.max_failures", 1_000_000),
    ("swap.drain_ms", 3_600_000),
    ("swap.keep", 1000),
    ("world.seed", u64::MAX),
    ("world.max_entities", 1_000_000_000),
    ("world.max_data_kb", 1_048_576),
    ("world.max_kv_mb", 1_048_576),
    ("npcs.think_interval_ms", 86_400_000),
    ("npcs.max_seen", 1024),
    // As far as a guest may ask `entities.within`.
    ("npcs.sight_radius", 128),
    ("npcs.max_step", 1024),
    ("service.threads", 1024),
    ("service.max_running", 100_000),
    ("service.mailbox_capacity", 16_777_216),
    ("service.mailbox_mb", 1_048_576),
    ("service.deadline_ms", 600_000),
    ("service.max_in_hand", 65_536),
    ("service.max_waiting", 1_000_000),
    ("service.call_limit_ms", 86_400_000),
    // A hundred of the longest pauses are seven days.
    ("service.restart_pause_ms", 6_048_000),
    ("service.max_restarts", 1_000_000),
    ("service.max_shared_mb", 1_048_576),
    ("gate.handshake_timeout_ms", 600_000),
    ("gate.max_connections", 1_000_000),
    ("gate.max_connects_per_second", 1_000_000),
    // The length of a frame travels in two bytes.
    ("gate.max_frame_bytes", 65_535),
    ("gate.max_frames_per_second", 1_000_000),
    ("gate.frame_burst", 1_000_000),
    ("gate.idle_timeout_s", 31_536_000),
    ("gate.max_backlog_kb", 1_048_576),
    ("gate.drain_timeout_ms", 600_000),
    ("store.checkpoint_interval_s", 86_400),
    ("store.max_pending_batches", 1_000_000),
    ("events.look_ahead_s", 86_400),
    ("events.max_in_memory", 16_777_216),
    ("events.max_attempts", 1_000_000),
    ("events.retry_ms", 86_400_000),
    ("events.max_pending", 1_000_000_000_000),
    ("events.budget_ms", 10_000),
    ("guests.max_memory_mb", 4096),
];

/// The longest name of a host that there can be.
const MAX_HOST_BYTES: usize = 253;

impl Config {
    /// Checks everything that types do not: a host starts only with a configuration that passes.
    pub fn validate(&self) -> Result<(), Invalid> {
        let mut problems = Vec::new();
        check_numbers(self, &mut problems);
        check_paths_and_addresses(self, &mut problems);
        for (index, guest) in self.guests.iter().enumerate() {
            check_guest(index, guest, &mut problems);
        }
        check_names(&self.guests, &mut problems);
        check_company(self, &mut problems);
        if problems.is_empty() { Ok(()) } else { Err(Invalid { problems }) }
    }
}

/// What must hold for the number under `key`, or `None` where it does.
pub(crate) fn complaint_about_number(key: &KeyPath, number: i128) -> Option<String> {
    let path = key.without_indices();
    let largest = LARGEST.iter().find(|(known, _)| *known == path).map_or(u64::MAX, |(_, largest)| *largest);
    if number <= 0 {
        Some("it must be positive".to_owned())
    } else if number > i128::from(largest) {
        Some(format!("it must be at most {largest}"))
    } else {
        None
    }
}

fn check_numbers(config: &Config, problems: &mut Vec<Problem>) {
    // Walking the serialised form reaches every number there is, also those that are added later.
    if let Ok(value) = serde_json::to_value(config) {
        walk_numbers(&KeyPath::default(), &value, problems);
    }
}

fn walk_numbers(key: &KeyPath, value: &Value, problems: &mut Vec<Problem>) {
    match value {
        Value::Number(number) => {
            let number = number.as_u64().map(i128::from).or(number.as_i64().map(i128::from));
            if let Some((number, complaint)) = number.and_then(|n| Some((n, complaint_about_number(key, n)?))) {
                problems.push(Problem::with_value(key.clone(), number, complaint));
            }
        }
        // A guest's own table is the guest's business.
        Value::Object(table) if key.without_indices() != "guests.config" => {
            table.iter().for_each(|(name, value)| walk_numbers(&key.then(Step::Key(name.clone())), value, problems));
        }
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(at, value)| walk_numbers(&key.then(Step::Index(at)), value, problems));
        }
        _ => {}
    }
}

fn check_paths_and_addresses(config: &Config, problems: &mut Vec<Problem>) {
    if config.data_dir.as_os_str().is_empty() {
        problems.push(Problem::with_value(KeyPath::of("data_dir"), "\"\"", "it must name a directory"));
    }
    let admin = config.admin.listen;
    if !admin.ip().is_loopback() {
        let mend = "the control port must listen on a loopback address, like \"127.0.0.1:0\"";
        problems.push(Problem::with_value(KeyPath::of("admin.listen"), format!("\"{admin}\""), mend));
    }
    let gate = &config.gate.options;
    let (key, file, mend) = match (&gate.tls_certificate, &gate.tls_key) {
        (Some(certificate), None) => ("gate.tls_certificate", certificate, LONELY_CERTIFICATE),
        (None, Some(file)) => ("gate.tls_key", file, LONELY_KEY),
        _ => return,
    };
    problems.push(Problem::with_value(KeyPath::of(key), format!("{:?}", file.display().to_string()), mend));
}

fn check_guest(index: usize, guest: &GuestSettings, problems: &mut Vec<Problem>) {
    let named = guest.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if guest.name.is_empty() || guest.name.len() > MAX_NAME_BYTES || !named {
        let mend = format!("a name has 1 to {MAX_NAME_BYTES} letters, digits, - and _");
        problems.push(Problem::with_value(KeyPath::of_guest(index, "name"), format!("{:?}", guest.name), mend));
    }
    check_name_among_services(index, guest, problems);
    if guest.file.as_os_str().is_empty() {
        problems.push(Problem::with_value(KeyPath::of_guest(index, "file"), "\"\"", "it must name a Wasm file"));
    }
    let possible = grants_for(guest.kind);
    for (at, grant) in guest.grants.iter().enumerate().filter(|(_, grant)| !possible.contains(grant)) {
        let key = KeyPath::of_guest(index, "grants").then(Step::Index(at));
        let mend = format!("a {} can be granted only {}", guest.kind, list(&possible));
        problems.push(Problem::with_value(key, format!("\"{grant}\""), mend));
    }
    if guest.kind == GuestKind::Service {
        check_service(index, guest, problems);
    } else {
        check_no_service(index, guest, problems);
    }
}

/// The host's own parts have names among services, and so has each game, and each service that is launched first.
fn check_name_among_services(index: usize, guest: &GuestSettings, problems: &mut Vec<Problem>) {
    let needs_name = guest.kind == GuestKind::Game || guest.start;
    if guest.enabled && needs_name && NATIVE_NAMES.contains(&guest.name.as_str()) {
        let mend = "a part of the host has that name among services, so this guest would be without; give it another";
        problems.push(Problem::with_value(KeyPath::of_guest(index, "name"), format!("{:?}", guest.name), mend));
    }
}

/// The keys that only services have.
fn check_service(index: usize, guest: &GuestSettings, problems: &mut Vec<Problem>) {
    if let Some(arguments) = guest.arguments.as_ref().filter(|_| !guest.start) {
        let mend = "nobody would get them; add start = true, which launches the service that does";
        problems.push(Problem::with_value(KeyPath::of_guest(index, "arguments"), format!("{arguments:?}"), mend));
    }
    for (at, place) in guest.sockets.iter().enumerate().filter(|(_, place)| !is_place_to_connect_to(place)) {
        let key = KeyPath::of_guest(index, "sockets").then(Step::Index(at));
        let mend = "it must be a host and a port, like \"db.example.org:5432\", or \"db.example.org:*\" for all ports";
        problems.push(Problem::with_value(key, format!("{place:?}"), mend));
    }
    let granted = guest.grants.iter().position(|grant| *grant == Grant::Sockets);
    match granted {
        None if !guest.sockets.is_empty() => {
            let mend = "add \"sockets\" to the grants, without which it connects to nobody";
            let places = format!("{:?}", guest.sockets);
            problems.push(Problem::with_value(KeyPath::of_guest(index, "sockets"), places, mend));
        }
        Some(at) if guest.sockets.is_empty() => {
            let key = KeyPath::of_guest(index, "grants").then(Step::Index(at));
            let mend = "name the hosts that it may connect to, as in sockets = [\"db.example.org:5432\"]";
            problems.push(Problem::with_value(key, "\"sockets\"", mend));
        }
        _ => {}
    }
}

/// What of the keys for services is said of a guest that is none.
fn check_no_service(index: usize, guest: &GuestSettings, problems: &mut Vec<Problem>) {
    let said = [
        ("start", guest.start.then(|| "true".to_owned())),
        ("arguments", guest.arguments.as_ref().map(|arguments| format!("{arguments:?}"))),
        ("restart", (guest.restart != RestartPolicy::Never).then(|| format!("\"{}\"", guest.restart))),
        ("sockets", (!guest.sockets.is_empty()).then(|| format!("{:?}", guest.sockets))),
    ];
    for (key, value) in said {
        let Some(value) = value else { continue };
        let mend = format!("only a service has that key, and this is a {}; leave it out", guest.kind);
        problems.push(Problem::with_value(KeyPath::of_guest(index, key), value, mend));
    }
}

/// Whether it is a host, as a guest would write it, and a port or all of them.
fn is_place_to_connect_to(place: &str) -> bool {
    let Some((host, port)) = place.rsplit_once(':') else { return false };
    let is_name = |host: &str| host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    let is_host = !host.is_empty() && host.len() <= MAX_HOST_BYTES && is_name(host) || host.parse::<Ipv6Addr>().is_ok();
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0);
    is_host && (port == "*" || is_port)
}

fn check_names(guests: &[GuestSettings], problems: &mut Vec<Problem>) {
    let mut first_with_name = HashMap::new();
    for (index, guest) in guests.iter().enumerate() {
        let first = *first_with_name.entry(guest.name.as_str()).or_insert(index);
        if first != index {
            let mend = format!("guests[{first}] has that name already, and each needs its own");
            problems.push(Problem::with_value(KeyPath::of_guest(index, "name"), format!("{:?}", guest.name), mend));
        }
    }
}

fn check_company(config: &Config, problems: &mut Vec<Problem>) {
    let has_game = config.enabled_guests().any(|guest| guest.kind == GuestKind::Game);
    for (index, guest) in config.guests.iter().enumerate() {
        let needs_game = !matches!(guest.kind, GuestKind::Game | GuestKind::Service);
        if guest.enabled && needs_game && !has_game {
            let mend = "no guest of kind \"game\" is enabled that would give it work";
            let kind = format!("\"{}\"", guest.kind);
            problems.push(Problem::with_value(KeyPath::of_guest(index, "kind"), kind, mend));
        }
    }
    if let Some(name) = &config.gate.guest
        && config.gate_guest().is_none()
    {
        let mend = "no enabled guest of kind \"game\" has that name";
        problems.push(Problem::with_value(KeyPath::of("gate.guest"), format!("{name:?}"), mend));
    }
    // Who has the name then is seen when a client comes: a service may take it at any time.
    if let Some(name) = &config.gate.watchdog
        && !(1..=MAX_NAME_BYTES).contains(&name.len())
    {
        let mend = format!("the name of a service has 1 to {MAX_NAME_BYTES} bytes");
        problems.push(Problem::with_value(KeyPath::of("gate.watchdog"), format!("{name:?}"), mend));
    }
}

fn list(grants: &[Grant]) -> String {
    grants.iter().map(Grant::to_string).collect::<Vec<_>>().join(", ")
}
