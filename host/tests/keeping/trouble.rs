//! A disk that takes nothing for a while: it begins and ends at whatever moment, and nothing that was acknowledged is lost,
//! nothing is done twice, and each client's answers keep their order.

use std::collections::VecDeque;
use std::time::Duration;

use crate::player::{Player, Ran};
use crate::world::{Run, World, game};

/// Random numbers, the same in every run: xorshift64* (Vigna 2016).
struct Random(u64);

impl Random {
    fn seeded(seed: u64) -> Self {
        Self((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16) % bound
    }
}

/// Fills the disk, and waits until the host has noticed; what makes it notice is a bump of the ledger `full`.
fn full(world: &World, run: &Run, bumper: &mut Player) {
    world.disk.fill();
    bumper.send("bump full");
    run.wait_until("the host notices", |status| status.store.state != "ok");
}

#[test]
fn what_needs_no_disk_is_served_and_the_rest_waits_in_the_order_of_sending() {
    let world = World::new();
    let mut run = world.start();
    let (mut first, mut second, mut bystander) = (run.connect(), run.connect(), run.connect());
    assert_eq!(first.ask("bump a"), "a 1");
    full(&world, &run, &mut first);
    let before = run.sent();
    ["bump a", "ping 1", "bump a"].iter().for_each(|packet| first.send(packet));
    ["bump b", "read a"].iter().for_each(|packet| second.send(packet));
    run.settle();
    assert_eq!(bystander.ask("ping x"), "pong x");
    let pings = run.pings() + 1;
    assert_eq!(run.sent(), before + pings, "only the pings of those who changed nothing are answered");
    run.end_trouble();
    let answers: Vec<String> = (0..4).map(|_| first.receive()).collect();
    assert_eq!(answers, ["full 1", "a 2", "pong 1", "a 3"]);
    assert_eq!(second.receive(), "b 1");
    assert!(["a 1", "a 2", "a 3"].contains(&second.receive().as_str()));
    run.stop().expect("everything is saved");
}

#[test]
fn timers_that_fire_meanwhile_run_once_for_all_their_times() {
    let world = World::new();
    let mut run = world.start();
    let mut client = run.connect();
    assert_eq!(client.ask("timer 200 once"), "timer set");
    assert_eq!(client.ask("beat 100 beats"), "timer set");
    full(&world, &run, &mut client);
    let began = world.clock_ms();
    run.pass(10, 55);
    run.end_trouble();
    assert_eq!(client.receive(), "full 1");
    run.settle();
    // A beat comes up to a tick after its time.
    let passed_ms = world.clock_ms() - began;
    let (beats, ticks) = (client.count("beats"), (passed_ms - 8) / 100..=passed_ms / 100);
    assert!(beats >= 5 && ticks.contains(&beats), "{beats} instead of {ticks:?}");
    assert_eq!(client.count("once"), 1);
    run.stop().expect("everything is saved");
}

#[test]
fn events_that_come_due_meanwhile_run_once_and_in_order_afterwards() {
    let world = World::new();
    let mut run = world.start();
    let mut client = run.connect();
    let mut ids = vec![
        client.schedule("after 300 bump due"),
        client.schedule("after 100 bump due"),
        client.schedule("after 100 bump due"),
    ];
    full(&world, &run, &mut client);
    run.pass(10, 50);
    assert_eq!(run.status().events.counts.fired, 0);
    run.end_trouble();
    assert_eq!(client.receive(), "full 1");
    let runs = run.wait_for_runs(&mut client, 3);
    assert!(runs.iter().all(|run| run.count == 1), "{runs:?}");
    ids.sort_unstable();
    assert_eq!((client.order(), client.count("due")), (ids, 3));
    run.stop().expect("everything is saved");
}

#[test]
fn clients_that_come_and_go_meanwhile_leave_nothing_behind() {
    // This game has an entity for each player from when he comes until he goes, and both needs the disk.
    let world = World::of(vec![game("game", "hostile-game")]);
    let mut run = world.start();
    let (mut staying, leaving) = (run.connect(), run.connect());
    let mut watching = run.connect();
    let clients = run.wait_until("four clients", |status| status.connections.open == 4).connections;
    run.settle();
    assert_eq!(watching.ask("count"), "entities 4 kv 0 timers 0");

    world.disk.fill();
    staying.send("whole");
    run.wait_until("the host notices", |status| status.store.state != "ok");
    drop(leaving);
    for number in 0..5 {
        let mut passing = run.connect();
        passing.send(format!("ping {number}"));
        passing.send("whole");
        drop(passing);
    }
    drop(run.connect());
    run.wait_until("they have come and gone", |status| {
        status.connections.accepted == clients.accepted + 6 && status.connections.open == 3
    });
    run.settle();
    run.end_trouble();
    assert_eq!(staying.receive(), "changed");
    // Three are here, and `whole` has made an entity of its own each time.
    watching.ask_until("count", |answer| answer.starts_with("entities 9 kv 6 "));
    run.stop().expect("everything is saved");
}

#[test]
fn a_client_in_a_hurry_has_only_a_few_packets_set_aside() {
    const BUMPS: u64 = 100;
    let world = World::new();
    let mut run = world.start();
    let (mut client, mut bystander) = (run.connect(), run.connect());
    full(&world, &run, &mut bystander);
    let before = run.status().sim.game_loop.accepted;
    (0..BUMPS).for_each(|_| client.send("bump a"));
    run.wait_until("some are accepted", |status| status.sim.game_loop.accepted >= before + 4);
    (0..20).for_each(|_| run.settle());
    let accepted = run.status().sim.game_loop.accepted - before - 20 * run.pings();
    assert!(accepted <= 8, "{accepted} packets were accepted, and all of them wait");
    run.end_trouble();
    assert_eq!(bystander.receive(), "full 1");
    (1..=BUMPS).for_each(|count| assert_eq!(client.receive(), format!("a {count}")));
    run.stop().expect("everything is saved");
}

#[test]
fn an_operator_is_told_at_once_why_nothing_is_saved() {
    let world = World::new();
    let run = world.start();
    let (mut client, control) = (run.connect(), run.control());
    let event = client.schedule("after 30000 bump due");
    full(&world, &run, &mut client);
    let refusals = [control.save(), control.cancel_event(event.sequence)];
    for refusal in refusals {
        let told = refusal.expect_err("nothing can be saved").to_string();
        assert!(told.contains("cannot be written"), "{told}");
    }
    // A copy of what there is needs no room on this disk.
    control.backup(&world.file("copy.db")).expect("a backup is all the more wanted");
    run.end_trouble();
    assert_eq!(client.receive(), "full 1");
    control.cancel_event(event.sequence).expect("the event is still there");
    control.save().expect("it is saved");
    run.stop().expect("everything is saved");
}

/// What a client sends, and the answer to it.
struct Sender {
    player: Player,
    name: usize,
    bumps: u64,
    events: u64,
    timers: u64,
    expected: VecDeque<String>,
}

impl Sender {
    fn send(&mut self, random: &mut Random) {
        let Self { name, .. } = *self;
        let (packet, answer) = match random.below(10) {
            0..4 => {
                self.bumps += 1;
                (format!("bump {name}"), format!("{name} {}", self.bumps))
            }
            4..6 => (format!("ping {}", self.bumps), format!("pong {}", self.bumps)),
            6 => (format!("read {name}"), format!("{name} {}", self.bumps)),
            7 => {
                self.timers += 1;
                (format!("timer {} timer-{name}", 1 + random.below(200)), "timer set".to_owned())
            }
            _ => {
                self.events += 1;
                (format!("after {} bump event-{name}", random.below(200)), "scheduled ".to_owned())
            }
        };
        self.player.send(packet);
        self.expected.push_back(answer);
    }

