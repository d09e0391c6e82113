//! The lobby with the real program: a watchdog, an agent for each client, the services that agents ask, and a game that a
//! client can go to.

use wheelhouse_tests::{Client, Config, Host, World, example, hostile};

/// Services that run before any client comes.
const AT_REST: u64 = 4;

/// A lobby that runs, without a client.
pub fn lobby(at_first_packet: bool) -> Host {
    let service = |name: &str| example(name, "service").key("start", true).key("restart", "\"on-failure\"");
    let config = Config::new()
        .patient()
        .set("gate.watchdog", "\"watchdog\"")
        .guest(service("watchdog").set("at_first_packet", at_first_packet))
        .guest(example("agent", "service").set("game", "\"game\""))
        .guest(service("simpledb"))
        .guest(service("chat"))
        .guest(service("root"))
        .guest(hostile("game", "game"));
    let host = World::new(&config).serve();
    host.wait_until("the lobby runs", |status| status["services"]["running"] == AT_REST);
    host
}

fn wait_for_agents(host: &Host, count: u64) {
    host.wait_until(&format!("there are {count} agents"), |status| status["services"]["running"] == AT_REST + count);
}

fn expect_echoes(client: &mut Client, count: u32) {
    for number in 0..count {
        assert_eq!(client.receive(), number.to_string());
    }
}

#[test]
fn what_a_client_says_before_it_has_an_agent_is_heard_in_order() {
    for at_first_packet in [false, true] {
        let host = lobby(at_first_packet);
        let mut clients: Vec<Client> = (0..40)
            .map(|_| {
                let mut client = host.connect();
                // While the watchdog launches and binds, and afterwards.
                (0..60).for_each(|number| client.send(format!("ECHO {number}")));
                client
            })
            .collect();
        clients.iter_mut().for_each(|client| expect_echoes(client, 60));
        drop(clients);
        wait_for_agents(&host, 0);
        host.stop();
    }
}

#[test]
fn clients_who_say_nothing_have_no_agent_where_it_is_to_wait_for_a_packet() {
    let host = lobby(true);
    let idle: Vec<Client> = (0..20).map(|_| host.connect()).collect();
    let mut one = host.connect();
    assert_eq!(one.ask("ECHO here"), "here");
    wait_for_agents(&host, 1);
    drop((idle, one));
    host.wait_until("all have left", |status| status["connections"]["open"] == 0);
    wait_for_agents(&host, 0);
    host.stop();
}

#[test]
fn keys_that_one_client_sets_another_gets() {
    let host = lobby(false);
    let (mut one, mut other) = (host.connect(), host.connect());
    assert_eq!(one.ask("GET sheep"), "(none)");
    assert_eq!(one.ask("SET sheep a white one"), "OK");
    assert_eq!(other.ask("GET sheep"), "a white one");
    assert!(other.ask("FLY away").contains("is not known here"));
    host.stop();
}

#[test]
fn what_is_said_in_a_channel_reaches_those_who_are_in_it() {
    let host = lobby(false);
    let (mut one, mut other, mut outside) = (host.connect(), host.connect(), host.connect());
    assert!(one.ask("JOIN inn").contains(" in inn"));
    assert!(other.ask("JOIN inn").contains(" in inn"));
    one.send("SAY good evening");
    assert!(one.receive().ends_with(": good evening"));
    assert!(other.receive().ends_with(": good evening"));
    assert_eq!(outside.ask("WHO"), "error: you are in no channel: JOIN one");
    drop(other);
    wait_for_agents(&host, 2);
    assert!(!one.ask("WHO").contains(','), "only one is left");
    host.stop();
}

#[test]
fn a_client_that_goes_to_the_game_is_the_games_and_its_agent_ends() {
    let host = lobby(false);
    let mut client = host.connect();
    // The second is sent while the first may still be on its way.
    client.send("PLAY");
    client.send("ping from the lobby");
    assert_eq!(client.receive(), "pong from the lobby");
    wait_for_agents(&host, 0);
    assert_eq!(client.ask("ping again"), "pong again");
    host.stop();
}

#[test]
fn a_client_whose_agent_is_killed_is_closed_and_nobody_else() {
    let host = lobby(false);
    let mut one = host.connect();
    assert_eq!(one.ask("ECHO one"), "one");
    let mut other = host.connect();
    assert_eq!(other.ask("ECHO other"), "other");
    let list = host.command(&["services"])["list"].take();
    let first = list.as_array().unwrap().iter().find(|entry| entry["guest"] == "agent").unwrap()["handle"].to_string();
    host.command(&["services", "kill", &first]);
    // Handles grow, and agents come in the order of their clients.
    one.wait_for_end();
    assert_eq!(other.ask("ECHO still here"), "still here");
    host.stop();
}

#[test]
fn clients_that_come_and_go_by_the_hundred_leave_nothing_behind() {
    let host = lobby(false);
    for _ in 0..10 {
        let clients: Vec<Client> = (0..50)
            .map(|_| {
                let mut client = host.connect();
                client.send("ECHO x");
                client
            })
            .collect();
        drop(clients);
    }
    host.wait_until("all have left", |status| status["connections"]["open"] == 0);
    wait_for_agents(&host, 0);
    let mut client = host.connect();
    assert_eq!(client.ask("ECHO at last"), "at last");
    host.stop();
}
