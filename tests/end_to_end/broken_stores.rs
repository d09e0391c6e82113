//! Databases that are damaged, cut, foreign, taken, read-only or full: one line that says so, nothing overwritten, and
//! everything there once it is mended.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use wheelhouse_tests::{Client, Config, EventId, Host, Mount, World, assert_no_drift, ledger};

fn world() -> World {
    World::new(&Config::new().patient().guest(ledger()))
}

/// Bumps a ledger to 5 in a world that is then stopped.
fn stopped_world() -> World {
    let world = world();
    let host = world.serve();
    let mut client = host.connect();
    (1..=5).for_each(|number| assert_eq!(client.ask("bump a"), format!("a {number}")));
    host.stop();
    world
}

fn database(world: &World) -> PathBuf {
    world.data_dir().join("world.db")
}

fn has_everything(world: &World) {
    let host = world.serve();
    assert_eq!(host.connect().count("a"), 5);
    host.stop();
}

/// With the database as `change` makes it, the host must not start, say why, and leave it as it is.
fn is_refused(change: impl FnOnce(&mut Vec<u8>), reasons: &[&str]) {
    let world = stopped_world();
    let file = database(&world);
    let whole = fs::read(&file).expect("the world is in a file");
    let mut changed = whole.clone();
    change(&mut changed);
    fs::write(&file, &changed).expect("the data directory takes files");
    let line = world.serve_and_fail();
    for reason in ["world.db"].iter().chain(reasons) {
        assert!(line.contains(reason), "{reason:?} is not in {line:?}");
    }
    assert!(fs::read(&file).expect("it is there") == changed, "the file was changed, after {line}");
    fs::write(&file, whole).expect("the data directory takes files");
    has_everything(&world);
}

#[test]
fn a_database_that_was_cut_off() {
    is_refused(|bytes| bytes.truncate(bytes.len() / 2), &[]);
}

#[test]
fn a_database_of_zero_bytes() {
    is_refused(Vec::clear, &[]);
}

#[test]
fn a_database_of_zeroes() {
    is_refused(|bytes| bytes.fill(0), &[]);
}

#[test]
fn a_database_that_is_a_text() {
    is_refused(|bytes| *bytes = b"not a database\n".repeat(400), &["move it away"]);
}

#[test]
fn a_database_with_a_broken_middle() {
    is_refused(|bytes| bytes[4096..].fill(0xA5), &["damaged"]);
}

#[test]
fn a_database_of_a_newer_program() {
    // The user version, four bytes from 60 of the header of an SQLite file: the version of the schema.
    is_refused(|bytes| bytes[60..64].copy_from_slice(&9999_u32.to_be_bytes()), &["newer Wheelhouse", "9999"]);
}

#[test]
fn a_database_of_another_program() {
    // The application id, four bytes from 68.
    is_refused(|bytes| bytes[68..72].copy_from_slice(b"MPBX"), &["not a database of Wheelhouse"]);
}

/// The write-ahead log of a host that was killed is changed: the host must say so and come up once it is back.
fn a_lost_log_is_noticed(change: impl Fn(&mut Vec<u8>)) {
    let world = world();
    let host = world.serve();
    let mut client = host.connect();
    (1..=5).for_each(|number| assert_eq!(client.ask("bump a"), format!("a {number}")));
    host.kill();
    let log = world.data_dir().join("world.db-wal");
    let whole = fs::read(&log).expect("what was not yet moved into the database is in its log");
    let base = fs::read(database(&world)).expect("the world is in a file");
    let mut changed = whole.clone();
    change(&mut changed);
    fs::write(&log, &changed).expect("the data directory takes files");
    if changed.is_empty() {
        fs::remove_file(&log).expect("it is there");
    }
    for _ in 0..2 {
        let line = world.serve_and_fail();
        assert!(line.contains("world.db") && line.contains("write-ahead log"), "{line}");
        assert!(fs::read(database(&world)).expect("it is there") == base, "the file was changed, after {line}");
    }
    fs::write(&log, whole).expect("the data directory takes files");
    has_everything(&world);
}

#[test]
fn a_write_ahead_log_that_was_deleted() {
    a_lost_log_is_noticed(Vec::clear);
}

#[test]
fn a_write_ahead_log_that_was_cut_off() {
    a_lost_log_is_noticed(|bytes| bytes.truncate(bytes.len() / 2));
}