    /// Receives an answer, which must be the next.
    fn receive(&mut self) -> Option<()> {
        let expected = self.expected.front()?;
        let answer = self.player.try_receive()?;
        assert!(
            answer == *expected || (expected == "scheduled " && answer.starts_with("scheduled ")),
            "{answer:?} instead of {expected:?}"
        );
        self.expected.pop_front();
        Some(())
    }
}

/// Three clients send at random while trouble begins and ends at random. Answers the clients, who have heard nothing.
fn at_random(world: &World, run: &Run, random: &mut Random) -> Vec<Sender> {
    let sender =
        |name| Sender { player: run.connect(), name, bumps: 0, events: 0, timers: 0, expected: VecDeque::new() };
    let mut senders: Vec<Sender> = (0..3).map(sender).collect();
    for _ in 0..150 {
        match random.below(16) {
            0 => world.disk.fill(),
            1 => world.disk.make_room(),
            2 => world.disk.hold(),
            3 => world.disk.let_through(1 + random.below(2) as usize),
            4 => world.disk.let_go(),
            5..7 => world.clock.advance(Duration::from_millis(random.below(120))),
            _ => senders[random.below(3) as usize].send(random),
        }
    }
    senders
}

fn ran_once(runs: &[Ran]) -> u64 {
    assert!(runs.iter().all(|run| run.count == 1), "{runs:?}");
    runs.len() as u64
}

/// Seeds of the random tests.
const SEEDS: u64 = 12;

#[test]
fn trouble_that_begins_and_ends_at_random_loses_nothing_and_does_nothing_twice() {
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let world = World::new().configured(|config| config.game_loop.max_items_per_batch = 1 + seed % 8);
        let mut run = world.start();
        let mut senders = at_random(&world, &run, &mut Random::seeded(seed));
        world.disk.let_go();
        run.end_trouble();
        for sender in &mut senders {
            while sender.receive().is_some() {}
            assert_eq!(sender.expected.len(), 0, "the host keeps the connection");
        }
        // What is not full by now is not noticed to be: there may be trouble that nobody met yet.
        run.pass(5, 50);
        let events = senders.iter().map(|sender| sender.events).sum::<u64>();
        let mut reader = run.connect();
        assert_eq!(ran_once(&run.wait_for_runs(&mut reader, events as usize)), events);
        let ledgers = |reader: &mut Player| {
            ["", "event-", "timer-"]
                .map(|what| (0..3).map(|name| reader.count(&format!("{what}{name}"))).collect::<Vec<_>>())
        };
        let expected = [
            senders.iter().map(|sender| sender.bumps).collect::<Vec<_>>(),
            senders.iter().map(|sender| sender.events).collect(),
            senders.iter().map(|sender| sender.timers).collect(),
        ];
        assert_eq!(ledgers(&mut reader), expected);
        run.stop().expect("everything is saved");

        let run = world.start();
        assert_eq!(ledgers(&mut run.connect()), expected, "after a restart");
        run.stop().expect("everything is saved");
    }
}

