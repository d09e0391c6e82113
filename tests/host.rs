//! A world in a folder of its own, and the real program running it: started, watched, asked and stopped.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::{Client, Config, Echo, Log, PATIENCE, failure_of, wheelhouse};

/// Time between two looks at a condition.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A folder with a configuration and, once it has run, a data directory.
#[derive(Clone)]
pub struct World {
    folder: Arc<TempDir>,
}

impl World {
    /// Writes the configuration.
    pub fn new(config: &Config) -> Self {
        let folder = tempfile::tempdir().expect("there is room for a temporary folder");
        let world = Self { folder: Arc::new(folder) };
        world.configure(config);
        world
    }

    /// Writes another configuration.
    pub fn configure(&self, config: &Config) {
        self.write("wheelhouse.toml", config.to_toml());
    }

    /// Writes a file into the folder.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let file = self.folder().join(name);
        fs::write(&file, content).expect("the temporary folder takes files");
        file
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.folder().join("data")
    }

    fn serve_command(&self) -> Command {
        let mut command = wheelhouse();
        command.arg("serve").arg("--config").arg(self.folder().join("wheelhouse.toml"));
        command
    }

    /// Starts the program, and waits until the world runs.
    pub fn serve(&self) -> Host {
        self.start().wait()
    }

    /// Starts the program, and waits for nothing.
    pub fn start(&self) -> Starting {
        let mut command = self.serve_command();
        let mut process =
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program can be started");
        let log = Log::follow(process.stderr.take().expect("it was asked for"));
        Starting(Host { process, log, gate: ([0; 4], 0).into(), websocket: None, world: self.clone() })
    }

    /// Starts the program, which must fail, and answers the line that says why.
    pub fn serve_and_fail(&self) -> String {
        failure_of(&mut self.serve_command())
    }
}

/// A program that was started, and whose world may not run yet. It is killed when this is dropped.
pub struct Starting(Host);

impl Starting {
    /// Waits until the world runs.
    pub fn wait(self) -> Host {
        let Self(mut host) = self;
        let line = host.log.wait_for(&["the world runs", "gate="]);
        let told = |key| line.split_whitespace().find_map(|word| word.strip_prefix(key)?.parse().ok());
        host.gate = told("gate=").expect("the line tells the gate's address");
        host.websocket = told("websocket=");
        host
    }

    /// Kills it, however far it has come.
    pub fn kill(self) -> Vec<String> {
        self.0.kill()
    }
}

/// A running program. It is killed when this is dropped.
pub struct Host {
    process: Child,
    log: Log,
    gate: SocketAddr,
    websocket: Option<SocketAddr>,
    /// The folder lives as long as the program.
    world: World,
}

/// How a program ended.
pub struct Stopped {
    /// Its exit status.
    pub status: Option<i32>,
    /// All it wrote.
    pub log: Vec<String>,
}

impl Host {
    /// Its log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Its process id.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// The address of its gate.
    pub fn gate(&self) -> SocketAddr {
        self.gate
    }

    /// The address of its gate for WebSocket, which the configuration must ask for.
    pub fn websocket(&self) -> SocketAddr {
        self.websocket.expect("the configuration sets gate.websocket_listen")
    }

    /// A new client.
    pub fn connect(&self) -> Client {
        Client::connect(self.gate)
    }

    /// A well-behaved client that measures.
    pub fn echo(&self) -> Echo {
        Echo::start(self.gate)
    }

    /// What `wheelhouse status --json` prints.
    pub fn status(&self) -> Value {
        self.command(&["status"])
    }

    /// What a command of the program about this host prints as JSON.
    pub fn command(&self, arguments: &[&str]) -> Value {
        let output = self.command_line(arguments).output().expect("the program can be started");
        assert!(output.status.success(), "{arguments:?} failed: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("it prints JSON")
    }

    /// Why a command about this host fails, as it must.
    pub fn failure_of(&self, arguments: &[&str]) -> String {
        failure_of(&mut self.command_line(arguments))
    }

    /// A command of the program about this host.
    pub fn command_line(&self, arguments: &[&str]) -> Command {
        let mut command = wheelhouse();
        command.args(arguments).args(["--json", "--data-dir"]).arg(self.world.data_dir());
        command
    }

    /// The pending events, as `wheelhouse events list` tells of them.
    pub fn events(&self, filter: &[&str]) -> Vec<Value> {
        let mut list = self.command(&[&["events", "list", "--limit", "0"], filter].concat());
        let Value::Array(events) = list["events"].take() else { panic!("this is no list of events: {list}") };
        events
    }

    /// Waits until the status is such that `condition`, and answers it.
    pub fn wait_until(&self, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let status = self.status();
            if condition(&status) {
                return status;
            }
            assert!(Instant::now() < until, "{what} did not come about; the status is {status:#}");
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits for the log line of a failed call and for the counter to show it: `error` is part of the reason.
    pub fn wait_for_failure(&self, name: &str, call: &str, error: &str) {
        let (named, called) = (format!("guest=\"{name}\""), format!("call=\"{call}\""));
        self.log.wait_for(&["ERROR", "a call failed", error, &named, &called]);
        self.wait_until("a counted failure", |status| guest(status, name)["failures"].as_u64() > Some(0));
    }

    /// Posts an order to the control port, as an operator's program would, and answers the HTTP status and the body.
    pub fn order(&self, path: &str) -> (u16, Value) {
        let text =
            fs::read_to_string(self.world.data_dir().join("control.json")).expect("a running host has a control file");
        let control: Value = serde_json::from_str(&text).expect("the control file is JSON");
        let text = |key: &str| control[key].as_str().expect("the control file has it").to_owned();
        crate::client::post(&text("address"), path, &text("token"))
    }

    /// CPU time that the process has used.
    pub fn cpu_time(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id())).expect("the program runs");
        // The name of the program, in brackets, may hold spaces. User and system time are the 14th and 15th of all.
        let fields: Vec<&str> =
            stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
        let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().expect("a number of ticks")).sum();
        Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
    }

    /// Stops the program with SIGTERM, which must end it well.
    pub fn stop(self) -> Vec<String> {
        let stopped = self.stop_by(Signal::TERM);
        assert_eq!(stopped.status, Some(0), "the program stops well; its log is\n{}", stopped.log.join("\n"));
        stopped.log
    }

    /// Kills the program with SIGKILL, wherever it is in what it does, and answers its log.
    pub fn kill(self) -> Vec<String> {
        self.stop_by(Signal::KILL).log
    }

    /// Sends the program a signal, and waits for nothing.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it is this process's child");
    }

    /// Stops the program with a signal, and waits for its end.
    pub fn stop_by(mut self, signal: Signal) -> Stopped {
        self.signal(signal);
        let log = self.log.wait_for_end();
        let status = self.process.wait().expect("it is this process's child").code();
        let panic = log.iter().find(|line| line.contains("thread '") && line.contains("panicked at"));
        assert_eq!(panic, None, "the host panicked");
        Stopped { status, log }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Where it has ended already there is nothing to kill.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The part of a status about one guest.
pub fn guest<'a>(status: &'a Value, name: &str) -> &'a Value {
    let guests = status["guests"].as_array().expect("a status has guests");
    guests.iter().find(|guest| guest["name"] == name).unwrap_or_else(|| panic!("{name} is not in {status:#}"))
}
