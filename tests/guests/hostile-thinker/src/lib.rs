//! A thinker that misbehaves as its configuration says: `misbehave` is the name of a harm (see `mischief`) or one of
//! those below, `when` is `init` or `think` (the default). Without `misbehave` its NPCs walk to and fro.
//!
//! With `trap-on-kind:7` it traps on a batch that holds an NPC of the kind 7, with `trap-on-id:7` on the NPC 7 alone.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

/// As many intents as fit into the memory that a guest has by default, and far more than any batch.
const GIANT_LIST: usize = 1_000_000;

#[derive(Deserialize)]
#[serde(default)]
struct Config {
    misbehave: String,
    when: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { misbehave: String::new(), when: "think".into() }
    }
}

#[derive(Serialize, Deserialize)]
struct Hostile {
    #[serde(skip)]
    misbehave: String,
    thoughts: u64,
}

impl BatchThinker for Hostile {
    type Config = Config;

    fn init(config: Config, _occasion: Occasion) -> Result<Self, Refusal> {
        if config.when == "init" {
            if config.misbehave == "fail" {
                refuse!("this thinker refuses to start as it was told");
            }
            mischief::commit(&config.misbehave);
        }
        let misbehave = if config.when == "think" { config.misbehave } else { String::new() };
        Ok(Self { misbehave, thoughts: 0 })
    }

    fn restored(&mut self, fresh: Self) {
        self.misbehave = fresh.misbehave;
    }

    fn think(&mut self, _now: Duration, batch: Batch<'_>, intents: &mut Vec<Intent>) {
        self.thoughts += 1;
        let to_and_fro = if self.thoughts.is_multiple_of(2) { 1 } else { -1 };
        match self.misbehave.split_once(':').unwrap_or((&self.misbehave, "")) {
            ("trap-on-kind", kind) => trap_on(batch, |npc| u64::from(npc.kind), kind),
            ("trap-on-id", id) => trap_on(batch, |npc| npc.id, id),
            // Of entities that are seen, but do not think in this batch, and of one that there never was.
            ("foreign", _) => intents.extend(batch.seen.iter().map(|sighting| as_npc(sighting.id).move_to(0, 0))),
            ("unknown", _) => intents.push(as_npc(u64::MAX).act(u64::MAX, u32::MAX)),
            ("giant", _) => intents.resize(GIANT_LIST, as_npc(1).move_to(0, 0)),
            ("repeat", _) => intents.extend(batch.npcs.iter().flat_map(|npc| [npc.act(0, 0); 100])),
            ("far", _) => intents.extend(batch.npcs.iter().map(|npc| npc.move_to(i32::MAX, i32::MIN))),
            ("act", _) => intents.extend(batch.npcs.iter().map(|npc| npc.act(u64::MAX, u32::MAX))),
            ("write", _) => write(),
            (name, _) => _ = mischief::commit(name),
        }
        if intents.is_empty() {
            intents.extend(batch.npcs.iter().map(|npc| npc.move_to(npc.x + to_and_fro, npc.y)));
        }
    }
}

fn trap_on(batch: Batch<'_>, number: impl Fn(&Npc) -> u64, told: &str) {
    let told = told.parse().ok();
    if let Some(npc) = batch.npcs.iter().find(|npc| Some(number(npc)) == told) {
        panic!("this thinker panics on the NPC {} as it was told", npc.id);
    }
}

/// Tries to change the world, which a thinker may not, and panics if it could.
fn write() {
    let spawned = entities::spawn(1, Position::new(0, 0, 0), None);
    assert!(matches!(spawned, Err(entities::EntityError::ReadOnly)), "{spawned:?}");
    let set = kv::set_bytes("hostile", b"thinker");
    assert!(matches!(set, Err(kv::KvError::ReadOnly)), "{set:?}");
}

fn as_npc(id: EntityId) -> Npc {
    Npc { id, kind: 0, map: 0, x: 0, y: 0, seen_first: 0, seen_count: 0 }
}

wheelhouse_guest::batch_thinker!(Hostile);