#[test]
fn a_stop_at_a_random_moment_of_trouble_loses_nothing_that_was_acknowledged() {
    for seed in 100..100 + SEEDS {
        println!("seed {seed}");
        let world = World::new().configured(|config| config.game_loop.max_items_per_batch = 1 + seed % 8);
        let run = world.start();
        let mut random = Random::seeded(seed);
        let mut senders = at_random(&world, &run, &mut random);
        let stopping = run.begin_stop();
        if random.below(2) == 0 {
            world.disk.make_room();
        }
        world.disk.let_go();
        let acknowledged: Vec<(u64, u64)> = senders
            .iter_mut()
            .map(|sender| {
                let sent: Vec<String> = sender.expected.iter().cloned().collect();
                while sender.receive().is_some() {}
                let heard = &sent[..sent.len() - sender.expected.len()];
                let of = |start: &str| heard.iter().filter(|answer| answer.starts_with(start)).count() as u64;
                let last = heard.iter().rev().find_map(|answer| answer.strip_prefix(&format!("{} ", sender.name)));
                (last.map_or(0, |count| count.parse().expect("a count")), of("scheduled "))
            })
            .collect();
        let stopped = stopping.wait();
        println!("stopped with {stopped:?}");

        world.disk.be_good();
        let mut run = world.start();
        run.pass(5, 50);
        let mut reader = run.connect();
        let scheduled = acknowledged.iter().map(|(_, events)| events).sum::<u64>();
        reader.ask_until("walk", |answer| answer == "pending 0");
        let ran = ran_once(&reader.runs());
        assert!(ran >= scheduled, "{ran} events ran, and {scheduled} were acknowledged");
        let mut in_ledgers = 0;
        for (sender, (bumps, events)) in senders.iter().zip(&acknowledged) {
            let bumped = reader.count(&sender.name.to_string());
            assert!((*bumps..=sender.bumps).contains(&bumped), "{bumps} <= {bumped} <= {}", sender.bumps);
            let ran = reader.count(&format!("event-{}", sender.name));
            assert!((*events..=sender.events).contains(&ran), "{events} <= {ran} <= {}", sender.events);
            in_ledgers += ran;
        }
        assert_eq!(in_ledgers, ran, "what events did and that they ran are together");
        run.stop().expect("everything is saved");
    }
}
