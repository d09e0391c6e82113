//! A running host: everything that [`Host::start`] starts, in order, and [`Host::stop`] stops, in reverse. The rooms do
//! the work; this file only knows what depends on what.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::runtime::Runtime;

use super::board::{Board, HostStatus, StatusReader};
use super::config::{Config, Invalid};
use super::guests::Guests;
use super::operator::Control;
use super::simulation::{HostSimulation, Item, TimerNames};
use super::sink::LoopSink;
use super::thinking::Thinking;
use super::world_file::{self, Kept, WorldFileError, WorldSave};
use crate::admin::{BoundControlPort, ControlPort, ControlPortError, DataDir, DataDirError};
use crate::clock::SharedClock;
use crate::guest::{
    EngineError, GuestCode, GuestCounters, GuestId, GuestKind, GuestSettings, GuestState, Identity, LogLines,
    LoopEngine, Stage, load, read_file,
};
use crate::net::{BoundGate, Connections, Gate, GateError, first_connection_at};
use crate::sim::{GameLoop, LoopCore, LoopFailure, OptionError, Outcome};
use crate::world::{ThinkerId, World, WorldError};

/// Where compiled code is kept in the data directory.
const CODE_CACHE: &str = "code-cache";

/// Threads for sockets and the control port.
const IO_THREADS: usize = 2;

