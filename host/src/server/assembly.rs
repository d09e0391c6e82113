//! From a configuration and what an earlier run has left to the simulation that the loop runs: guests are loaded, the
//! world and the events that were stored are handed to them under the numbers of this run. Called once, when a host
//! starts; nothing runs yet.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustc_hash::FxHashMap;

use super::bell::Bell;
use super::board::Board;
use super::checkpoints::Checkpoints;
use super::committing::Committing;
use super::config::Config;
use super::event_pages::EventPages;
use super::events::EventRuns;
use super::generations::Generations;
use super::guests::{FirstStart, Guests};
use super::held_timers::HeldTimers;
use super::host::StartError;
use super::inboxes::{Inboxes, Replies};
use super::letters::Letters;
use super::outbox::Outbox;
use super::service_view::PresentServices;
use super::set_aside::SetAside;
use super::simulation::HostSimulation;
use super::swaps::Swaps;
use super::thinking::Thinking;
use crate::clock::SharedClock;
use crate::guest::contract::sim::types::Occasion;
use crate::guest::{
    EventBook, GuestCode, GuestCounters, GuestId, GuestKind, GuestLimits, GuestSettings, GuestState, Identity,
    LetterBook, LoadError, LogLines, LoopEngine, Stage, load, read_file,
};
use crate::net::Connections;
use crate::service::{MemberKind, Services};
use crate::store::{Agenda, Loaded, Reader, StoredGuest};
use crate::world::{ThinkerId, World, WorldSnapshot};

/// A guest of the configuration and, unless it was refused, its code.
pub struct LoadedGuest {
    pub identity: Arc<Identity>,
    kind: GuestKind,
    code: Option<GuestCode>,
    config_json: String,
}

/// Reads and compiles the guests of the loop. One that cannot be run is logged and left out; a file that is missing is an
/// error.
pub fn load_guests(
    config: &Config,
    engine: &LoopEngine,
    generations: &Generations,
) -> Result<Vec<LoadedGuest>, StartError> {
    let mut files = Vec::new();
    for settings in config.enabled_guests().filter(|guest| guest.kind != GuestKind::Service) {
        files.push((settings, read_guest(settings)?));
    }
    let guests = files.iter().enumerate().map(|(place, (settings, bytes))| {
        let identity = identity(GuestId(place as u32), settings, config, engine.limits(), engine.clock());
        let code = begin(generations, settings, bytes, &identity, |bytes| load(engine, settings, bytes));
        LoadedGuest { identity: Arc::new(identity), kind: settings.kind, code, config_json: settings.config_json() }
    });
    Ok(guests.collect())
}

/// Loads what a guest is to run at the start of a host: its configured file, or else what was swapped in last. None where
/// that cannot be run.
pub fn begin<C>(
    generations: &Generations,
    settings: &GuestSettings,
    configured: &[u8],
    identity: &Identity,
    load: impl Fn(&[u8]) -> Result<C, LoadError>,
) -> Option<C> {
    let load = |bytes: &[u8], file: &Path| told(settings, file, identity, || load(bytes));
    let (code, generation) = generations.begin(settings, configured, identity.clock.wall_ms(), load);
    identity.counters.set_generation(generation);
    // It may be that a first file was refused, and not a second one.
    identity.counters.set_state(if code.is_some() { GuestState::Loading } else { GuestState::Refused });
    code
}

/// Loads a file of a guest, and logs what came of it and how long it took; none where it cannot be run.
fn told<C>(
    settings: &GuestSettings,
    file: &Path,
    identity: &Identity,
    load: impl FnOnce() -> Result<C, LoadError>,
) -> Option<C> {
    let began = identity.clock.now();
    match load() {
        Ok(code) => {
            let took_ms = (identity.clock.now() - began).as_millis() as u64;
            tracing::info!(guest = settings.name, kind = %settings.kind, took_ms, "guest loaded");
            Some(code)
        }
        Err(error) => {
            identity.counters.failures.fetch_add(1, Ordering::Relaxed);
            tracing::error!(guest = settings.name, file = %file.display(), "the guest is refused: {error}");
            None
        }
    }
}

