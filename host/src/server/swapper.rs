//! Swaps, from the order to the entry in the book of generations: the file is read and compiled, what the old code saves
//! is tried out on the new, and the loop lets the new take over. All of it happens off the loop but for the two steps
//! that `swaps` does there. One swap at a time; one that was begun comes to its end, whether or not anybody waits for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::mpsc::UnboundedReceiver;

use super::config::Config;
use super::generations::{Begun, Generations, hash_of};
use super::guests::TaskCode;
use super::simulation::Item;
use super::swaps::{Done, Successor, SwapOrder, Timed};
use crate::admin::ControlError;
use crate::guest::kinds::ResidentCode;
use crate::guest::resident::SavedState;
use crate::guest::{
    EventBook, Fate, Generation, GuestCode, GuestId, GuestSettings, Identity, Inheritance, JobRun, LoopEngine,
    Prepared, Returned, Stage, SwapError, Swapped, load, read_file, try_out, try_to_instantiate,
};
use crate::service::{Services, code};
use crate::sim::{LoopHandle, Reply};
use crate::store::Agenda;
use crate::world::World;

/// Swaps the guests of a host. Clones are the same.
#[derive(Clone)]
pub struct Swapper {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    engine: LoopEngine,
    /// The guests of the loop, by name.
    guests: BTreeMap<String, Arc<Identity>>,
    services: Services,
    generations: Arc<Generations>,
    handle: LoopHandle<Item>,
    turn: tokio::sync::Mutex<()>,
    counts: Counts,
}

/// What of a host swaps have to do with.
pub struct SwapParts {
    pub engine: LoopEngine,
    /// The guests of the loop.
    pub guests: Vec<Arc<Identity>>,
    pub services: Services,
    pub generations: Arc<Generations>,
    pub handle: LoopHandle<Item>,
}

#[derive(Default)]
struct Counts {
    done: AtomicU64,
    refused: AtomicU64,
    returned: AtomicU64,
    longest_pause_us: AtomicU64,
}

/// How many swaps there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SwapsSnapshot {
    /// Code that was swapped in, by a new file or as it was before.
    pub done: u64,
    /// Orders that were refused.
    pub refused: u64,
    /// Code that failed in its probation, so that the code before it came back.
    pub returned: u64,
    /// The longest that the loop served nobody because of a swap.
    pub longest_pause_us: u64,
}

/// New code on its way.
struct Candidate {
    guest: GuestSettings,
    number: u64,
    bytes: Vec<u8>,
    file: PathBuf,
    /// What this very code saved when it ran last.
    former: Option<SavedState>,
}

/// What came of it.
struct Landed {
    compile: Duration,
    pause: Duration,
    /// What the old code saved.
    state: Option<SavedState>,
    notes: Vec<String>,
}

impl Swapper {
    /// Swaps the guests of a host. `returned` says when old code has come back by itself.
    pub fn start(
        parts: SwapParts,
        config: &Config,
        returned: UnboundedReceiver<(GuestId, Returned)>,
        runtime: &tokio::runtime::Handle,
    ) -> Self {
        let SwapParts { engine, guests, services, generations, handle } = parts;
        let guests = guests.into_iter().map(|identity| (identity.name.to_string(), identity)).collect();
        let (turn, counts) = (tokio::sync::Mutex::default(), Counts::default());
        let shared = Shared { config: config.clone(), engine, guests, services, generations, handle, turn, counts };
        let swapper = Self { shared: Arc::new(shared) };
        runtime.spawn(Arc::clone(&swapper.shared).note_returns(returned));
        swapper
    }

    /// The figures now.
    pub fn snapshot(&self) -> SwapsSnapshot {
        let Counts { done, refused, returned, longest_pause_us } = &self.shared.counts;
        SwapsSnapshot {
            done: done.load(Ordering::Relaxed),
            refused: refused.load(Ordering::Relaxed),
            returned: returned.load(Ordering::Relaxed),
            longest_pause_us: longest_pause_us.load(Ordering::Relaxed),
        }
    }

    /// Has a guest run the code in a file from here on.
    pub async fn swap(&self, guest: String, file: PathBuf) -> Result<Swapped, ControlError> {
        self.in_turn(guest, |shared, guest| shared.new_code(guest, file)).await
    }