#[test]
fn a_write_ahead_log_that_lost_its_last_byte() {
    a_lost_log_is_noticed(|bytes| bytes.truncate(bytes.len() - 1));
}

#[test]
fn a_second_host_on_the_same_data_directory_harms_nothing() {
    let world = world();
    let host = world.serve();
    let mut client = host.connect();
    assert_eq!(client.ask("bump a"), "a 1");
    let line = world.serve_and_fail();
    assert!(line.contains("is in use by another running host"), "{line}");
    assert_eq!(client.ask("bump a"), "a 2");
    host.kill();
    assert_eq!(world.serve().connect().count("a"), 2);
}

#[test]
fn a_data_directory_that_became_read_only() {
    let world = stopped_world();
    let Some(mount) = Mount::read_only(&world.data_dir()) else { return };
    let before = fs::read(database(&world)).expect("the world is in a file");
    let line = world.serve_and_fail();
    assert!(line.contains("cannot write to the data directory"), "{line}");
    assert!(fs::read(database(&world)).expect("it is there") == before, "the file was changed");
    drop(mount);
    has_everything(&world);
}

/// Room of a small disk, and of one with more.
const SMALL_KB: u32 = 8 * 1024;
const LARGE_KB: u32 = 64 * 1024;

/// How long it is watched that nothing comes. It is this time itself that counts.
const SILENCE: Duration = Duration::from_millis(300);

/// A world that has filled its small disk.
struct Full {
    world: World,
    disk: Mount,
    host: Host,
    /// Waits for the acknowledgement of the piece that did not fit.
    waiting: Client,
    /// Pieces that were acknowledged.
    pieces: u64,
    /// An event that bumps the ledger `ticks` every [`TICK_MS`].
    ticking: EventId,
}

/// So often that it comes due all the time.
const TICK_MS: u64 = 50;

/// Runs a world on a small disk, bumps a ledger to 5, has an event repeat, and then fills the disk. None where nothing can be mounted.
fn full_disk() -> Option<Full> {
    let world = world();
    fs::create_dir(world.data_dir()).expect("the temporary folder takes folders");
    let disk = Mount::small(&world.data_dir(), SMALL_KB)?;
    let host = world.serve();
    let mut waiting = host.connect();
    (1..=5).for_each(|number| assert_eq!(waiting.ask("bump a"), format!("a {number}")));
    let ticking = waiting.schedule(&format!("every {TICK_MS} coalesce bump ticks"));
    assert_eq!(host.status()["store"]["state"], "ok");
    for pieces in 0.. {
        assert!(pieces * 256 <= u64::from(SMALL_KB), "the disk takes more than it has room for");
        waiting.send(format!("put {pieces} 256"));
        while !waiting.hears_within(Duration::from_millis(20)) {
            if host.status()["store"]["state"] != "ok" {
                return Some(Full { world, disk, host, waiting, pieces, ticking });
            }
        }
        assert_eq!(waiting.receive(), format!("put {pieces}"));
    }
    None
}

/// Nothing is acknowledged that is not on disk, what needs no disk goes on, and the operator is told in one line and in
/// the status.
fn is_reported(full: &Full) -> Client {
    let lines = full.host.log().wait_for_several(1, &["cannot be written", "make room"]);
    assert!(lines[0].contains("world.db"), "{lines:?}");
    let mut bumper = full.host.connect();
    bumper.send("bump a");
    assert!(!bumper.hears_within(SILENCE), "a bump that is not on disk is acknowledged");
    assert_eq!(full.host.connect().ask("ping x"), "pong x", "what is not durable waits for no disk");
    let state = full.host.status()["store"]["state"].clone();
    assert!(state.as_str().expect("a state is a text").contains("cannot be written"), "{state}");
    assert_eq!(full.host.log().lines_with(&["cannot be written"]).len(), 1, "one line is enough");
    bumper
}

fn has_pieces(client: &mut Client, pieces: u64) {
    (0..pieces)
        .for_each(|piece| assert_eq!(client.ask(format!("size filler/{piece}")), "size 262144", "piece {piece}"));
}

