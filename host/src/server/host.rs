//! A running host: everything that [`Host::start`] starts, in order, and [`Host::stop`] stops, in reverse. The rooms do
//! the work; this file only knows what depends on what.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::assembly::{self, Parts, Thinkers};
use super::bell::Bell;
use super::board::{Board, HostStatus, StatusReader};
use super::committing::Committing;
use super::config::{Config, Invalid};
use super::generations::Generations;
use super::operator::Control;
use super::outbox::Outbox;
use super::router::Router;
use super::services::RunningServices;
use super::simulation::{HostSimulation, Item, TimerNames};
use super::swapper::{SwapParts, Swapper, generations_in};
use super::swaps::Swaps;
use crate::admin::{BoundControlPort, ControlPort, ControlPortError, DataDir, DataDirError};
use crate::clock::SharedClock;
use crate::guest::{EngineError, LoopEngine};
use crate::net::{BoundGate, Connections, Gate, GateError, first_connection_at};
use crate::sim::{GameLoop, LoopCore, LoopFailure, OptionError, Outcome};
use crate::store::sqlite::SqliteStore;
use crate::store::{Reader, Store, StoreError, Writer};
use crate::world::WorldError;

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
    Store(#[from] StoreError),
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
    // It shows its cause in its middle, where nobody who tells causes after errors would find it: so it has none.
    #[error("not everything was saved: {}{}", .0, .0.consolation())]
    Store(StoreError),
}

/// A world that runs.
pub struct Host {
    game_loop: GameLoop<Item>,
    gate: Gate,
    services: RunningServices,
    control: ControlPort,
    status: StatusReader,
    writer: Writer,
    reader: Reader,
    /// Nobody else may have the directory until everything above is at its end.
    data_dir: DataDir,
    runtime: Runtime,
}

impl Host {
    /// Starts everything: checks the configuration, takes the data directory and the ports, compiles the guests, starts
    /// the loop, and lets clients in. A guest whose file cannot be run is logged and left out; a file that is missing is
    /// an error.
    ///
    /// The world is kept in SQLite, in the data directory.
    pub fn start(config: &Config, clock: SharedClock) -> Result<Host, StartError> {
        Self::start_on(config, clock, |data_dir| Ok(Arc::new(SqliteStore::open(data_dir)?)))
    }

    /// [`start`](Self::start) on another store than SQLite: `open` is called with the data directory once it is this
    /// host's.
    pub fn start_on(
        config: &Config,
        clock: SharedClock,
        open: impl FnOnce(&Path) -> Result<Arc<dyn Store>, StoreError>,
    ) -> Result<Host, StartError> {
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
        let store = open(data_dir.path())?;
        let mut stored = store.load()?;
        let generations = Arc::new(Generations::open(generations_in(data_dir.path()), config.swap.keep));
        let loaded = assembly::load_guests(config, &engine, &generations)?;
        let identities: Vec<_> = loaded.iter().map(|guest| Arc::clone(&guest.identity)).collect();
        let (returned, returns) = tokio::sync::mpsc::unbounded_channel();
        let running_services =
            RunningServices::load(config, loaded.len() as u32, cache_folder.as_deref(), &clock, &generations)?;
        let services = running_services.handle().clone();
        let tell_return = returned.clone();
        services.set_swaps(
            config.swap.clone(),
            Box::new(move |guest, back| {
                // Nobody listens any more when the host stops.
                let _ = tell_return.send((guest, back));
            }),
        );
        let of_loop = loaded.iter().map(|guest| Arc::clone(&guest.identity.counters));
        let counters = of_loop.chain(running_services.counters.iter().cloned()).collect();
        let mut thinkers = Thinkers::of(&loaded);
        thinkers.renumber(&mut stored.world, &stored.thinkers);
        // The loop, which is not there yet, looks around whenever something is on disk.
        let bell = Bell::default();
        let rings = bell.clone();
        let on_change = Box::new(move || rings.ring());
        let writer = Writer::start(store.writer(thinkers.names().to_vec())?, Arc::clone(&clock), on_change)?;
        let reader = Reader::start(store)?;
        let board = Arc::new(Board::default());
        let outbox = Outbox::new(connections.clone(), gate_options.max_backlog_bytes());
        let committing = Committing::new(writer.clone(), config.store.max_pending_batches);
        let parts = Parts {
            engine: engine.clone(),
            services: services.clone(),
            connections: connections.clone(),
            bell: bell.clone(),
            committing,
            outbox,
            reader: reader.clone(),
            board: Arc::clone(&board),
            swaps: Swaps::new(config.swap.clone(), returned),
        };
        let simulation = assembly::simulation(config, parts, stored, loaded)?;
        let routing = simulation.routing(config);
        let lateness = simulation.event_runs.lateness();

        let mut core = LoopCore::new(simulation, config.sim_options(), Arc::clone(&clock))?;
        name_timers(&mut core);
        bell.hang(core.handle());
        let game_loop = GameLoop::start(core).map_err(StartError::Thread)?;
        let handle = game_loop.handle().clone();
        let swapping = SwapParts { engine, guests: identities, services: services.clone(), generations, handle };
        let swapper = Swapper::start(swapping, config, returns, runtime.handle());
        let status = StatusReader {
            handle: game_loop.handle().clone(),
            board,
            connections: connections.clone(),
            services: services.clone(),
            lateness,
            writer: writer.clone(),
            swapper: swapper.clone(),
            guests: counters,
            started: clock.now(),
            clock,
        };
        let router = Router::start(game_loop.handle().clone(), &services, connections.clone(), routing);
        let answering = Arc::new(Control {
            status: status.clone(),
            handle: game_loop.handle().clone(),
            services: services.clone(),
            swapper,
            reader: reader.clone(),
            writer: writer.clone(),
        });
        // Guests run only once operators can reach the host, and clients come only after the guests.
        let control = runtime.block_on(async { bound_control.open(&data_dir, answering) })?;
        // The queue has room and the loop has just started.
        let _ = game_loop.handle().try_post(Item::Start);
        running_services.launch_first(config);
        let gate = runtime.block_on(async { bound_gate.open(connections, router) });
        Ok(Host { game_loop, gate, services: running_services, control, status, writer, reader, data_dir, runtime })
    }

