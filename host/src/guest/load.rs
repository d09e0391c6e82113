//! From a guest's file to code that can be instantiated: inspected, admitted, its imports linked and its exports found.
//! Slow, since it compiles: never called on the loop thread.

use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use wasmtime::component::{InstancePre, Linker};

use super::component::{LoadError, Needs, inspect};
use super::contract::{game::GamePre, job::JobPre, step_task::StepTaskPre, thinker::ThinkerPre};
use super::encode::one_line;
use super::engine::LoopEngine;
use super::imports;
use super::kinds::{Code, JobCode};
use super::settings::{GuestKind, GuestSettings};
use super::state::InstanceState;

/// The largest file that is taken for a guest.
const MAX_FILE_BYTES: u64 = 512 * 1024 * 1024;

/// Reads the file of a guest. What is not a regular file might never end, and is an error.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20)));
    }
    fs::read(path)
}

/// The code of a guest of any kind.
pub enum GuestCode {
    Game(GamePre<InstanceState>),
    Thinker(ThinkerPre<InstanceState>),
    StepTask(Arc<StepTaskPre<InstanceState>>),
    Job(Arc<JobCode>),
}

impl GuestCode {
    /// The code of a game; none of another kind.
    pub fn game(self) -> Option<GamePre<InstanceState>> {
        match self {
            GuestCode::Game(code) => Some(code),
            _ => None,
        }
    }

    /// The code of a thinker; none of another kind.
    pub fn thinker(self) -> Option<ThinkerPre<InstanceState>> {
        match self {
            GuestCode::Thinker(code) => Some(code),
            _ => None,
        }
    }
}

/// Loads the file of a guest that runs on the loop, as it is configured.
pub fn load(engine: &LoopEngine, settings: &GuestSettings, bytes: &[u8]) -> Result<GuestCode, LoadError> {
    let inspected = inspect(engine.wasmtime(), bytes)?;
    let needs = inspected.facts.admit(settings.kind, &settings.grants)?;
    let linker = link(engine, &needs).map_err(unfit)?;
    let pre = linker.instantiate_pre(&inspected.component).map_err(unfit)?;
    exports(settings.kind, pre).map_err(unfit)
}

fn link(engine: &LoopEngine, needs: &Needs) -> wasmtime::Result<Linker<InstanceState>> {
    let mut linker = Linker::new(engine.wasmtime());
    imports::add_free(&mut linker, |state| state)?;
    for grant in &needs.grants {
        imports::add_granted(&mut linker, *grant)?;
    }
    if needs.wasi {
        imports::wasi::add(&mut linker)?;
    }
    Ok(linker)
}

fn exports(kind: GuestKind, pre: InstancePre<InstanceState>) -> wasmtime::Result<GuestCode> {
    Ok(match kind {
        GuestKind::Game => GuestCode::Game(Code::new(pre)?),
        GuestKind::Thinker => GuestCode::Thinker(Code::new(pre)?),
        GuestKind::StepTask => GuestCode::StepTask(Arc::new(Code::new(pre)?)),
        GuestKind::Job => GuestCode::Job(Arc::new(JobPre::new(pre)?)),
        GuestKind::Service => wasmtime::bail!("a service does not run on the loop"),
    })
}

pub(crate) fn unfit(error: wasmtime::Error) -> LoadError {
    LoadError::Unfit(one_line(&format!("{error:#}")))
}