/// Why a host did not start. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Config(#[from] Invalid),
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error(transparent)]
    Gate(#[from] GateError),
    #[error(transparent)]
    Control(#[from] ControlPortError),
    #[error(transparent)]
    Options(#[from] OptionError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    WorldFile(#[from] WorldFileError),
    #[error("the saved world does not fit: {0}")]
    World(#[from] WorldError),
    #[error("the file of guest \"{guest}\", {file}, cannot be read: {error}; build it, or mend `file`")]
    GuestFile { guest: String, file: PathBuf, error: io::Error },
    #[error("a thread cannot be started: {0}; the machine has no room for it")]
    Thread(io::Error),
}

/// Why a host did not stop as it should.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    #[error("the loop had failed before: {0}")]
    Loop(LoopFailure),
    #[error("the loop ended without the world's save")]
    Unsaved,
    #[error(transparent)]
    WorldFile(#[from] WorldFileError),
}

/// A world that runs.
pub struct Host {
    game_loop: GameLoop<Item>,
    gate: Gate,
    control: ControlPort,
    status: StatusReader,
    data_dir: DataDir,
    runtime: Runtime,
}

impl Host {
    /// Starts everything: checks the configuration, takes the data directory and the ports, compiles the guests, starts
    /// the loop, and lets clients in. A guest whose file cannot be run is logged and left out; a file that is missing is
    /// an error.
    pub fn start(config: &Config, clock: SharedClock) -> Result<Host, StartError> {
        config.validate()?;
        let data_dir = DataDir::open(&config.data_dir)?;
        allow_open_files(config.gate.options.max_connections);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(IO_THREADS)
            .thread_name("wheelhouse-io")
            .enable_all()
            .build()
            .map_err(StartError::Thread)?;
        let gate_options = &config.gate.options;
        // Addresses that are taken show before anything is compiled or started.
        let bound_gate = runtime.block_on(BoundGate::bind(gate_options))?;
        let bound_control = runtime.block_on(BoundControlPort::bind(&config.admin))?;
        let connections = Connections::new(gate_options, first_connection_at(clock.wall_ms()));

        let cache_folder = config.guest.code_cache.then(|| absolute(data_dir.path()).join(CODE_CACHE));
        let engine = LoopEngine::for_guests(
            config.enabled_guests(),
            &config.guest,
            cache_folder.as_deref(),
            Arc::clone(&clock),
        )?;
        let saved = world_file::read(data_dir.path())?;
        let loaded = load_guests(config, &engine)?;
        let counters = loaded.iter().map(|guest| Arc::clone(&guest.identity.counters)).collect();
        let board = Arc::new(Board::default());
        let simulation = simulation(config, engine, connections.clone(), Arc::clone(&board), saved, loaded)?;

        let mut core = LoopCore::new(simulation, config.sim_options(), Arc::clone(&clock))?;
        name_timers(&mut core);
        let game_loop = GameLoop::start(core).map_err(StartError::Thread)?;
        let status = StatusReader {
            handle: game_loop.handle().clone(),
            board,
            connections: connections.clone(),
            guests: counters,
            started: clock.now(),
            clock,
        };
        let sink = Arc::new(LoopSink::new(game_loop.handle().clone()));
        let answering = Arc::new(Control { status: status.clone(), handle: game_loop.handle().clone() });
        // Guests run only once operators can reach the host, and clients come only after the guests.
        let control = runtime.block_on(async { bound_control.open(&data_dir, answering) })?;
        // The queue has room and the loop has just started.
        let _ = game_loop.handle().try_post(Item::Start);
        let gate = runtime.block_on(async { bound_gate.open(connections, sink) });
        Ok(Host { game_loop, gate, control, status, data_dir, runtime })
    }

    /// Where clients connect.
    pub fn gate_address(&self) -> SocketAddr {
        self.gate.local_address()
    }

    /// Where operators' programs connect.
    pub fn control_address(&self) -> SocketAddr {
        self.control.address()
    }

    /// The figures now.
    pub fn status(&self) -> HostStatus {
        self.status.read()
    }

    /// CPU time that the loop thread has used.
    pub fn loop_cpu_time(&self) -> Duration {
        self.game_loop.handle().metrics().cpu_time
    }

    /// Ends when the loop does, which without a stop means that it failed.
    pub fn loop_ended(&self) -> impl Future<Output = Outcome> + Send + use<> {
        self.game_loop.handle().completion()
    }

    /// The runtime of sockets and the control port, for those who wait for signals.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Lets nobody in any more, finishes what was accepted, saves the world and stops.
    pub fn stop(self) -> Result<(), StopError> {
        let Host { game_loop, gate, control, status, data_dir, runtime } = self;
        drop(status);
        runtime.block_on(async {
            gate.stop().await;
            control.close().await;
        });
        let (reply, save) = crate::sim::reply::reply();
        let stopped = game_loop.handle().stop_with(Item::Save { reply });
        if let Err(error) = stopped {
            return Err(match error {
                crate::sim::StopError::Failed(failure) => StopError::Loop(failure),
                _ => StopError::Unsaved,
            });
        }
        let save: WorldSave = runtime.block_on(save).map_err(|_| StopError::Unsaved)?;
        world_file::write(data_dir.path(), &save)?;
        Ok(())
    }
}

/// Files beside the clients' sockets: guests, the world, the log, the control port.
const OTHER_FILES: u64 = 64;

/// Raises the limit of open files as far as this process may, and says where that is too little for the gate.
fn allow_open_files(max_connections: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = max_connections as u64 + OTHER_FILES;
    let Some(allowed) = current else { return };
    if allowed >= wanted {
        return;
    }
    let raised = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
        tracing::warn!("the limit of open files stays at {allowed}: {error}");
    }
    if raised < wanted {
        tracing::warn!(
            "only {raised} files may be open, and gate.max_connections = {max_connections} wants {wanted}: raise the \
             limit (ulimit -n) or lower the key"
        );
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A guest of the configuration and, unless it was refused, its code.
struct LoadedGuest {
    identity: Arc<Identity>,
    kind: GuestKind,
    code: Option<GuestCode>,
    config_json: String,
}

fn load_guests(config: &Config, engine: &LoopEngine) -> Result<Vec<LoadedGuest>, StartError> {
    let mut files = Vec::new();
    for settings in config.enabled_guests() {
        let bytes = read_file(&settings.file).map_err(|error| StartError::GuestFile {
            guest: settings.name.clone(),
            file: settings.file.clone(),
            error,
        })?;
        files.push((settings, bytes));
    }
    let guests = files.iter().enumerate().map(|(place, (settings, bytes))| {
        let identity = identity(GuestId(place as u32), settings, config, engine);
        let began = engine.clock().now();
        let code = load(engine, settings, bytes)
            .inspect(|_| {
                let took_ms = (engine.clock().now() - began).as_millis() as u64;
                tracing::info!(guest = settings.name, kind = %settings.kind, took_ms, "guest loaded");
            })
            .inspect_err(|error| {
                identity.counters.failures.fetch_add(1, Ordering::Relaxed);
                identity.counters.set_state(GuestState::Refused);
                tracing::error!(guest = settings.name, file = %settings.file.display(), "the guest is refused: {error}");
            })
            .ok();
        LoadedGuest { identity: Arc::new(identity), kind: settings.kind, code, config_json: settings.config_json() }
    });
    Ok(guests.collect())
}

fn identity(id: GuestId, settings: &GuestSettings, config: &Config, engine: &LoopEngine) -> Identity {
    let clock = Arc::clone(engine.clock());
    Identity {
        id,
        name: Arc::from(settings.name.as_str()),
        writes: settings.kind == GuestKind::Game,
        log: Arc::new(LogLines::new(&settings.name, config.guest.max_log_lines_per_s, Arc::clone(&clock))),
        clock,
        limits: Arc::clone(engine.limits()),
        max_memory_bytes: settings.max_memory_bytes(&config.guest),
        counters: Arc::new(GuestCounters::new(&settings.name, settings.kind)),
        seed: config.world.seed,
    }
}

fn simulation(
    config: &Config,
    engine: LoopEngine,
    connections: Connections,
    board: Arc<Board>,
    saved: Option<WorldSave>,
    loaded: Vec<LoadedGuest>,
) -> Result<HostSimulation, StartError> {
    let resumed = saved.is_some();
    let mut kept = Kept::default();
    let world = match saved {
        None => World::new(config.world_limits()),
        Some(mut save) => {
            save.rename_thinkers(|name| thinker_named(&loaded, name, &mut kept));
            kept.states = save.states;
            World::restore(save.world, config.world_limits())?
        }
    };
    let mut stage = Box::new(Stage::new(world, config.stage_limits()));
    let mut guests = Guests::default();
    for LoadedGuest { identity, kind, code, config_json } in loaded {
        let (id, name) = (identity.id, identity.name.to_string());
        if kind == GuestKind::Thinker {
            // Also one that was refused: its NPCs exist, they only do not think.
            stage.thinkers.insert(name.clone(), ThinkerId(id.0));
        }
        let Some(code) = code else { continue };
        match kind {
            GuestKind::Game | GuestKind::Thinker => {
                let states = &mut kept.states;
                let state = states.iter().position(|(of, _)| *of == name).map(|at| states.swap_remove(at).1);
                guests.order.push((id, state));
            }
            GuestKind::StepTask | GuestKind::Job => {
                identity.counters.set_state(GuestState::Running);
                stage.task_guests.insert(name.clone(), id);
            }
        }
        if config.gate_guest().is_some_and(|gate_guest| gate_guest.name == name) {
            guests.at_the_gate = Some(id);
        }
        guests.add(&engine, identity, code, config_json);
    }
    if let (None, Some(game)) = (guests.at_the_gate, config.gate_guest()) {
        tracing::error!(guest = game.name, "clients will be turned away: the game at the gate was refused; mend it");
    }
    Ok(HostSimulation {
        stage: Some(stage),
        engine,
        guests,
        thinking: Thinking::new(&config.npcs, config.world.seed),
        running_tasks: FxHashMap::default(),
        tasks_changed: false,
        ended_tasks: Vec::new(),
        connections,
        names: None,
        checkpoint_interval: config.store.checkpoint_interval(),
        kept,
        packets_lost: 0,
        resumed,
        board,
        effects: Vec::new(),
        goes_on: false,
        spent: false,
    })
}

/// The id of a thinker in this run. One that this run does not have gets an id that no guest has.
fn thinker_named(loaded: &[LoadedGuest], name: &str, kept: &mut Kept) -> ThinkerId {
    let named = |guest: &&LoadedGuest| guest.kind == GuestKind::Thinker && &*guest.identity.name == name;
    if let Some(guest) = loaded.iter().find(named) {
        return ThinkerId(guest.identity.id.0);
    }
    let id = ThinkerId((loaded.len() + kept.thinkers.len()) as u32);
    kept.thinkers.push((id, name.to_owned()));
    id
}

/// The names belong to the wheel, which the core makes.
fn name_timers(core: &mut LoopCore<HostSimulation>) {
    let (simulation, cx) = core.parts();
    simulation.names = Some(TimerNames {
        npc_think: cx.timers.name("npc_think"),
        guest: cx.timers.name("guest"),
        restart: cx.timers.name("restart"),
        checkpoint: cx.timers.name("checkpoint"),
    });
}