    /// Where clients connect.
    pub fn gate_address(&self) -> SocketAddr {
        self.gate.local_address()
    }

    /// Where clients connect that speak WebSocket, if there is a port for them.
    pub fn websocket_address(&self) -> Option<SocketAddr> {
        self.gate.websocket_address()
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

    /// Lets nobody in any more, finishes what was accepted, saves everything and stops. What was handed to the store is
    /// written even if the loop has failed.
    pub fn stop(self) -> Result<(), StopError> {
        let Host { game_loop, gate, services, control, status, writer, reader, data_dir, runtime } = self;
        drop(status);
        runtime.block_on(async {
            gate.stop().await;
            control.close().await;
        });
        services.stop();
        let stopped = game_loop.handle().stop_with(Item::Finish);
        reader.stop();
        let written = writer.stop();
        drop(data_dir);
        match stopped {
            Ok(()) => written.map_err(StopError::Store),
            Err(crate::sim::StopError::Failed(failure)) => Err(StopError::Loop(failure)),
            Err(_) => Err(StopError::Unsaved),
        }
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

/// The names belong to the wheel, which the core makes.
fn name_timers(core: &mut LoopCore<HostSimulation>) {
    let (simulation, cx) = core.parts();
    simulation.names = Some(TimerNames {
        npc_think: cx.timers.name("npc_think"),
        guest: cx.timers.name("guest"),
        restart: cx.timers.name("restart"),
        checkpoint: cx.timers.name("checkpoint"),
        events: cx.timers.name("events"),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_that_failed_tells_its_reason_once_and_calls_safe_only_what_is() {
        let file = PathBuf::from("data/world.db");
        let full = StoreError::Unwritable { file: file.clone(), reason: "the disk is full; make room".to_owned() };
        let cut = StoreError::LogCut { file, log: PathBuf::from("data/world.db-wal") };
        for (error, is_safe) in [(full, true), (cut, false)] {
            let reason = error.to_string();
            let error = anyhow::Error::from(StopError::Store(error));
            assert_eq!(error.chain().count(), 1, "whoever tells the causes too would tell the reason twice");
            let expected = if is_safe { "; what was acknowledged is safe" } else { "" };
            assert_eq!(error.to_string(), format!("not everything was saved: {reason}{expected}"));
        }
    }
}
