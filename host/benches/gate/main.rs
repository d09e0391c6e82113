//! The gate under load and under attack: a host of its own, thousands of quiet connections, clients that chat and measure
//! how long answers take, and with `--garbage` strangers that do what strangers do. Prints what a quiet connection costs
//! the host, the round trips of the well-behaved, and what of the memory came back.
//!
//! ```sh
//! just bench gate
//! just bench gate -- --garbage --control
//! just bench gate -- --config my.toml --idle-speaks --send 'ping {n}' --expect 'pong {n}'
//! ```

mod attacks;
mod crowd;
mod server;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Parser;

use attacks::Attack;
use crowd::{Crowd, Manner};
use server::Server;

/// Loads a gate, and says how it bears it.
#[derive(Parser, Debug, Clone)]
pub struct Args {
    /// The program; as it was built with this benchmark if left out
    #[arg(long, value_name = "FILE", default_value = env!("CARGO_BIN_EXE_wheelhouse"))]
    binary: PathBuf,

    /// What it serves; the lobby, where a client gets an agent with its first packet, if left out
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Connections that are quiet
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    idle: usize,

    /// Quiet connections say something once, and are answered, before they are quiet
    #[arg(long)]
    idle_speaks: bool,

    /// Connections that chat
    #[arg(long, value_name = "N", default_value_t = 1000)]
    chatting: usize,

    /// Time between two packets of one that chats, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 250)]
    every_ms: u64,

    /// How long each phase is measured, in seconds
    #[arg(long, value_name = "S", default_value_t = 10)]
    seconds: u64,

    /// What is sent; {n} is a number
    #[arg(long, value_name = "TEXT", default_value = "ECHO {n}")]
    send: String,

    /// What is answered
    #[arg(long, value_name = "TEXT", default_value = "{n}")]
    expect: String,

    /// Come by WebSocket
    #[arg(long)]
    websocket: bool,

    /// Attack meanwhile, in one way after the other
    #[arg(long)]
    garbage: bool,

    /// And let each attack be done first to a stand-in, to tell what the host makes of it from what a busy machine does
    #[arg(long, requires = "garbage")]
    control: bool,

    /// New connections in a second, in the attack that connects and disconnects
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    connects_per_s: u64,

    /// What `cargo bench` says to every benchmark
    #[arg(long, hide = true)]
    bench: bool,

    /// What Cargo says where it runs benchmarks as tests; there is nothing to test here
    #[arg(long, hide = true)]
    test: bool,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if args.test {
        return Ok(());
    }
    // Clients, and as many again for an attack.
    let files = server::allow_open_files()?;
    let wanted = (args.idle + args.chatting + attacks::MAX_AT_ONCE + 64) as u64;
    ensure!(
        files >= wanted,
        "this takes {wanted} open files and only {files} are allowed: raise the limit (ulimit -n)"
    );

    let server = Server::start(&args)?;
    println!("the gate at {}, {} idle and {} chatting", server.address(), args.idle, args.chatting);
    let manner = Manner::of(&args, &server);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    // A few packets first, or what the host needs once would be put to the account of the first connections.
    runtime.block_on(crowd::gather(&manner, 20, true))?;
    let before_kib = server.memory_kib()?;
    let gathering = crowd::gather(&manner, args.idle, args.idle_speaks);
    let idle = runtime.block_on(gathering).context("gathering the idle")?;
    let with_idle_kib = server.settled_memory_kib()?;
    println!("{:<34}{:>9.1} MiB", "memory before", mib(before_kib));
    println!("{:<34}{:>9.1} MiB", format!("memory with {} idle", args.idle), mib(with_idle_kib));
    if args.idle > 0 {
        let each = (with_idle_kib as f64 - before_kib as f64) / args.idle as f64;
        println!("{:<34}{each:>9.2} KiB", "memory per idle connection");
    }

    let crowd = Crowd::start(&runtime, &manner, args.chatting, Duration::from_millis(args.every_ms))?;
    let phase = Duration::from_secs(args.seconds);
    crowd.measure(phase / 5)?;
    let quiet = crowd.measure(phase)?;
    println!("\n{:<26}{:>9}{:>10}{:>10}{:>10}{:>11}", "echo", "answers", "p50 ms", "p99 ms", "max ms", "memory MiB");
    let row = |name: &str, figures: &crowd::RoundTrips, memory_kib: u64| {
        println!("{name:<26}{figures}{:>11.1}", mib(memory_kib));
    };
    row("quiet", &quiet, server.memory_kib()?);
    let mut worst = Duration::ZERO;
    if args.garbage {
        for attack in Attack::ALL {
            if args.control {
                let attacking = attacks::start(attack, &args, None, phase)?;
                let meanwhile = crowd.measure(phase)?;
                attacking.finish()?;
                row(&format!("({})", attack.name()), &meanwhile, server.memory_kib()?);
            }
            let attacking = attacks::start(attack, &args, Some(&manner), phase)?;
            let under_attack = crowd.measure(phase)?;
            let done = attacking.finish()?;
            row(attack.name(), &under_attack, server.memory_kib()?);
            println!("  {done}");
            worst = worst.max(under_attack.p99());
        }
        let again = crowd.measure(phase)?;
        row("quiet again", &again, server.settled_memory_kib()?);
        if args.control {
            println!("(in brackets: the same done to a stand-in, while the machine was as busy)");
        }
        println!("the worst p99 under attack is {:.1} times the quiet one", ratio(worst, quiet.p99()));
    }
    let broken = crowd.finish() + runtime.block_on(crowd::count_ended(idle));
    println!("\nwell-behaved connections that were refused or ended: {broken}");
    println!("{}", server.connections()?);
    println!("{:<34}{:>9.1} MiB", "memory when all have gone", mib(server.settled_memory_kib()?));
    server.stop()
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64().max(1e-9)
}
