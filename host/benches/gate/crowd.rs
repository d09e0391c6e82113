//! The well-behaved: clients that are quiet, and clients that chat and measure each answer.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval_at, sleep_until, timeout};
use wheelhouse::net::{Client, Door, Trust};

use crate::Args;
use crate::server::Server;

/// How long an answer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Clients that connect at the same time, fewer than a listener lets wait.
const CONNECTING_AT_ONCE: usize = 100;

/// All come from one address, which may not come faster: see `gate.max_connects_per_second`.
const ARRIVES_EVERY: Duration = Duration::from_micros(5200);

/// Where clients connect, and what they say there.
#[derive(Clone)]
pub struct Manner {
    pub address: String,
    pub door: Door,
    send: String,
    expect: String,
}

impl Manner {
    pub fn of(args: &Args, server: &Server) -> Self {
        let door = Door { tls: server.speaks_tls().then(Trust::anyone), websocket: args.websocket };
        Self { address: server.address().to_owned(), door, send: args.send.clone(), expect: args.expect.clone() }
    }

    /// The same things said at an address without TLS and WebSocket.
    pub fn plain(args: &Args, address: String) -> Self {
        Self { address, door: Door::default(), send: args.send.clone(), expect: args.expect.clone() }
    }

    pub async fn connect(&self) -> anyhow::Result<Client> {
        let connecting = timeout(ANSWER_LIMIT, Client::connect_by(&self.door, &self.address));
        connecting.await.context("connecting took too long")?.context("cannot connect")
    }

    /// What number `n` is sent as.
    pub fn packet(&self, n: u64) -> String {
        self.send.replace("{n}", &n.to_string())
    }

    /// Sends number `n`, waits for its answer, and says how long that took.
    async fn ask(&self, client: &mut Client, n: u64) -> anyhow::Result<Duration> {
        let (packet, wanted) = (self.packet(n), self.expect.replace("{n}", &n.to_string()));
        let asked = Instant::now();
        client.send(packet.as_bytes()).await?;
        let hear = async {
            loop {
                match client.receive().await? {
                    Some(answer) if answer == wanted.as_bytes() => return Ok::<_, anyhow::Error>(()),
                    // News of others, in a world that tells them.
                    Some(_) => {}
                    None => bail!("the gate ended the connection"),
                }
            }
        };
        timeout(ANSWER_LIMIT, hear).await.context("an answer took too long")??;
        Ok(asked.elapsed())
    }
}

/// As many clients, each of which has been answered once if it `speaks`.
pub async fn gather(manner: &Manner, count: usize, speaks: bool) -> anyhow::Result<Vec<Client>> {
    let connecting = Arc::new(Semaphore::new(CONNECTING_AT_ONCE));
    let mut arrivals = JoinSet::new();
    let begun = tokio::time::Instant::now();
    for n in 0..count {
        let (manner, connecting) = (manner.clone(), Arc::clone(&connecting));
        arrivals.spawn(async move {
            sleep_until(begun + ARRIVES_EVERY * n as u32).await;
            let _turn = connecting.acquire().await?;
            let mut client = manner.connect().await.with_context(|| format!("client {n}"))?;
            if speaks {
                manner.ask(&mut client, n as u64).await.with_context(|| format!("client {n}"))?;
            }
            Ok::<_, anyhow::Error>(client)
        });
    }
    let mut clients = Vec::with_capacity(count);
    while let Some(arrived) = arrivals.join_next().await {
        clients.push(arrived??);
    }
    Ok(clients)
}

/// How many of these have been ended by the gate.
pub async fn count_ended(clients: Vec<Client>) -> u64 {
    let mut ended = 0;
    for mut client in clients {
        loop {
            match timeout(Duration::ZERO, client.receive()).await {
                Ok(Ok(Some(_))) => {}
                Ok(Ok(None) | Err(_)) => {
                    ended += 1;
                    break;
                }
                Err(_nothing_there) => break,
            }
        }
    }
    ended
}

/// Clients that chat until they are told to stop.
pub struct Crowd {
    round_trips: Arc<Mutex<Vec<Duration>>>,
    broken: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    count: usize,
}

impl Crowd {
    pub fn start(runtime: &Runtime, manner: &Manner, count: usize, every: Duration) -> anyhow::Result<Self> {
        ensure!(!every.is_zero(), "clients must rest between two packets: set --every-ms");
        let crowd = Self { round_trips: Arc::default(), broken: Arc::default(), stop: Arc::default(), count };
        let clients = runtime.block_on(gather(manner, count, true)).context("gathering those who chat")?;
        for (number, client) in clients.into_iter().enumerate() {
            // They do not talk in step.
            let first = every.mul_f64(number as f64 / count as f64);
            let (round_trips, broken, stop) =
                (Arc::clone(&crowd.round_trips), Arc::clone(&crowd.broken), Arc::clone(&crowd.stop));
            let manner = manner.clone();
            runtime.spawn(async move {
                if let Err(error) = chat(&manner, client, first, every, &round_trips, &stop).await {
                    eprintln!("client {number} of those who chat: {error:#}");
                    broken.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        Ok(crowd)
    }

    /// The round trips that end within this time.
    pub fn measure(&self, length: Duration) -> anyhow::Result<RoundTrips> {
        self.taken();
        thread::sleep(length);
        let mut times = self.taken();
        times.sort_unstable();
        ensure!(self.count == 0 || !times.is_empty(), "nobody was answered within {length:?}");
        Ok(RoundTrips { times })
    }

    fn taken(&self) -> Vec<Duration> {
        std::mem::take(&mut *self.round_trips.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets them go, and answers how many had been refused or cut off.
    pub fn finish(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.broken.load(Ordering::Relaxed)
    }
}

async fn chat(
    manner: &Manner,
    mut client: Client,
    first: Duration,
    every: Duration,
    round_trips: &Mutex<Vec<Duration>>,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    let mut turns = interval_at(tokio::time::Instant::now() + first, every);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for n in 0.. {
        turns.tick().await;
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let took = manner.ask(&mut client, n).await?;
        round_trips.lock().unwrap_or_else(PoisonError::into_inner).push(took);
    }
    Ok(())
}

/// Round trips, shortest first.
pub struct RoundTrips {
    times: Vec<Duration>,
}

impl RoundTrips {
    pub fn p99(&self) -> Duration {
        self.percentile(99)
    }

    fn percentile(&self, percent: usize) -> Duration {
        let at = (self.times.len() * percent / 100).min(self.times.len().saturating_sub(1));
        self.times.get(at).copied().unwrap_or_default()
    }
}

impl fmt::Display for RoundTrips {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |percent| self.percentile(percent).as_secs_f64() * 1000.0;
        write!(out, "{:>9}{:>10.2}{:>10.2}{:>10.2}", self.times.len(), ms(50), ms(99), ms(100))
    }
}
