//! The host under load: the real program as a process of its own, so that its memory is its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use tempfile::TempDir;
use wheelhouse::cli::config;
use wheelhouse::server::Config;

use crate::{Args, attacks};

/// How long the host may take to start, or to stop.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long memory may take to settle.
const SETTLE_LIMIT: Duration = Duration::from_secs(10);

/// A running host. It is killed when this is dropped.
pub struct Server {
    process: Child,
    binary: PathBuf,
    config: Config,
    address: String,
    /// The world of a configuration of our own.
    _folder: TempDir,
}

impl Server {
    pub fn start(args: &Args) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let file = match &args.config {
            Some(file) => file.clone(),
            None => own_config(folder.path(), args)?,
        };
        let config = config::load(&file)?;
        let wanted = args.idle + args.chatting + attacks::MAX_AT_ONCE;
        let allowed = config.gate.options.max_connections;
        ensure!(allowed >= wanted, "gate.max_connections = {allowed} is too few: set it to at least {wanted}");
        let mut process = Command::new(&args.binary)
            .args(["serve", "--config"])
            .arg(&file)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} cannot be started", args.binary.display()))?;
        let log = follow(process.stderr.take().context("standard error was asked for")?);
        let line = wait_for_start(&log);
        let key = if args.websocket { "websocket=" } else { "gate=" };
        let address =
            line.as_ref().ok().and_then(|line| line.split_whitespace().find_map(|word| word.strip_prefix(key)));
        let Some(address) = address.map(str::to_owned) else {
            let _ = process.kill();
            let _ = process.wait();
            bail!("the host told no address after {key}: {line:?}; its log must be text, at the level info");
        };
        Ok(Self { process, binary: args.binary.clone(), config, address, _folder: folder })
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn speaks_tls(&self) -> bool {
        self.config.gate.options.tls_certificate.is_some()
    }

    /// Memory that is resident, in KiB.
    pub fn memory_kib(&self) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("the host has ended")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }

    /// The same, once it changes no more.
    pub fn settled_memory_kib(&self) -> anyhow::Result<u64> {
        let until = Instant::now() + SETTLE_LIMIT;
        let mut last = self.memory_kib()?;
        loop {
            thread::sleep(Duration::from_secs(1));
            let now = self.memory_kib()?;
            if now == last || Instant::now() > until {
                return Ok(now);
            }
            last = now;
        }
    }

    /// What the host says of its connections.
    pub fn connections(&self) -> anyhow::Result<String> {
        let mut command = Command::new(&self.binary);
        command.args(["status", "--json", "--data-dir"]).arg(&self.config.data_dir);
        let output = command.output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let status: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        Ok(format!("connections: {}", status["connections"]))
    }

    pub fn stop(mut self) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.process), Signal::TERM)?;
        let status = self.process.wait()?;
        ensure!(status.success(), "the host ended with {status}");
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Where it has ended already there is nothing to kill.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The lobby: a watchdog that gives each client an agent once it has said something.
fn own_config(folder: &Path, args: &Args) -> anyhow::Result<PathBuf> {
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guests/build");
    let guests = guests.canonicalize().context("build the guests first: wheelhouse guest build guests")?;
    let clients = args.idle + args.chatting + attacks::MAX_AT_ONCE;
    let service = |name: &str, keys: &str| {
        let file = guests.join(format!("{name}.wasm"));
        format!(
            "[[guests]]\nname = {name:?}\nkind = \"service\"\nfile = {file:?}\n\
             grants = [\"services\", \"gate\"]\n{keys}"
        )
    };
    let text = format!(
        "[gate]\nlisten = \"127.0.0.1:0\"\nwebsocket_listen = \"127.0.0.1:0\"\nmax_connections = {clients}\n\
         watchdog = \"watchdog\"\n{}{}",
        service("watchdog", "start = true\n[guests.config]\nmax_agents = 5000\nat_first_packet = true\n"),
        service("agent", ""),
    );
    let file = folder.join("wheelhouse.toml");
    fs::write(&file, text)?;
    Ok(file)
}

/// The lines of the log, which is read to its end so that the host never waits for it. Warnings are shown.
fn follow(stderr: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (found, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if line.contains("WARN") || line.contains("ERROR") || line.starts_with("error") {
                eprintln!("host: {line}");
            }
            // Nobody listens any more once it has started.
            let _ = found.send(line);
        }
    });
    lines
}

fn wait_for_start(log: &mpsc::Receiver<String>) -> anyhow::Result<String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let line = log.recv_timeout(left).context("the host did not start")?;
        if line.contains("the world runs") {
            return Ok(line);
        }
    }
}

/// Lets this process open as many files as it may.
pub fn allow_open_files() -> anyhow::Result<u64> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    Ok(maximum.unwrap_or(u64::MAX))
}
