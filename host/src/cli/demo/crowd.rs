//! The simulated clients of the demo: each a real connection that plays by packets as a person would, only faster. They
//! measure how long answers take as a player feels it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::clock::{Clock, MonotonicClock};
use crate::net::{Client, ClientReceiver, ClientSender};

/// Time between two packets of one player.
const PACKET_EVERY: Duration = Duration::from_millis(100);

/// One packet in so many measures the round trip.
const PING_EVERY: u64 = 5;

/// How far a player strays from home, in tiles: it stays within its own sector, so that the sectors that it keeps awake
/// stay the same.
const STRAY_TILES: i32 = 6;

/// How long an answer may take before the demo fails.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// All simulated clients. They have a thread of their own, apart from the host's.
pub struct Crowd {
    runtime: Runtime,
    players: Vec<JoinHandle<anyhow::Result<Vec<Duration>>>>,
    measuring: Arc<AtomicBool>,
    leave: watch::Sender<bool>,
}

impl Crowd {
    /// Connects `count` players, one after another, so that each gets a home of its own.
    pub fn join(gate: SocketAddr, count: u32) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("wheelhouse-crowd")
            .enable_all()
            .build()
            .context("the simulated clients need a thread")?;
        let measuring = Arc::new(AtomicBool::new(false));
        let (leave, leaving) = watch::channel(false);
        let players = runtime.block_on(async {
            let mut players = Vec::new();
            for number in 0..count {
                let client = enter(gate).await.with_context(|| format!("client {number} of {count}"))?;
                let play = play(client, number, Arc::clone(&measuring), leaving.clone());
                players.push(tokio::spawn(play));
            }
            Ok::<_, anyhow::Error>(players)
        })?;
        Ok(Self { runtime, players, measuring, leave })
    }

    /// From here on round trips count.
    pub fn begin_measuring(&self) {
        self.measuring.store(true, Ordering::Relaxed);
    }

    /// Ends the connections and answers the round trips, shortest first.
    pub fn leave(self) -> anyhow::Result<Vec<Duration>> {
        // Players that have failed are gone already; their error comes below.
        let _ = self.leave.send(true);
        let mut round_trips = Vec::new();
        for player in self.players {
            let measured = self.runtime.block_on(player).context("a simulated client panicked")?;
            round_trips.extend(measured.context("a simulated client failed")?);
        }
        round_trips.sort_unstable();
        Ok(round_trips)
    }
}

/// Connects, and is in the world when it returns.
async fn enter(gate: SocketAddr) -> anyhow::Result<Client> {
    let mut client = Client::connect(gate).await.context("cannot connect")?;
    client.send(b"ping").await?;
    let answered = tokio::time::timeout(ANSWER_LIMIT, client.receive()).await.context("no answer from the gate")?;
    answered?.context("the gate closed the connection")?;
    Ok(client)
}

async fn play(
    client: Client,
    number: u32,
    measuring: Arc<AtomicBool>,
    mut leaving: watch::Receiver<bool>,
) -> anyhow::Result<Vec<Duration>> {
    let (mut sender, mut receiver) = client.into_split();
    let mut player = Player::new(number);
    let mut round_trips = Vec::new();
    // Players do not act in step.
    let first = PACKET_EVERY.mul_f64(player.random.random_range(0.0..1.0));
    let mut turns = tokio::time::interval_at(tokio::time::Instant::now() + first, PACKET_EVERY);
    turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while !*leaving.borrow() {
        tokio::select! {
            _ = turns.tick() => {
                if let Some(round_trip) = player.take_turn(&mut sender, &mut receiver).await?
                    && measuring.load(Ordering::Relaxed)
                {
                    round_trips.push(round_trip);
                }
            }
            heard = receiver.receive() => {
                heard?.context("the gate closed the connection")?;
            }
            _ = leaving.changed() => {}
        }
    }
    Ok(round_trips)
}

struct Player {
    clock: MonotonicClock,
    random: ChaCha8Rng,
    turn: u64,
    /// How far from home, in tiles.
    x: i32,
    y: i32,
}

impl Player {
    fn new(number: u32) -> Self {
        let random = ChaCha8Rng::seed_from_u64(number.into());
        // Begins its turns at a place of its own, so that not all ping in the same one.
        Self { clock: MonotonicClock::new(), random, turn: number.into(), x: 0, y: 0 }
    }

    /// Sends one packet. For a ping it waits for the answer and says how long that took.
    async fn take_turn(
        &mut self,
        sender: &mut ClientSender,
        receiver: &mut ClientReceiver,
    ) -> anyhow::Result<Option<Duration>> {
        self.turn += 1;
        if !self.turn.is_multiple_of(PING_EVERY) {
            sender.send(self.act().as_bytes()).await?;
            return Ok(None);
        }
        let asked = self.clock.now();
        sender.send(format!("ping {}", self.turn).as_bytes()).await?;
        let answer = format!("pong {}", self.turn);
        let heard = tokio::time::timeout(ANSWER_LIMIT, hear(receiver, answer.as_bytes()));
        heard.await.context("a ping was not answered")??;
        Ok(Some(self.clock.now() - asked))
    }

    fn act(&mut self) -> String {
        match self.random.next_u32() % 8 {
            0 => "look".to_owned(),
            1 => format!("say turn {}", self.turn),
            _ => self.walk(),
        }
    }

    fn walk(&mut self) -> String {
        let mut step = |at: &mut i32| {
            let to = (*at + self.random.random_range(-1..=1)).clamp(-STRAY_TILES, STRAY_TILES);
            let step = to - *at;
            *at = to;
            step
        };
        let (dx, dy) = (step(&mut self.x), step(&mut self.y));
        format!("walk {dx} {dy}")
    }
}

/// Reads on until that answer has come.
async fn hear(receiver: &mut ClientReceiver, answer: &[u8]) -> anyhow::Result<()> {
    loop {
        let heard = receiver.receive().await?.context("the gate closed the connection")?;
        if heard == answer {
            return Ok(());
        }
    }
}