/// The bytes of a guest's file.
pub fn read_guest(settings: &GuestSettings) -> Result<Vec<u8>, StartError> {
    read_file(&settings.file).map_err(|error| StartError::GuestFile {
        guest: settings.name.clone(),
        file: settings.file.clone(),
        error,
    })
}

/// What is the same for all instances of a guest.
pub fn identity(
    id: GuestId,
    settings: &GuestSettings,
    config: &Config,
    limits: &Arc<GuestLimits>,
    clock: &SharedClock,
) -> Identity {
    let clock = Arc::clone(clock);
    Identity {
        id,
        name: Arc::from(settings.name.as_str()),
        writes: settings.kind == GuestKind::Game,
        log: Arc::new(LogLines::new(&settings.name, config.guest.max_log_lines_per_s, Arc::clone(&clock))),
        clock,
        limits: Arc::clone(limits),
        max_memory_bytes: settings.max_memory_bytes(&config.guest),
        counters: Arc::new(GuestCounters::new(&settings.name, settings.kind)),
        seed: config.world.seed,
    }
}

/// The thinkers of this run by name, and those that only NPCs of an earlier run know: they get ids that no guest has.
pub struct Thinkers {
    names: Vec<(ThinkerId, Arc<str>)>,
    guests: usize,
}

impl Thinkers {
    /// The thinkers among the guests, refused ones too: their NPCs exist, they only do not think.
    pub fn of(loaded: &[LoadedGuest]) -> Self {
        let thinkers = loaded.iter().filter(|guest| guest.kind == GuestKind::Thinker);
        let names = thinkers.map(|guest| (ThinkerId(guest.identity.id.0), Arc::clone(&guest.identity.name)));
        Self { names: names.collect(), guests: loaded.len() }
    }

    /// The names by the numbers of this run.
    pub fn names(&self) -> &[(ThinkerId, Arc<str>)] {
        &self.names
    }

    fn named(&mut self, name: &Arc<str>) -> ThinkerId {
        if let Some((id, _)) = self.names.iter().find(|(_, known)| known == name) {
            return *id;
        }
        // Beyond every guest of this run.
        let id = ThinkerId((self.guests + self.names.len()) as u32);
        self.names.push((id, Arc::clone(name)));
        id
    }

    /// Gives each NPC the id that its thinker has in this run.
    pub fn renumber(&mut self, world: &mut WorldSnapshot, stored: &[(ThinkerId, Arc<str>)]) {
        let now: FxHashMap<ThinkerId, ThinkerId> =
            stored.iter().map(|(before, name)| (*before, self.named(name))).collect();
        for entity in &mut world.entities {
            entity.thinker = entity.thinker.and_then(|before| now.get(&before).copied());
        }
    }
}

/// What the simulation is made of beside guests and what was stored.
pub struct Parts {
    pub engine: LoopEngine,
    pub services: Services,
    pub connections: Connections,
    pub bell: Bell,
    pub committing: Committing,
    pub outbox: Outbox,
    pub reader: Reader,
    pub board: Arc<Board>,
    pub swaps: Swaps,
}

