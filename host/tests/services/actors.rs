//! Services without a host around them: the engine, the guests of `tests/guests/`, and a member that asks on behalf of a
//! test or a benchmark.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Runtime;
use wheelhouse::clock::{MonotonicClock, SharedClock};
use wheelhouse::guest::settings::RestartPolicy;
use wheelhouse::guest::{Grant, GuestCounters, GuestId, GuestKind, GuestLimits, GuestSettings, Identity, LogLines};
use wheelhouse::service::{
    Answer, Handle, Handles, Member, MemberKind, ServiceCode, ServiceEngine, ServiceGuest, ServiceOptions, Services,
    Subject, code,
};

/// How long an answer may take: far more than it does, so that a test which hangs ends.
const PATIENCE: Duration = Duration::from_secs(120);

/// Options for few services: each that could run has its addresses reserved, and many tests may run in one process.
pub fn few() -> ServiceOptions {
    ServiceOptions { max_running: 400, ..ServiceOptions::default() }
}

/// Services, and who asks them.
pub struct Actors {
    pub services: Services,
    pub asker: Arc<Member>,
    pub runtime: Runtime,
    pub counters: HashMap<&'static str, Arc<GuestCounters>>,
}

impl Actors {
    /// The services that these guests of `tests/guests/` may be launched of.
    pub fn of(guests: &[&'static str]) -> Self {
        Self::with(ServiceOptions { deadline_ms: 10_000, ..few() }, guests, RestartPolicy::Never)
    }

    /// The same, with options, and what becomes of one that ends.
    pub fn with(options: ServiceOptions, names: &[&'static str], restart: RestartPolicy) -> Self {
        let clock = MonotonicClock::shared();
        let limits = GuestLimits::default();
        let settings: Vec<GuestSettings> = names.iter().map(|name| settings(name, restart)).collect();
        let max_running = options.max_running;
        let engine =
            ServiceEngine::for_guests(&settings, &limits, max_running, Some(&code_cache()), Arc::clone(&clock))
                .unwrap();
        let mut counters = HashMap::new();
        let guests = names.iter().zip(&settings).enumerate().map(|(place, (name, settings))| {
            let identity = Arc::new(identity(place as u32, settings, &engine, &clock));
            counters.insert(*name, Arc::clone(&identity.counters));
            let code = code::load(&engine, settings, &std::fs::read(&settings.file).unwrap()).unwrap();
            ServiceGuest::new(engine.clone(), identity, Some(code), settings)
        });
        let guests = guests.collect();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let handles = Handles::beginning_at(clock.wall_ms());
        let services = Services::new(options, limits.max_payload_bytes(), guests, handles, runtime.handle().clone());
        let asker = services.add_member(MemberKind::Native, "asker");
        Self { services, asker, runtime, counters }
    }

    /// Launches a service that is there.
    pub fn launch(&self, guest: &str) -> Handle {
        self.services.launch(guest, Bytes::new()).unwrap()
    }

    /// Asks a service and waits for the answer.
    pub fn ask(&self, to: Handle, text: impl Into<String>) -> Answer {
        self.runtime.block_on(self.asking(to, text, PATIENCE))
    }

    /// The same, to be waited for elsewhere.
    pub async fn asking(&self, to: Handle, text: impl Into<String>, limit: Duration) -> Answer {
        self.services.call(&self.asker, to, Subject::Plain, Bytes::from(text.into()), limit).await
    }

    /// Asks for an answer that must be there, as text.
    pub fn told(&self, to: Handle, text: impl Into<String>) -> String {
        let answer = self.ask(to, text).unwrap();
        String::from_utf8(answer.to_vec()).unwrap()
    }

    /// The code of a guest of `tests/guests/`, for services of any guest.
    pub fn code(&self, guest: &str) -> ServiceCode {
        self.code_of(guest, &std::fs::read(settings(guest, RestartPolicy::Never).file).unwrap())
    }

    /// The code of a service in these bytes.
    pub fn code_of(&self, guest: &str, bytes: &[u8]) -> ServiceCode {
        let engine = self.services.guest_engine(self.counters.keys().next().unwrap()).unwrap();
        code::load(&engine, &settings(guest, RestartPolicy::Never), bytes).unwrap()
    }

    /// Waits until so many services run.
    pub fn until_running(&self, count: u64) {
        let until = std::time::Instant::now() + PATIENCE;
        while self.services.snapshot().running != count {
            assert!(std::time::Instant::now() < until, "{} services run", self.services.snapshot().running);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn settings(name: &str, restart: RestartPolicy) -> GuestSettings {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/guests/build").join(format!("{name}.wasm"));
    let grants = vec![Grant::Services, Grant::Sockets, Grant::Gate, Grant::Metrics];
    let sockets = vec!["127.0.0.1:*".to_owned()];
    GuestSettings { grants, restart, sockets, ..GuestSettings::new(name, GuestKind::Service, file) }
}

fn identity(place: u32, settings: &GuestSettings, engine: &ServiceEngine, clock: &SharedClock) -> Identity {
    let limits = engine.limits();
    Identity {
        id: GuestId(place),
        name: Arc::from(settings.name.as_str()),
        writes: false,
        clock: Arc::clone(clock),
        limits: Arc::clone(limits),
        max_memory_bytes: settings.max_memory_bytes(limits),
        log: Arc::new(LogLines::new(&settings.name, limits.max_log_lines_per_s, Arc::clone(clock))),
        counters: Arc::new(GuestCounters::new(&settings.name, GuestKind::Service)),
        seed: 1,
    }
}

/// Compiled code, so that not every test compiles it again.
fn code_cache() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("service-code")
}