    /// Has a guest run the code that it ran before.
    pub async fn swap_back(&self, guest: String) -> Result<Swapped, ControlError> {
        self.in_turn(guest, |shared, guest| shared.kept_before(guest)).await
    }

    /// The generations of a guest that are kept.
    pub fn history(&self, guest: &str) -> Result<Vec<Generation>, ControlError> {
        self.shared.settings(guest).map(|guest| self.shared.generations.of(&guest.name))
    }

    /// Swaps a guest for the candidate that `find` comes up with, after the swaps that were ordered before.
    async fn in_turn(
        &self,
        guest: String,
        find: impl FnOnce(&Shared, &GuestSettings) -> Result<Candidate, String> + Send + 'static,
    ) -> Result<Swapped, ControlError> {
        let settings = self.shared.settings(&guest)?.clone();
        let shared = Arc::clone(&self.shared);
        // A task of its own: whoever waits for it may go away, and it must not stop half-way.
        let swap = tokio::spawn(async move {
            let _turn = shared.turn.lock().await;
            let result = Arc::clone(&shared).swap(settings, find).await;
            shared.count(&result);
            result
        });
        let result = swap.await.unwrap_or_else(|error| Err(format!("the host failed: {error}; please report this")));
        result.map_err(|reason| ControlError::SwapRefused { guest, reason })
    }
}