/// The simulation, with everything in its place.
pub fn simulation(
    config: &Config,
    parts: Parts,
    stored: Loaded,
    loaded: Vec<LoadedGuest>,
) -> Result<HostSimulation, StartError> {
    let Parts { engine, services, connections, bell, committing, outbox, reader, board, swaps } = parts;
    let agenda = Agenda::new(config.agenda_limits(), &stored.guests, stored.next_sequence);
    let agenda = agenda.exclusive(stored.is_exclusive);
    let events = EventBook::new(agenda, Some(Box::new(reader.clone())), config.max_handler_bytes());
    let world = World::restore(stored.world, config.world_limits())?;
    let mut stage = Box::new(Stage::new(world, events, config.stage_limits()));
    let mut earlier: FxHashMap<Arc<str>, StoredGuest> =
        stored.guests.into_iter().map(|guest| (Arc::clone(&guest.name), guest)).collect();
    stage.letters = LetterBook::new(Box::new(PresentServices { services: services.clone(), connections }));
    let mut members = FxHashMap::default();
    let mut guests = Guests::default();
    for LoadedGuest { identity, kind, code, config_json } in loaded {
        let (id, name) = (identity.id, Arc::clone(&identity.name));
        if kind == GuestKind::Thinker {
            stage.thinkers.insert(name.to_string(), ThinkerId(id.0));
        }
        let was_refused = code.is_none();
        if kind == GuestKind::Game {
            stage.events.add_guest(id, &name);
            members.insert(id, services.add_member(MemberKind::Game, &name));
        }
        match kind {
            GuestKind::Game | GuestKind::Thinker => {
                let before = earlier.remove(&name);
                let is_first = before.as_ref().is_none_or(|before| !before.initialised);
                if is_first {
                    guests.uninitialised.insert(id);
                }
                let occasion = if is_first { Occasion::First } else { Occasion::Resumed };
                guests.order.push(FirstStart { guest: id, occasion, saved: before.and_then(|before| before.state) });
            }
            GuestKind::StepTask | GuestKind::Job if was_refused => {}
            GuestKind::StepTask | GuestKind::Job => {
                identity.counters.set_state(GuestState::Running);
                stage.task_guests.insert(name.to_string(), id);
            }
            // None is among the guests of the loop.
            GuestKind::Service => continue,
        }
        if config.gate_guest().is_some_and(|gate_guest| gate_guest.name == *name) {
            guests.at_the_gate = Some(id);
            if was_refused {
                tracing::error!(guest = &*name, "clients are turned away: the game at the gate was refused; mend it");
            }
        }
        guests.add(&engine, kind, identity, code, config_json);
    }
    let replies = Replies::new(bell);
    Ok(HostSimulation {
        inboxes: Inboxes::new(services.clone(), &members, replies.clone()),
        letters: Letters::new(services, members, replies),
        stage: Some(stage),
        engine,
        guests,
        thinking: Thinking::new(&config.npcs, config.world.seed),
        running_tasks: FxHashMap::default(),
        tasks_changed: false,
        ended_tasks: Vec::new(),
        committing,
        outbox,
        event_runs: EventRuns::new(config.events.clone()),
        event_pages: EventPages::new(reader),
        checkpoints: Checkpoints::default(),
        set_aside: SetAside::default(),
        held_timers: HeldTimers::default(),
        swaps,
        names: None,
        checkpoint_interval: config.store.checkpoint_interval(),
        packets_lost: 0,
        board,
        effects: Vec::new(),
        goes_on: false,
        spent: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{Position, Spawn, WorldLimits};

    #[test]
    fn npcs_keep_their_thinkers_by_name_when_the_configuration_changes() {
        let mut world = World::new(WorldLimits::default());
        let npc = |thinker| Spawn {
            kind: 2,
            position: Position::new(0, 1, 2),
            thinker: Some(ThinkerId(thinker)),
            connection: None,
        };
        world.transact(|world| world.spawn(npc(7)).and_then(|_| world.spawn(npc(8)))).unwrap();
        let mut snapshot = world.snapshot();
        // This run has three guests, of which the second is the wolf; there is no sheep.
        let mut thinkers = Thinkers { names: vec![(ThinkerId(1), "wolf".into())], guests: 3 };
        thinkers.renumber(&mut snapshot, &[(ThinkerId(7), "sheep".into()), (ThinkerId(8), "wolf".into())]);
        let now: Vec<_> = snapshot.entities.iter().map(|entity| entity.thinker).collect();
        assert_eq!(now, [Some(ThinkerId(4)), Some(ThinkerId(1))]);
        assert_eq!(thinkers.names()[1], (ThinkerId(4), "sheep".into()), "it is stored under its name again");
    }
}
