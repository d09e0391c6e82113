//! The guests of a host by what they are: games, thinkers, and the code of step tasks and jobs; and how they get their
//! instances.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use super::checkpoints::SavedGuest;
use super::committing::Disk;
use super::simulation::{Cx, HostSimulation, Timer};
use crate::guest::contract::sim::types::Occasion;
use crate::guest::contract::step_task::StepTaskPre;
use crate::guest::kinds::{JobCode, ResidentCode};
use crate::guest::resident::SavedState;
use crate::guest::{
    GamePre, GuestCode, GuestId, GuestKind, Identity, Inheritance, InstanceState, LoopEngine, Probation, Resident,
    Returned, StageSlot, Supervisor, ThinkerPre,
};
use crate::sim::TimerError;
use crate::store::GuestChange;
use crate::world::ThinkerId;

/// The first pause before a guest whose `init` failed is started again; it doubles with each failure.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The code of a step task or a job, ready to be started.
pub struct TaskGuest {
    pub identity: Arc<Identity>,
    /// None where the guest's file was refused, or its tasks failed too often.
    pub code: Option<TaskCode>,
    /// Tasks started so far.
    pub started: u64,
    pub supervisor: Supervisor,
    /// The code that ran before, and its generation, while what runs now has to prove itself.
    pub probation: Option<Probation<(TaskCode, u64)>>,
}

/// What a task runs.
#[derive(Clone)]
pub enum TaskCode {
    StepTask(Arc<StepTaskPre<InstanceState>>),
    Job(Arc<JobCode>),
}

impl TaskCode {
    /// The code of a step task or a job; none of another kind.
    pub fn of(code: GuestCode) -> Option<Self> {
        match code {
            GuestCode::StepTask(code) => Some(TaskCode::StepTask(code)),
            GuestCode::Job(code) => Some(TaskCode::Job(code)),
            GuestCode::Game(_) | GuestCode::Thinker(_) => None,
        }
    }
}

/// A game or a thinker, where it makes no difference which.
trait Living {
    fn identity(&self) -> &Arc<Identity>;
    fn is_running(&self) -> bool;
    fn wants_restart(&self) -> bool;
    fn start(&mut self, stage: &mut StageSlot, occasion: Occasion, saved: Option<Vec<u8>>);
    fn restart(&mut self, stage: &mut StageSlot);
    fn save(&mut self, stage: &mut StageSlot) -> Option<Vec<u8>>;
    fn inheritance(&mut self, stage: &mut StageSlot, former: Option<SavedState>) -> Inheritance;
    fn take_returned(&mut self) -> Option<Returned>;
}

impl<C: ResidentCode> Living for Resident<C> {
    fn identity(&self) -> &Arc<Identity> {
        Resident::identity(self)
    }

    fn is_running(&self) -> bool {
        Resident::is_running(self)
    }

    fn wants_restart(&self) -> bool {
        Resident::wants_restart(self)
    }

    fn start(&mut self, stage: &mut StageSlot, occasion: Occasion, saved: Option<Vec<u8>>) {
        Resident::start(self, stage, occasion, saved);
    }

    fn restart(&mut self, stage: &mut StageSlot) {
        Resident::restart(self, stage);
    }

    fn save(&mut self, stage: &mut StageSlot) -> Option<Vec<u8>> {
        Resident::save(self, stage).map(|state| state.to_vec())
    }

    fn inheritance(&mut self, stage: &mut StageSlot, former: Option<SavedState>) -> Inheritance {
        Resident::inheritance(self, stage, former)
    }

    fn take_returned(&mut self) -> Option<Returned> {
        Resident::take_returned(self)
    }
}

/// How a guest starts for the first time in a run of the host.
pub struct FirstStart {
    pub guest: GuestId,
    pub occasion: Occasion,
    /// What it saved in an earlier run.
    pub saved: Option<Vec<u8>>,
}

/// All guests that could be loaded.
#[derive(Default)]
pub struct Guests {
    pub games: FxHashMap<GuestId, Resident<GamePre<InstanceState>>>,
    pub thinkers: FxHashMap<ThinkerId, Resident<ThinkerPre<InstanceState>>>,
    pub tasks: FxHashMap<GuestId, TaskGuest>,
    /// The game that hears of connections, packets and intents.
    pub at_the_gate: Option<GuestId>,
    /// In which order they start.
    pub order: Vec<FirstStart>,
    /// Those whose first `init` in this world has yet to succeed.
    pub uninitialised: FxHashSet<GuestId>,
    /// How often in a row starting a guest failed.
    failed_starts: FxHashMap<GuestId, u32>,
}

impl Guests {
    /// Adds a guest: without code where its file was refused.
    pub fn add(
        &mut self,
        engine: &LoopEngine,
        kind: GuestKind,
        identity: Arc<Identity>,
        code: Option<GuestCode>,
        config: String,
    ) {
        let id = identity.id;
        let engine = engine.clone();
        match kind {
            GuestKind::Game => {
                let code = code.and_then(GuestCode::game);
                self.games.insert(id, Resident::new(engine, identity, code, config));
            }
            GuestKind::Thinker => {
                let code = code.and_then(GuestCode::thinker);
                self.thinkers.insert(ThinkerId(id.0), Resident::new(engine, identity, code, config));
            }
            GuestKind::StepTask | GuestKind::Job => {
                let supervisor = identity.supervisor();
                let code = code.and_then(TaskCode::of);
                self.tasks.insert(id, TaskGuest { identity, code, started: 0, supervisor, probation: None });
            }
            // None is among the guests of the loop.
            GuestKind::Service => {}
        }
    }