impl Shared {
    fn settings(&self, guest: &str) -> Result<&GuestSettings, ControlError> {
        let found = self.config.enabled_guests().find(|settings| settings.name == guest);
        found.ok_or_else(|| {
            let known: Vec<_> = self.config.enabled_guests().map(|settings| settings.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            ControlError::NoSuchGuest { guest: guest.to_owned(), known }
        })
    }

    fn new_code(&self, guest: &GuestSettings, file: PathBuf) -> Result<Candidate, String> {
        let bytes = read_file(&file).map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
        let number = self.generations.next_number(&guest.name);
        Ok(Candidate { guest: guest.clone(), number, bytes, file, former: None })
    }

    fn kept_before(&self, guest: &GuestSettings) -> Result<Candidate, String> {
        let before = self.generations.before(&guest.name);
        let before =
            before.ok_or("there is nothing to go back to: no earlier generation is kept that has not failed")?;
        let bytes = self.generations.code(&guest.name, &before);
        let bytes = bytes.map_err(|error| format!("the kept file of generation {} is lost: {error}", before.number))?;
        // Where it saved nothing it can begin with nothing again.
        let former = Some(Arc::new(self.generations.state(&guest.name, before.number).unwrap_or_default()));
        Ok(Candidate { guest: guest.clone(), number: before.number, bytes, file: before.file, former })
    }

    async fn swap(
        self: Arc<Self>,
        settings: GuestSettings,
        find: impl FnOnce(&Shared, &GuestSettings) -> Result<Candidate, String> + Send + 'static,
    ) -> Result<Swapped, String> {
        let clock = Arc::clone(self.engine.clock());
        let began = clock.now();
        let found = Arc::clone(&self).aside(move |shared| find(shared, &settings)).await??;
        let name = found.guest.name.clone();
        let running = self.generations.running(&name);
        let hash = hash_of(&found.bytes);
        if let Some(running) = running.as_ref().filter(|running| running.hash == hash) {
            let notes = vec![format!("generation {} is this very file; nothing was done", running.number)];
            let took_ms = (clock.now() - began).as_millis() as u64;
            let generation = running.number;
            return Ok(Swapped {
                guest: name,
                generation,
                hash,
                took_ms,
                compile_ms: 0,
                pause_us: 0,
                is_unchanged: true,
                notes,
            });
        }
        let candidate = Arc::new(found);
        let landed = Arc::clone(&self).land(&candidate).await?;
        let (number, pause) = (candidate.number, landed.pause);
        let state = landed.state;
        Arc::clone(&self)
            .aside(move |shared| shared.enter(&candidate, running.as_ref(), state.as_ref().map(|state| &state[..])))
            .await?;
        let took = clock.now() - began;
        tracing::info!(
            guest = name,
            generation = number,
            took_ms = took.as_millis() as u64,
            pause_us = pause.as_micros() as u64,
            "a guest runs new code"
        );
        Ok(Swapped {
            guest: name,
            generation: number,
            hash,
            took_ms: took.as_millis() as u64,
            compile_ms: landed.compile.as_millis() as u64,
            pause_us: pause.as_micros() as u64,
            is_unchanged: false,
            notes: landed.notes,
        })
    }

    /// Enters in the book that a candidate runs, in place of `before`.
    fn enter(&self, candidate: &Candidate, before: Option<&Generation>, state: Option<&[u8]>) {
        let Candidate { guest, number, bytes, file, .. } = candidate;
        let now_ms = self.engine.clock().wall_ms();
        if let Some(before) = before {
            self.generations.keep_state(guest, before.number, state);
        }
        match before {
            Some(before) if *number < before.number => {
                self.generations.note_returned(guest, before.number, *number, Fate::TakenBack, now_ms);
            }
            _ => self.generations.note_begun(&Begun { guest, number: *number, bytes, file, now_ms }),
        }
    }

    async fn land(self: Arc<Self>, candidate: &Arc<Candidate>) -> Result<Landed, String> {
        let Some(identity) = self.guests.get(&candidate.guest.name).map(Arc::clone) else {
            return self.land_service(candidate).await;
        };
        let clock = Arc::clone(self.engine.clock());
        let began = clock.now();
        let given = Arc::clone(candidate);
        let code = Arc::clone(&self)
            .aside(move |shared| load(&shared.engine, &given.guest, &given.bytes))
            .await?
            .map_err(|error| format!("{} cannot be run: {error}", candidate.file.display()))?;
        let compile = clock.now() - began;
        let (successor, mut landed) = match code {
            GuestCode::Game(code) => {
                let inherited = self.inheritance(identity.id, candidate).await?;
                let trial = self.try_out(candidate, &identity, code, &inherited).await?;
                (Successor::Game(Box::new(trial.0)), Landed::of(inherited, trial.1))
            }
            GuestCode::Thinker(code) => {
                let inherited = self.inheritance(identity.id, candidate).await?;
                let trial = self.try_out(candidate, &identity, code, &inherited).await?;
                (Successor::Thinker(Box::new(trial.0)), Landed::of(inherited, trial.1))
            }
            task @ (GuestCode::StepTask(_) | GuestCode::Job(_)) => {
                let code = self.try_task(task, &identity).await?;
                (Successor::Task(code), Landed::of_task())
            }
        };
        landed.compile = compile;
        let (guest, generation) = (identity.id, candidate.number);
        let took_over = self.ask(|reply| SwapOrder::TakeOver { guest, code: successor, generation, reply }).await?;
        let Timed { result, pause } = took_over;
        // Here, off the loop, the old instance is dropped.
        let Done { .. } = result.map_err(|error| error.to_string())?;
        landed.pause = landed.pause.max(pause);
        Ok(landed)
    }

    /// Services move by themselves, on threads of their own.
    async fn land_service(self: Arc<Self>, candidate: &Arc<Candidate>) -> Result<Landed, String> {
        let clock = Arc::clone(self.engine.clock());
        let began = clock.now();
        let name = candidate.guest.name.clone();
        let engine = self.services.guest_engine(&name).ok_or("no guest of kind service has that name")?;
        let given = Arc::clone(candidate);
        let code = Arc::clone(&self)
            .aside(move |_| code::load(&engine, &given.guest, &given.bytes))
            .await?
            .map_err(|error| format!("{} cannot be run: {error}", candidate.file.display()))?;
        let compile = clock.now() - began;
        let swap = self.services.swap(&name, code, candidate.number).await.map_err(|error| error.to_string())?;
        let stayed =
            swap.stayed.iter().map(|(reason, count)| format!("{count} stay on the code that they had: {reason}"));
        Ok(Landed { compile, pause: Duration::ZERO, state: None, notes: stayed.collect() })
    }

    /// What the old code hands on.
    async fn inheritance(&self, guest: GuestId, candidate: &Candidate) -> Result<Timed<Inheritance>, String> {
        let former = candidate.former.clone();
        let inheritance = self.ask(|reply| SwapOrder::Inheritance { guest, former, reply }).await?;
        inheritance.ok_or_else(|| "no guest of that name is on the loop".to_owned())
    }

    async fn try_out<C: ResidentCode + Clone + 'static>(
        self: &Arc<Self>,
        candidate: &Arc<Candidate>,
        identity: &Arc<Identity>,
        code: C,
        inherited: &Timed<Inheritance>,
    ) -> Result<(Prepared<C>, Vec<String>), String>
    where
        C::Bindings: 'static,
    {
        let (candidate, identity) = (Arc::clone(candidate), Arc::clone(identity));
        let inheritance = inherited.result.clone();
        let prepared = Arc::clone(self)
            .aside(move |shared| {
                let config = candidate.guest.config_json();
                try_out(&shared.engine, &identity, code, &config, &inheritance, || shared.empty_stage())
            })
            .await?
            .map_err(|error| error.to_string())?;
        let note = "it does not understand the newer state, and has begun with what it saved itself when it ran last";
        let notes = prepared.has_former_state().then(|| note.to_owned()).into_iter().collect();
        Ok((prepared, notes))
    }