#[test]
fn a_full_disk_is_reported_and_the_host_goes_on_once_there_is_room() {
    let Some(mut full) = full_disk() else { return };
    let mut bumper = is_reported(&full);
    bumper.send("ping behind it");
    full.disk.resize(LARGE_KB);
    assert_eq!(full.waiting.receive(), format!("put {}", full.pieces), "it was only late");
    assert_eq!(
        (bumper.receive(), bumper.receive()),
        ("a 6".into(), "pong behind it".into()),
        "in the order of sending"
    );
    assert_eq!(bumper.ask("bump a"), "a 7");
    assert_eq!(full.host.status()["store"]["state"], "ok");
    full.host.kill();
    let host = full.world.serve();
    let mut client = host.connect();
    assert_eq!(client.count("a"), 7);
    has_pieces(&mut client, full.pieces + 1);
    host.stop();
}

#[test]
fn what_was_acknowledged_before_the_disk_was_full_is_there_after_sigkill() {
    let Some(full) = full_disk() else { return };
    is_reported(&full);
    full.host.kill();
    full.disk.resize(LARGE_KB);
    let host = full.world.serve();
    let mut client = host.connect();
    assert!((5..=6).contains(&client.count("a")), "five bumps were acknowledged and one was not");
    has_pieces(&mut client, full.pieces);
    host.stop();
}

/// Every run of the event that ticks had its effect once, and none is missing.
fn has_ticked(client: &mut Client, ticking: EventId) -> usize {
    client.ask("cancel-kind bump");
    let runs = client.runs();
    assert_no_drift(&runs, ticking, TICK_MS);
    assert_eq!(client.count("ticks"), runs.len() as u64, "that it ran and what it did are together");
    runs.len()
}

#[test]
fn events_come_due_and_clients_come_and_go_while_the_disk_is_full() {
    const GOERS: u64 = 12;
    let Some(mut full) = full_disk() else { return };
    assert_eq!(full.host.connect().ask("ping x"), "pong x", "whatever ran when the trouble began has ended");
    let fired = full.host.status()["events"]["fired"].clone();
    for number in 0..GOERS {
        let mut goer = full.host.connect();
        assert_eq!(goer.ask(format!("ping {number}")), format!("pong {number}"));
        if number % 2 == 0 {
            goer.send("bump goers");
        }
    }
    full.host.wait_until("they are gone", |status| status["connections"]["open"] == 1);
    // As far as it has come due so far, and it comes due all the time.
    assert_eq!(full.host.status()["events"]["fired"], fired, "no event runs that cannot be kept");
    full.disk.resize(LARGE_KB);
    assert_eq!(full.waiting.receive(), format!("put {}", full.pieces));
    full.host.wait_until("events run again", |status| status["events"]["fired"].as_u64() > fired.as_u64());
    let mut client = full.host.connect();
    client.ask_until("read goers", &format!("goers {}", GOERS / 2));
    let ticked = has_ticked(&mut client, full.ticking);
    drop(client);
    full.host.kill();

    let host = full.world.serve();
    let mut client = host.connect();
    assert_eq!((client.count("a"), client.count("goers")), (5, GOERS / 2));
    assert_eq!(has_ticked(&mut client, full.ticking), ticked, "what was cancelled does not run again");
    has_pieces(&mut client, full.pieces + 1);
    host.stop();
}

#[test]
fn a_stop_while_the_disk_is_full_says_what_is_not_saved_and_loses_nothing_acknowledged() {
    let Some(full) = full_disk() else { return };
    drop(is_reported(&full));
    let stopped = full.host.stop_by(Signal::TERM);
    assert_eq!(stopped.status, Some(1), "{}", stopped.log.join("\n"));
    let errors: Vec<&String> = stopped.log.iter().filter(|line| line.starts_with("error: ")).collect();
    let [line] = errors[..] else { panic!("one line says why, not these: {errors:?}") };
    for part in ["not everything was saved", "world.db", "cannot be written", "what was acknowledged is safe"] {
        assert!(line.contains(part), "{part:?} is not in {line:?}");
    }
    assert!(!stopped.log.iter().any(|line| line.contains("the world is saved")), "{}", stopped.log.join("\n"));
    drop(full.waiting);

    full.disk.resize(LARGE_KB);
    let host = full.world.serve();
    let mut client = host.connect();
    assert_eq!(client.ask("bump b"), "b 1");
    assert!((5..=6).contains(&client.count("a")), "five bumps were acknowledged and one was not");
    has_ticked(&mut client, full.ticking);
    has_pieces(&mut client, full.pieces);
    host.stop();
}
