//! What strangers do to a gate, each for as long as a phase lasts, from a thread of their own: the well-behaved are not to
//! suffer from it at their own end.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, anyhow};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, timeout, timeout_at};

use crate::Args;
use crate::crowd::Manner;

/// Connections that an attack has open at once, at most.
pub const MAX_AT_ONCE: usize = 1000;

/// Those who send noise, or come and go, at the same time.
const STRANGERS: usize = 20;

/// Those who say half a frame and nothing more.
const SILENT: usize = 500;

/// What the stand-in reads of one connection.
const STAND_IN_BYTES: usize = 8 * 1024;

/// The beginning of a frame of ten bytes.
const HALF_A_FRAME: &[u8] = &[0, 10, b'h', b'a', b'l', b'f'];

/// A way to attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    RandomBytes,
    HalfAFrame,
    Flood,
    ComingAndGoing,
    NeverReading,
}

impl Attack {
    pub const ALL: [Self; 5] =
        [Self::RandomBytes, Self::HalfAFrame, Self::Flood, Self::ComingAndGoing, Self::NeverReading];

    pub fn name(self) -> &'static str {
        match self {
            Self::RandomBytes => "random bytes",
            Self::HalfAFrame => "half a frame and silence",
            Self::Flood => "a flood",
            Self::ComingAndGoing => "coming and going",
            Self::NeverReading => "never reading",
        }
    }
}

/// An attack under way.
pub struct Attacking {
    thread: JoinHandle<anyhow::Result<String>>,
}

impl Attacking {
    /// Waits for its end, and says what was done.
    pub fn finish(self) -> anyhow::Result<String> {
        self.thread.join().map_err(|_| anyhow!("the attackers panicked"))?
    }
}

/// Begins an attack on the gate, or on a stand-in for it.
pub fn start(attack: Attack, args: &Args, gate: Option<&Manner>, length: Duration) -> anyhow::Result<Attacking> {
    let (gate, args) = (gate.cloned(), args.clone());
    let thread = thread::Builder::new().name("attackers".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let manner = match gate {
                Some(manner) => manner,
                None => Manner::plain(&args, stand_in().await?),
            };
            run(attack, &manner, args.connects_per_s, length).await
        })
    })?;
    Ok(Attacking { thread })
}

async fn run(attack: Attack, manner: &Manner, connects_per_s: u64, length: Duration) -> anyhow::Result<String> {
    let gate: SocketAddr = manner.address.parse().context("the gate's address")?;
    let until = Instant::now() + length;
    let (done, frames) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let counted = || Arc::clone(&done);
    let mut strangers = JoinSet::new();
    match attack {
        Attack::RandomBytes => (0..STRANGERS as u64).for_each(|seed| {
            strangers.spawn(random_bytes(gate, seed, until, counted()));
        }),
        Attack::HalfAFrame => (0..SILENT).for_each(|_| {
            strangers.spawn(half_a_frame(gate, until, counted()));
        }),
        Attack::Flood => (0..STRANGERS / 4).for_each(|_| {
            strangers.spawn(flood(manner.clone(), until, counted(), Arc::clone(&frames)));
        }),
        Attack::ComingAndGoing => {
            strangers.spawn(come_and_go(gate, connects_per_s, until, counted()));
        }
        Attack::NeverReading => (0..STRANGERS).for_each(|_| {
            strangers.spawn(never_read(manner.clone(), until, counted()));
        }),
    }
    while strangers.join_next().await.is_some() {}
    let (done, frames) = (done.load(Ordering::Relaxed), frames.load(Ordering::Relaxed));
    Ok(match attack {
        Attack::Flood => format!("{done} connections were cut off, {frames} frames sent"),
        Attack::HalfAFrame => format!("{done} connections held open with half a frame"),
        _ => format!("{done} connections, {:.0} a second", done as f64 / length.as_secs_f64()),
    })
}

