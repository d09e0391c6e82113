//! `wheelhouse dev`: the designer's loop. It watches the sources of guests, builds what has changed, looks whether the host
//! would take it, and has it swapped in the running world, with a line for each step. Whatever goes wrong leaves the world
//! as it is.

mod changes;
mod projects;
mod world;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use notify::{EventKind, RecursiveMode, Watcher};

use self::changes::Changes;
use self::projects::{Projects, guest_for};
use self::world::World;
use super::config;
use super::guest_build::{Buildable, Built, build};
use crate::guest::GuestSettings;
use crate::guest::component::facts_of;
use crate::server::Config;

/// How often the host and the wish to stop are looked after while nothing changes.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What `wheelhouse dev` is asked.
#[derive(Args, Debug)]
#[command(
    after_help = "Without a running host it starts one with the configuration, and stops it when it is stopped itself."
)]
pub struct DevArgs {
    /// Where the guests' sources are
    #[arg(value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,

    /// The configuration of the host
    #[arg(long, value_name = "FILE", default_value = "wheelhouse.toml")]
    pub config: PathBuf,
}

/// Watches until it is stopped.
pub fn run(args: &DevArgs) -> anyhow::Result<()> {
    let config = config::load(&args.config)?;
    let directory = args.dir.canonicalize().with_context(|| format!("{} is not there", args.dir.display()))?;
    let is_over = stop_flag()?;
    let (sender, events) = channel();
    // Watched before anything is built: what is saved meanwhile is seen.
    let mut watcher = notify::recommended_watcher(move |event| {
        // Nobody listens any more once it is over.
        let _ = sender.send(event);
    })
    .and_then(|mut watcher| watcher.watch(&directory, RecursiveMode::Recursive).map(|()| watcher))
    .map_err(|error| cannot_watch(&directory, &error))?;
    let mut projects = Projects::find(&directory)?;
    let mut designer = Loop { config, told: BTreeSet::new(), began: Instant::now() };
    let built = designer.build_all(&projects);
    let mut world = World::find_or_start(&args.config, &designer.config.data_dir)?;
    let whose = if world.is_own() { "which was started for this" } else { "which was running already" };
    designer.say("", &format!("watching {} for the host {whose}; Ctrl-C ends it", directory.display()));
    // The host may run other files, or others may be configured; what it runs as it is, it leaves alone.
    for built in &built {
        if let Some(guest) = designer.guest_for(built) {
            designer.swap(&built.name, &guest, &built.file, &world, Instant::now());
        }
    }
    let ended = designer.watch(&mut world, &mut projects, &events, &is_over);
    let _ = watcher.unwatch(&directory);
    ended
}

fn cannot_watch(directory: &Path, error: &notify::Error) -> anyhow::Error {
    let mend = match error.kind {
        notify::ErrorKind::MaxFilesWatch => "; raise fs.inotify.max_user_watches with sysctl",
        _ => "",
    };
    anyhow::anyhow!("{} cannot be watched: {error}{mend}", directory.display())
}

/// Set when the program is to end.
fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let is_over = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let told = Arc::clone(&is_over);
    std::thread::spawn(move || {
        if let Err(error) = runtime.block_on(super::serve::until_told_to_stop()) {
            eprintln!("error: {error:#}");
        }
        told.store(true, Ordering::Relaxed);
    });
    Ok(is_over)
}

struct Loop {
    config: Config,
    /// Components without a guest that were told.
    told: BTreeSet<String>,
    began: Instant,
}

impl Loop {
    /// Builds everything there is, so that a host that is started finds it.
    fn build_all(&self, projects: &Projects) -> Vec<Built> {
        let mut all = Vec::new();
        for buildable in projects.all() {
            let began = Instant::now();
            let mut made = Vec::new();
            let result = build(buildable, None, false, &mut |built| {
                made.push(built.clone());
                Ok(())
            });
            for built in made {
                let took_ms = began.elapsed().as_millis();
                self.say(&built.name, &format!("built in {took_ms} ms, {} KiB", built.bytes / 1024));
                all.push(built);
            }
            if let Err(error) = result {
                self.say("", &format!("not built: {error:#}"));
            }
        }
        all
    }

