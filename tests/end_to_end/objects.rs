//! What guests of all kinds do with each other, with the real program: objects that one service has and others call,
//! blobs that one publishes and all read, groups and watches. Clients have the game do it, and it has the services.

use std::cell::RefCell;
use std::thread;
use std::time::Instant;

use wheelhouse_tests::{Client, Config, Guest, Host, PATIENCE, PAUSE, World, example, helpful, hostile};

/// More than one call carries, by the default of `guest.max_payload_kb`.
const BIG_KIB: usize = 3_000;

/// A running host with a client of its game.
struct Company {
    host: Host,
    client: RefCell<Client>,
}

impl Company {
    /// The name service, two async services that export and call objects, a plain one that calls them, a plain one that
    /// listens, and a game.
    fn new() -> Self {
        let launched = |guest: Guest| guest.key("start", true);
        let config = Config::new()
            .patient()
            .guest(launched(example("root", "service")))
            .guest(launched(helpful("probe", "service")))
            .guest(launched(helpful("probe", "service").named("other")))
            .guest(launched(helpful("relay", "service")))
            .guest(launched(hostile("listener", "service")))
            .guest(helpful("postman", "game").set("name", "\"postman\""));
        let host = World::new(&config).serve();
        host.wait_until("the services run", |status| status["services"]["running"] == 5);
        let client = RefCell::new(host.connect());
        Self { host, client }
    }

    /// Has the game do something.
    fn game(&self, packet: &str) -> String {
        self.client.borrow_mut().ask(packet)
    }

    /// Has the game ask whoever has that name.
    fn ask(&self, name: &str, order: &str) -> String {
        self.game(&format!("request 10000 {name} {order}"))
    }

    /// The same, again and again until that is the answer: what a game does takes effect when it is on disk.
    fn ask_until(&self, name: &str, order: &str, answer: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let answered = self.ask(name, order);
            if answered == answer {
                return;
            }
            assert!(Instant::now() < until, "{name} answers {order:?} with {answered:?} and not with {answer:?}");
            thread::sleep(PAUSE);
        }
    }

    /// The same with an answer that comes among other packets.
    fn ask_anew(&self, name: &str, order: &str) -> String {
        self.client.borrow_mut().ask_for(format!("request 10000 {name} {order}"), "reply ")
    }

    /// Has a probe export its object; the reference, as the game writes it.
    fn exported_by(&self, name: &str) -> String {
        let answer = self.ask(name, "export 7");
        answer.strip_prefix("reply ").unwrap_or_else(|| panic!("{name} exports nothing: {answer}")).to_owned()
    }
}

const GONE: &str = "the object is gone, or the service that had it is";

#[test]
fn an_object_is_called_alike_by_the_service_that_has_it_by_others_and_by_a_game() {
    let company = Company::new();
    let object = company.exported_by("other");
    assert_eq!(company.ask("other", "add 1"), "reply 1", "its own");
    assert_eq!(company.ask("probe", "add 2"), "reply 3", "from an async service");
    assert_eq!(company.ask("relay", "add 3"), "reply 6", "from a plain service");
    assert_eq!(company.game(&format!("add {object} 4")), "sum 10", "from a game");
    assert_eq!(company.ask("probe", "call other add 5"), "reply 15", "on the way through another");
    company.host.stop();
}

#[test]
fn an_object_that_was_withdrawn_or_never_was_is_gone_for_everybody() {
    let company = Company::new();
    let object = company.exported_by("other");
    assert_eq!(company.ask("probe", "withdraw"), "reply false", "it is not its own");
    assert_eq!(company.ask("probe", "add 1"), "reply 1");
    assert_eq!(company.ask("other", "withdraw"), "reply true");
    for name in ["other", "probe", "relay"] {
        let answer = company.ask(name, "add 1");
        assert!(answer.starts_with("none ") && answer.contains(GONE), "{name}: {answer}");
    }
    assert_eq!(company.game(&format!("add {object} 1")), format!("none {GONE}"));
    let never = object.replace(" 7", " 8");
    assert_eq!(company.game(&format!("add {never} 1")), format!("none {GONE}"));
    company.host.stop();
}

#[test]
fn an_object_whose_service_is_dead_is_gone_for_everybody_until_another_exports_it() {
    let company = Company::new();
    let object = company.exported_by("other");
    company.host.command(&["services", "kill", "other"]);
    company.host.wait_until("it is dead", |status| status["services"]["running"] == 4);
    for name in ["probe", "relay"] {
        let answer = company.ask(name, "add 1");
        assert!(answer.starts_with("none ") && answer.contains(GONE), "{name}: {answer}");
    }
    assert_eq!(company.game(&format!("add {object} 1")), format!("none {GONE}"));
    company.exported_by("probe");
    assert_eq!(company.ask("relay", "add 2"), "reply 2");
    company.host.stop();
}

#[test]
fn a_blob_beyond_what_one_call_carries_is_read_whole_by_services_and_by_a_game() {
    let company = Company::new();
    let bytes = BIG_KIB * 1024;
    assert_eq!(company.game(&format!("put-kib from-game {BIG_KIB}")), "done");
    company.ask_until("probe", "measure from-game", &format!("reply {bytes}"));
    assert_eq!(company.ask("probe", &format!("put from-service {BIG_KIB}")), "reply done");
    assert_eq!(company.ask("other", "measure from-service"), format!("reply {bytes}"));
    assert_eq!(company.game("measure from-service"), format!("measured {bytes}"));
    assert_eq!(company.game("measure nowhere"), "measured nothing");
    company.host.stop();
}

#[test]
fn what_is_published_is_heard_by_a_game_and_by_services_of_both_kinds() {
    let company = Company::new();
    let connection = company.game("who").replace("postman ", "");
    assert_eq!(company.ask("probe", "subscribe inn"), "reply done");
    assert!(company.ask("listener", "subscribe inn").starts_with("reply Ok("));
    assert_eq!(company.game("subscribe inn"), "done");
    let text = format!("show {connection} good evening");
    // The game is subscribed when that is on disk.
    let mut heard = 0;
    while heard < 3 {
        company.client.borrow_mut().send(format!("request 10000 other publish inn {text}"));
        let answer = company.client.borrow_mut().receive_until("reply ");
        heard = answer["reply ".len()..].parse().expect("a number of those who hear it");
    }
    // It may come before the answer, or behind it.
    assert_eq!(
        company.client.borrow_mut().ask_for(format!("tell other publish inn {text}"), "pub"),
        "published good evening"
    );
    assert!(company.ask_anew("probe", "heard").contains(&format!("published {text}")));
    assert!(company.ask_anew("listener", "heard").contains(&text));
    company.host.stop();
}

#[test]
fn that_a_blob_has_changed_is_heard_by_a_game_and_by_services_of_both_kinds() {
    let company = Company::new();
    assert_eq!(company.game("listen"), "listening");
    assert_eq!(company.game("watch map"), "done");
    assert_eq!(company.ask("probe", "watch map"), "reply done");
    assert_eq!(company.ask("listener", "watch map"), "reply true");
    // An answer of a game leaves when what it has asked for before is done.
    company.client.borrow_mut().send("request 10000 other put map 2000");
    let mut heard: Vec<String> = (0..2).map(|_| company.client.borrow_mut().receive()).collect();
    heard.sort();
    assert_eq!(heard, ["changed map", "reply done"]);
    company.ask_until("probe", "heard", "reply changed map");
    let answer = company.ask("listener", "heard");
    assert!(answer.starts_with("reply Subject::Changed(") && answer.ends_with(" map"), "{answer}");
    company.host.stop();
}
