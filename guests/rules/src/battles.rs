//! Battles that are settled later: a person marches against the wolves or against somebody else, and an event settles it
//! when it is time, once, whoever is there then. Who is told at once, everybody finds it in the chronicle.

use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

use crate::config::Config;
use crate::{answer, persons, players};

/// The kind of the event that settles a battle.
pub const BATTLE: &str = "battle";

/// Whom one marches against who does not name a person; nobody can have this name.
pub const WOLVES: &str = "wolves";

/// How strong the wolves are. A person is as strong as their harvest, and a little.
const STRENGTH_OF_WOLVES: u32 = 3;

/// What the event carries.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Battle {
    attacker: String,
    defender: String,
}

/// Begins a battle.
pub fn challenge(config: &Config, connection: ConnectionId, defender: &str) -> Result<(), Refusal> {
    let Some((_, attacker)) = players::named(connection)? else {
        return answer(connection, players::NAMELESS);
    };
    let Some(mut person) = persons::find(&attacker)? else { refuse!("{attacker} is nobody") };
    if person.battle.is_some() {
        return answer(connection, "you are on the march already");
    }
    if defender == attacker {
        return answer(connection, "one does not fight oneself");
    }
    if defender != WOLVES && persons::find(defender)?.is_none() {
        return answer(connection, format!("nobody knows {defender}"));
    }
    let battle = Battle { attacker, defender: defender.into() };
    person.battle = Some(events::after(BATTLE, config.battle(), &events::payload(&battle)?)?);
    persons::keep(&battle.attacker, &person)?;
    persons::tell(defender, &format!("{} marches against you", battle.attacker))?;
    answer(connection, format!("you march against {defender}, for {} s", config.battle_s))
}

/// Calls a battle off.
pub fn retreat(connection: ConnectionId) -> Result<(), Refusal> {
    let Some((_, name)) = players::named(connection)? else {
        return answer(connection, players::NAMELESS);
    };
    let Some(mut person) = persons::find(&name)? else { refuse!("{name} is nobody") };
    let Some(battle) = person.battle.take() else {
        return answer(connection, "you are on no march");
    };
    // An event that an operator has dropped is gone; then there is nothing left to call off.
    events::cancel(battle);
    persons::keep(&name, &person)?;
    answer(connection, "you retreat")
}

/// Settles a battle.
pub fn settle(event: &DueEvent) -> Result<(), Refusal> {
    let Battle { attacker, defender } = event.read()?;
    let total = strength(&attacker)? + strength(&defender)?;
    let attacker_wins = random::below(total) < strength(&attacker)?;
    let (winner, loser) = if attacker_wins { (&attacker, &defender) } else { (&defender, &attacker) };
    if let Some(mut person) = persons::find(&attacker)? {
        person.battle = None;
        persons::keep(&attacker, &person)?;
    }
    let line = format!("{winner} beat {loser}");
    info!("{line}");
    for name in [&attacker, &defender].into_iter().filter(|name| *name != WOLVES) {
        persons::record(name, &line)?;
    }
    Ok(())
}

fn strength(name: &str) -> Result<u64, Refusal> {
    let strength = match persons::find(name)? {
        Some(person) => person.harvest.saturating_add(1),
        None => STRENGTH_OF_WOLVES,
    };
    Ok(u64::from(strength))
}