    fn watch(
        &mut self,
        world: &mut World,
        projects: &mut Projects,
        events: &Receiver<notify::Result<notify::Event>>,
        is_over: &AtomicBool,
    ) -> anyhow::Result<()> {
        let mut changes = Changes::below(projects.directory());
        while !is_over.load(Ordering::Relaxed) {
            let wait = changes.due_in(self.began.elapsed()).unwrap_or(LOOK_EVERY);
            match events.recv_timeout(wait) {
                Ok(Ok(event)) if !matches!(event.kind, EventKind::Access(_)) => {
                    let now = self.began.elapsed();
                    event.paths.iter().for_each(|path| changes.note(path, now));
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => anyhow::bail!("the folder is not watched any more"),
            }
            if let Some(status) = world.ended() {
                anyhow::bail!("the host has ended, with {status}: see what it said above");
            }
            if changes.due_in(self.began.elapsed()) == Some(Duration::ZERO) {
                let (paths, first) = changes.take();
                let saved = self.began + first;
                match projects.refresh(paths.iter()) {
                    Ok(()) => {
                        let touched = projects.touched(paths.iter());
                        touched.iter().for_each(|buildable| self.follow(buildable, &paths, world, saved));
                    }
                    Err(error) => self.say("", &format!("{error:#}; the world goes on as it is")),
                }
            }
        }
        Ok(())
    }

    /// From changed sources to the running world.
    fn follow(&mut self, buildable: &Buildable, changed: &BTreeSet<PathBuf>, world: &World, saved: Instant) {
        // Editors write beside and rename, and what they wrote beside is gone by now.
        let mut there = changed.iter().filter(|path| path.exists());
        let current = std::env::current_dir().unwrap_or_default();
        let shown = there.next().map(|path| path.strip_prefix(&current).unwrap_or(path).display().to_string());
        let more = match there.count() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        let shown = shown.unwrap_or_else(|| "something was deleted or".to_owned());
        let began = Instant::now();
        self.say("", &format!("{shown}{more} changed"));
        let mut made = Vec::new();
        let result = build(buildable, None, false, &mut |built| {
            made.push(built.clone());
            Ok(())
        });
        for built in made {
            self.take_in(&built, began.elapsed(), world, saved);
        }
        if let Err(error) = result {
            self.say("", &format!("not built: {error:#}; the world goes on as it is"));
        }
    }

    /// Checks a component and has it swapped.
    fn take_in(&mut self, built: &Built, took: Duration, world: &World, saved: Instant) {
        let name = &built.name;
        let Some(guest) = self.guest_for(built) else {
            if self.told.insert(name.clone()) {
                let entry = format!("an entry [[guests]] with name = {name:?} and file = {:?}", built.file);
                self.say(name, &format!("built, but the host has no such guest: add {entry}, and start it again"));
            }
            return;
        };
        let Ok(bytes) = std::fs::read(&built.file) else {
            self.say(name, &format!("{} has gone again", built.file.display()));
            return;
        };
        self.say(name, &format!("built in {} ms", took.as_millis()));
        let began = Instant::now();
        let checked = facts_of(&bytes).and_then(|facts| facts.admit(guest.kind, &guest.grants).map(drop));
        match checked {
            Ok(()) => {
                self.say(name, &format!("checked in {} ms", began.elapsed().as_millis()));
                self.swap(name, &guest, &built.file, world, saved);
            }
            Err(error) => self.say(name, &format!("not swapped: {error}; the world goes on as it is")),
        }
    }

    /// Has the host take a guest's file. It knows by itself whether it runs that already, also after old code has come back.
    fn swap(&self, name: &str, guest: &GuestSettings, file: &Path, world: &World, saved: Instant) {
        let began = Instant::now();
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        match world.client().swap(&guest.name, &file) {
            Ok(swapped) if swapped.is_unchanged => self.say(name, "the host runs this already"),
            Ok(swapped) => {
                let (took_ms, after_s) = (began.elapsed().as_millis(), saved.elapsed().as_secs_f64());
                let (generation, compile_ms, pause_us) = (swapped.generation, swapped.compile_ms, swapped.pause_us);
                self.say(
                    name,
                    &format!(
                        "generation {generation} runs, {after_s:.2} s after the change: swapped in {took_ms} ms, \
                         {compile_ms} of them to compile; the loop paused for {pause_us} µs"
                    ),
                );
                swapped.notes.iter().for_each(|note| self.say(name, note));
            }
            Err(error) => self.say(name, &format!("{error}; the world goes on as it is")),
        }
    }

    fn guest_for(&self, built: &Built) -> Option<GuestSettings> {
        guest_for(built, &self.config).cloned()
    }

    /// One line. Where standard output is closed there is nobody to tell.
    fn say(&self, name: &str, text: &str) {
        let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
        let _ = writeln!(std::io::stdout(), "{name}{text}");
    }
}