/// A listener that reads what comes, answers nothing and hangs up after about as much as the gate takes of a flood.
async fn stand_in() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut read = Vec::with_capacity(STAND_IN_BYTES);
                while read.len() < STAND_IN_BYTES && matches!(stream.read_buf(&mut read).await, Ok(1..)) {}
            });
        }
    });
    Ok(address)
}

async fn random_bytes(gate: SocketAddr, seed: u64, until: Instant, done: Arc<AtomicU64>) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut noise = vec![0; 20_000];
    while Instant::now() < until {
        random.fill_bytes(&mut noise);
        if let Ok(mut stream) = TcpStream::connect(gate).await {
            // The gate may cut it off before it has read all.
            let _ = timeout(Duration::from_millis(100), stream.write_all(&noise)).await;
            let _ = timeout(Duration::from_millis(100), stream.read_buf(&mut Vec::new())).await;
            let _ = stream.set_zero_linger();
            done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn half_a_frame(gate: SocketAddr, until: Instant, done: Arc<AtomicU64>) {
    if let Ok(mut stream) = TcpStream::connect(gate).await
        && stream.write_all(HALF_A_FRAME).await.is_ok()
    {
        done.fetch_add(1, Ordering::Relaxed);
        let _ = timeout_at(until, stream.read_u8()).await;
    }
}

/// Sends whole packets as fast as they are taken.
async fn flood(manner: Manner, until: Instant, done: Arc<AtomicU64>, frames: Arc<AtomicU64>) {
    while Instant::now() < until {
        let Ok(client) = manner.connect().await else { continue };
        let (mut sender, mut receiver) = client.into_split();
        let packet = manner.packet(0);
        let sending = async {
            while Instant::now() < until && sender.send(packet.as_bytes()).await.is_ok() {
                frames.fetch_add(1, Ordering::Relaxed);
            }
        };
        let reading = async { while let Ok(Some(_)) = receiver.receive().await {} };
        tokio::select! {
            () = sending => {}
            () = reading => {}
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Connects and leaves at a rate, one half in good order and one half with a reset, from many addresses of this machine:
/// one alone would run out of ports.
async fn come_and_go(gate: SocketAddr, per_s: u64, until: Instant, done: Arc<AtomicU64>) {
    let mut turns = interval(Duration::from_millis(1));
    let begun = Instant::now();
    let (mut number, mut visits) = (0_u64, JoinSet::new());
    while Instant::now() < until {
        turns.tick().await;
        let due = (begun.elapsed().as_secs_f64() * per_s as f64) as u64;
        while number < due && visits.len() < MAX_AT_ONCE {
            number += 1;
            visits.spawn(visit(gate, number, Arc::clone(&done)));
        }
        // What could not be kept up with is left out.
        number = number.max(due.saturating_sub(per_s / 10));
        while visits.try_join_next().is_some() {}
    }
    while visits.join_next().await.is_some() {}
}

async fn visit(gate: SocketAddr, number: u64, done: Arc<AtomicU64>) {
    let Ok(socket) = TcpSocket::new_v4() else { return };
    let from = Ipv4Addr::new(127, 0, 1, (number % 250) as u8 + 1);
    if socket.bind(SocketAddr::from((from, 0))).is_err() {
        return;
    }
    if let Ok(Ok(stream)) = timeout(Duration::from_secs(2), socket.connect(gate)).await {
        if number.is_multiple_of(2) {
            let _ = stream.set_zero_linger();
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Asks for long answers and reads none of them.
async fn never_read(manner: Manner, until: Instant, done: Arc<AtomicU64>) {
    while Instant::now() < until {
        let Ok(client) = manner.connect().await else { continue };
        let (mut sender, receiver) = client.into_split();
        let packet = manner.packet(0) + &"x".repeat(10_000);
        // Slow enough for the limit on frames, and never slower than that because of the gate.
        let mut sending = true;
        while sending && Instant::now() < until {
            sending = matches!(timeout(Duration::from_secs(1), sender.send(packet.as_bytes())).await, Ok(Ok(())));
            sleep(Duration::from_millis(6)).await;
        }
        drop((sender, receiver));
        done.fetch_add(1, Ordering::Relaxed);
    }
}