    /// What new code of a game or a thinker is to carry on; see [`Resident::inheritance`].
    pub fn inheritance(
        &mut self,
        id: GuestId,
        stage: &mut StageSlot,
        former: Option<SavedState>,
    ) -> Option<Inheritance> {
        Some(self.living_mut(id)?.inheritance(stage, former))
    }

    /// That the old code of a game or a thinker has come back by itself, once for each time.
    pub fn take_returned(&mut self, id: GuestId) -> Option<Returned> {
        self.living_mut(id)?.take_returned()
    }

    /// The name of a game or a thinker, for the log.
    pub fn name(&self, id: GuestId) -> Option<&str> {
        self.living(id).map(|guest| &*guest.identity().name)
    }

    /// The ids of all games and thinkers.
    pub fn residents(&self) -> Vec<GuestId> {
        let mut ids: Vec<GuestId> = self.games.keys().copied().collect();
        ids.extend(self.thinkers.keys().map(|thinker| GuestId(thinker.0)));
        ids.sort_unstable();
        ids
    }

    /// Has a game or a thinker save its state.
    pub fn save(&mut self, id: GuestId, stage: &mut StageSlot) -> Option<SavedGuest> {
        let guest = self.living_mut(id)?;
        let was_running = guest.is_running();
        Some(SavedGuest { name: Arc::clone(&guest.identity().name), was_running, state: guest.save(stage) })
    }

    fn living(&self, id: GuestId) -> Option<&dyn Living> {
        match self.games.get(&id) {
            Some(game) => Some(game),
            None => self.thinkers.get(&ThinkerId(id.0)).map(|thinker| thinker as &dyn Living),
        }
    }

    fn living_mut(&mut self, id: GuestId) -> Option<&mut dyn Living> {
        match self.games.get_mut(&id) {
            Some(game) => Some(game),
            None => self.thinkers.get_mut(&ThinkerId(id.0)).map(|thinker| thinker as &mut dyn Living),
        }
    }

    /// Whether this game or thinker has an instance.
    pub fn is_running(&self, id: GuestId) -> bool {
        self.living(id).is_some_and(Living::is_running)
    }

    /// Whether this game has no instance but will get another.
    pub fn is_waiting(&self, id: GuestId) -> bool {
        self.games.get(&id).is_some_and(Resident::wants_restart)
    }

    /// The game with that id, if it runs.
    pub fn game(&mut self, id: GuestId) -> Option<&mut Resident<GamePre<InstanceState>>> {
        self.games.get_mut(&id).filter(|game| game.is_running())
    }
}

impl HostSimulation {
    /// Gives every guest its first instance, in the order of the configuration.
    pub(super) fn start_guests(&mut self, cx: &mut Cx<'_>) {
        for FirstStart { guest: id, occasion, saved } in std::mem::take(&mut self.guests.order) {
            self.prepare_handler(cx);
            if let Some(guest) = self.guests.living_mut(id) {
                guest.start(&mut self.stage, occasion, saved);
            }
            self.after_handler(cx);
            self.note_first_init(id);
            self.look_after(id, cx);
        }
        let interval = self.checkpoint_interval;
        let checkpoint = Timer::Checkpoint;
        if let Err(error) =
            cx.timers.register(cx.clock.now(), self.names().checkpoint, interval, None, true, checkpoint)
        {
            tracing::error!("the guests' states will not be saved before the host stops: {error}");
        }
    }

    /// A first `init` is kept together with what it did: it is not repeated, in whatever run of the host.
    pub(super) fn note_first_init(&mut self, id: GuestId) {
        let Some(guest) = self.guests.living(id).filter(|guest| guest.is_running()) else { return };
        let name = Arc::clone(&guest.identity().name);
        if self.guests.uninitialised.remove(&id) {
            self.stage().batch.guests.push(GuestChange::Initialised { guest: name });
        }
    }

    /// After a call of a guest: if it has lost its instance and may have another, a timer is set for that.
    pub(super) fn look_after(&mut self, id: GuestId, cx: &mut Cx<'_>) {
        self.tell_of_return(id);
        let Some(guest) = self.guests.living(id) else { return };
        if !guest.wants_restart() {
            let is_disabled = !guest.is_running();
            self.guests.failed_starts.remove(&id);
            if is_disabled {
                self.stage().events.remove_guest(id);
                self.close_inbox(id);
            }
            return;
        }
        let failed = self.guests.failed_starts.entry(id).or_default();
        let pause = FIRST_PAUSE * 2u32.pow((*failed).min(8));
        *failed += 1;
        self.restart_after(pause, id, cx);
    }

    fn restart_after(&mut self, pause: Duration, id: GuestId, cx: &mut Cx<'_>) {
        let now = cx.clock.now();
        match cx.timers.register(now, self.names().restart, pause, None, false, Timer::Restart(id)) {
            // At the stop nobody misses it.
            Ok(_) | Err(TimerError::Stopped { .. }) => {}
            Err(error) => {
                let guest = self.guests.name(id);
                tracing::error!(guest, "a guest without an instance stays without: {error}");
            }
        }
    }

    /// Gives a guest without an instance another.
    pub(super) fn restart(&mut self, id: GuestId, cx: &mut Cx<'_>) {
        if self.committing.disk() != Disk::Ready {
            // Its `init` would be taken back.
            self.restart_after(FIRST_PAUSE, id, cx);
            return;
        }
        self.prepare_handler(cx);
        if let Some(guest) = self.guests.living_mut(id) {
            guest.restart(&mut self.stage);
        }
        self.after_handler(cx);
        self.note_first_init(id);
        self.look_after(id, cx);
    }
}