    async fn try_task(self: &Arc<Self>, code: GuestCode, identity: &Arc<Identity>) -> Result<TaskCode, String> {
        let identity = Arc::clone(identity);
        let tried = Arc::clone(self).aside(move |shared| -> Result<Option<TaskCode>, SwapError> {
            match &code {
                GuestCode::StepTask(code) => try_to_instantiate(&shared.engine, &identity, &**code)?,
                GuestCode::Job(code) => JobRun::try_to_instantiate(&shared.engine, &identity, code)?,
                GuestCode::Game(_) | GuestCode::Thinker(_) => {}
            }
            Ok(TaskCode::of(code))
        });
        let code = tried.await?.map_err(|error| error.to_string())?;
        code.ok_or_else(|| "it is neither a step task nor a job".to_owned())
    }

    /// A stage with nothing in its world, for a trial.
    fn empty_stage(&self) -> Stage {
        let agenda = Agenda::new(self.config.agenda_limits(), &[], 1);
        let events = EventBook::new(agenda, None, self.config.max_handler_bytes());
        Stage::new(World::new(self.config.world_limits()), events, self.config.stage_limits())
    }

    /// Posts an order to the loop and waits for its answer.
    async fn ask<R>(&self, order: impl FnOnce(Reply<R>) -> SwapOrder) -> Result<R, String> {
        let answer = self.handle.post_with_reply(|reply| Item::Swap(order(reply))).await;
        answer.map_err(|error| format!("the host cannot do it now: {error}"))
    }

    /// Runs what takes long on a thread where it holds nobody up.
    async fn aside<R: Send + 'static>(
        self: Arc<Self>,
        run: impl FnOnce(&Shared) -> R + Send + 'static,
    ) -> Result<R, String> {
        let ran = tokio::task::spawn_blocking(move || run(&self)).await;
        ran.map_err(|error| format!("the host failed: {error}; please report this"))
    }

    fn count(&self, result: &Result<Swapped, String>) {
        match result {
            Ok(swapped) => {
                self.counts.done.fetch_add(1, Ordering::Relaxed);
                self.counts.longest_pause_us.fetch_max(swapped.pause_us, Ordering::Relaxed);
            }
            Err(_) => drop(self.counts.refused.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Enters in the book that old code has come back by itself.
    async fn note_returns(self: Arc<Self>, mut returned: UnboundedReceiver<(GuestId, Returned)>) {
        while let Some((guest, Returned { from, to, reason })) = returned.recv().await {
            // It may have come back before its swap was in the book.
            let _turn = self.turn.lock().await;
            self.counts.returned.fetch_add(1, Ordering::Relaxed);
            let on_loop = self.guests.values().find(|identity| identity.id == guest).map(|it| it.name.to_string());
            let name = on_loop.or_else(|| self.services.guest_name(guest));
            let Some(settings) = name.and_then(|name| self.settings(&name).ok()).cloned() else { continue };
            let noted = Arc::clone(&self).aside(move |shared| {
                let now_ms = shared.engine.clock().wall_ms();
                shared.generations.note_returned(&settings, from, to, Fate::Failed(reason), now_ms);
            });
            let _ = noted.await;
        }
    }
}

impl Landed {
    fn of(inherited: Timed<Inheritance>, notes: Vec<String>) -> Self {
        let Timed { result, pause } = inherited;
        Self { compile: Duration::ZERO, pause, state: result.state, notes }
    }

    fn of_task() -> Self {
        let notes =
            vec!["tasks that run go on as they are; those that are started from now on run the new code".to_owned()];
        Self { compile: Duration::ZERO, pause: Duration::ZERO, state: None, notes }
    }
}

/// The folder of the generations in a data directory.
pub fn generations_in(data_dir: &Path) -> PathBuf {
    data_dir.join("generations")
}
