//! The harm that only a game can do: floods of what it may make, and sizes that nothing may have.

use std::time::Duration;

use wheelhouse_guest::prelude::*;

/// More than any limit on how many there may be.
const FLOOD: u32 = 10_000_000;

/// Does the named harm, and says how far it came; none when there is no such name.
pub fn commit(name: &str, connection: ConnectionId) -> Option<String> {
    let outcome = match name {
        "flood-timers" => flood(|_| timers::every("flood", Duration::from_millis(8), b"x")),
        "flood-entities" => flood(|number| entities::spawn(9, Position::new(0, number as i32, 0), None)),
        "flood-tasks" => flood(|_| tasks::start("hostile-step", b"waiting")),
        "flood-packets" => flood(|_| gate::send(connection, [0x78; 1_000])),
        "flood-kv" => flood(|number| kv::set_bytes(&format!("flood/{number}"), &[0; 100_000])),
        "flood-data" => flood(|number| entities::set_data(player(connection)?, &format!("{number}"), &[0; 1_000])),
        "big-packet" => said(gate::send(connection, mischief::too_many_bytes())),
        "big-send-all" => said(gate::send_all(&vec![connection; 1_000_000], b"x")),
        "big-value" => said(kv::set_bytes("big", &mischief::too_many_bytes())),
        "big-key" => said(kv::set_bytes(&mischief::too_long_text(), b"x")),
        "big-prefix" => said::<_, ()>(Ok(kv::scan(&mischief::too_long_text(), None, u32::MAX).len())),
        "big-data" => said(player(connection).and_then(|id| entities::set_data(id, "d", &mischief::too_many_bytes()))),
        "big-name" => said(player(connection).and_then(|id| entities::set_data(id, &mischief::too_long_text(), b"x"))),
        "big-thinker" => said(entities::spawn(9, Position::new(0, 0, 0), Some(&mischief::too_long_text()))),
        "big-timer" => said(timers::every("big", Duration::from_secs(1), &mischief::too_many_bytes())),
        "big-timer-name" => said(timers::every(&mischief::too_long_text(), Duration::from_secs(1), b"x")),
        "big-arguments" => said(tasks::start("hostile-job", &mischief::too_many_bytes())),
        "big-guest" => said(tasks::start(&mischief::too_long_text(), b"x")),
        "big-query" => said::<_, ()>(Ok(entities::within(Position::new(0, 0, 0), u32::MAX, u32::MAX).len())),
        "zero-timer" => said(timers::every("zero", Duration::ZERO, b"x")),
        "longest-timer" => said(timers::every("longest", Duration::MAX, b"x")),
        "far-away" => said(entities::spawn(9, Position::new(u32::MAX, i32::MIN, i32::MAX), None)),
        _ if mischief::commit(name) => "done".into(),
        _ => return None,
    };
    Some(format!("survived {name}: {outcome}"))
}

/// Does it again and again until the host has had enough; says how often that was, and the error.
fn flood<T, E: std::fmt::Debug>(mut harm: impl FnMut(u32) -> Result<T, E>) -> String {
    for number in 0..FLOOD {
        if let Err(error) = harm(number) {
            return format!("{number} then {error:?}");
        }
    }
    format!("{FLOOD}")
}

fn said<T: std::fmt::Debug, E: std::fmt::Debug>(outcome: Result<T, E>) -> String {
    format!("{outcome:?}")
}

/// The entity of a connection.
pub fn player(connection: ConnectionId) -> Result<EntityId, entities::EntityError> {
    let id = kv::get_bytes(&player_key(connection)).and_then(|bytes| bytes.try_into().ok());
    id.map(u64::from_le_bytes).ok_or(entities::EntityError::NotFound)
}

/// Where a connection's entity is noted.
pub fn player_key(connection: ConnectionId) -> String {
    format!("player/{connection}")
}
