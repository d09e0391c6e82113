//! From a configuration to the services of a host: their guests are loaded, they get threads of their own, and those that
//! are to run from the beginning are launched. What services do is the business of the room `service`.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Runtime;

use super::assembly::{begin, identity, read_guest};
use super::config::Config;
use super::generations::Generations;
use super::host::StartError;
use crate::clock::SharedClock;
use crate::guest::{GuestCounters, GuestId, GuestKind, GuestSettings, GuestState};
use crate::service::{Handles, ServiceEngine, ServiceGuest, Services, code, dead_letters, describe, logger};

/// How long services have at the stop to come to an end.
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// The services of a host and their threads.
pub struct RunningServices {
    services: Services,
    runtime: Runtime,
    /// The counters of their guests.
    pub counters: Vec<Arc<GuestCounters>>,
}

impl RunningServices {
    /// Loads the guests; no service runs yet. Their ids begin at `first_id`.
    pub fn load(
        config: &Config,
        first_id: u32,
        cache_folder: Option<&Path>,
        clock: &SharedClock,
        generations: &Generations,
    ) -> Result<Self, StartError> {
        let runtime = runtime(config).map_err(StartError::Thread)?;
        let settings: Vec<&GuestSettings> =
            config.enabled_guests().filter(|guest| guest.kind == GuestKind::Service).collect();
        let mut counters = Vec::new();
        let mut guests = Vec::new();
        if !settings.is_empty() {
            let limit = config.service.max_running;
            let of = settings.iter().copied();
            let engine = ServiceEngine::for_guests(of, &config.guest, limit, cache_folder, Arc::clone(clock))?;
            for (place, settings) in settings.into_iter().enumerate() {
                let id = GuestId(first_id + place as u32);
                let (guest, counted) = load(config, settings, id, &engine, generations)?;
                counters.push(counted);
                guests.push(guest);
            }
        }
        let handles = Handles::beginning_at(clock.wall_ms());
        let max_payload_bytes = config.guest.max_payload_bytes();
        let services =
            Services::new(config.service.clone(), max_payload_bytes, guests, handles, runtime.handle().clone());
        dead_letters::start(&services);
        logger::start(&services, config.guest.max_log_lines_per_s, Arc::clone(clock));
        Ok(Self { services, runtime, counters })
    }

    /// The handle to all services.
    pub fn handle(&self) -> &Services {
        &self.services
    }

    /// Launches the services that are to run from the beginning, each under its guest's name.
    pub fn launch_first(&self, config: &Config) {
        for guest in config.enabled_guests().filter(|guest| guest.start) {
            let arguments = Bytes::from(guest.arguments.clone().unwrap_or_default());
            match self.services.launch_named(&guest.name, &guest.name, arguments) {
                Ok(handle) => tracing::info!(guest = guest.name, handle = handle.0, "service launched"),
                Err(error) => {
                    tracing::error!(guest = guest.name, "a service is not launched: {}", describe(&error));
                }
            }
        }
    }

    /// Ends all services.
    pub fn stop(self) {
        self.runtime.block_on(self.services.stop(STOP_LIMIT));
        // A service that computes gives control back within a slice; nothing else can hold a thread.
        self.runtime.shutdown_timeout(STOP_LIMIT);
    }
}

fn runtime(config: &Config) -> io::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = config.service.threads {
        builder.worker_threads(threads);
    }
    builder.thread_name("wheelhouse-service").enable_all().build()
}

/// The guest, unless its file cannot be run, which is logged, and its counters.
fn load(
    config: &Config,
    settings: &GuestSettings,
    id: GuestId,
    engine: &ServiceEngine,
    generations: &Generations,
) -> Result<(ServiceGuest, Arc<GuestCounters>), StartError> {
    let bytes = read_guest(settings)?;
    let identity = Arc::new(identity(id, settings, config, engine.limits(), engine.clock()));
    let counters = Arc::clone(&identity.counters);
    let code = begin(generations, settings, &bytes, &identity, |bytes| code::load(engine, settings, bytes));
    if code.is_some() {
        counters.set_state(GuestState::Running);
    }
    Ok((ServiceGuest::new(engine.clone(), identity, code, settings), counters))
}
