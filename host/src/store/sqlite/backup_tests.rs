//! Copies of a running world: whole or not there, whatever comes in between.

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use super::scratch::{all_events, commit_and_be_killed, files, last_number, numbered, open, sequences};
use crate::store::{Store, StoreError};
use crate::world::WorldChange;

#[test]
fn a_backup_put_into_an_empty_directory_is_a_world_and_goes_on_from_there() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut writer = store.writer(vec![]).unwrap();
    let mut reader = store.reader().unwrap();
    for number in 1..=3 {
        writer.commit(&[numbered(number)]).unwrap();
    }
    let elsewhere = tempfile::tempdir().unwrap();
    reader.backup(&elsewhere.path().join("world.db")).unwrap();
    writer.commit(&[numbered(4)]).unwrap();
    assert_eq!(files(elsewhere.path()).into_keys().collect::<Vec<_>>(), ["world.db"]);

    let copy = open(elsewhere.path());
    let loaded = copy.load().unwrap();
    assert_eq!((last_number(&loaded), loaded.next_sequence), (3, 4));
    drop(copy);
    commit_and_be_killed(elsewhere.path(), 4..=5);
    let copy = open(elsewhere.path());
    assert_eq!(last_number(&copy.load().unwrap()), 5);
    assert_eq!(sequences(&all_events(&mut *copy.reader().unwrap())), [1, 2, 3, 4, 5]);
}

#[test]
fn a_backup_replaces_nothing_and_leaves_nothing_half_written() {
    let directory = tempfile::tempdir().unwrap();
    commit_and_be_killed(directory.path(), 1..=1);
    let store = open(directory.path());
    let mut reader = store.reader().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let taken = elsewhere.path().join("taken");
    fs::write(&taken, "dear to me").unwrap();
    let text = reader.backup(&taken).unwrap_err().to_string();
    let expected = format!(
        "the backup {} cannot be written: there is a file of that name already; name a new one",
        taken.display()
    );
    assert_eq!(text, expected);
    for hopeless in ["no/such/folder", "taken/inside"] {
        let refused = reader.backup(&elsewhere.path().join(hopeless));
        assert!(matches!(refused, Err(StoreError::Backup { .. })), "{hopeless}");
    }
    assert_eq!(files(elsewhere.path()).len(), 1);
    assert_eq!(fs::read_to_string(&taken).unwrap(), "dear to me");
}

#[test]
fn a_backup_takes_no_name_in_the_data_directory_that_the_store_may_use() {
    let directory = tempfile::tempdir().unwrap();
    commit_and_be_killed(directory.path(), 1..=1);
    let mut reader = open(directory.path()).reader().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let linked = elsewhere.path().join("link");
    std::os::unix::fs::symlink(directory.path(), &linked).unwrap();
    let before = files(directory.path());
    for folder in [directory.path(), &linked] {
        for name in ["world.db", "world.db-journal", "world.db.new", "world.commits", "world.old"] {
            let error = reader.backup(&folder.join(name)).unwrap_err();
            assert!(matches!(error, StoreError::BackupName { .. }), "{name}: {error:?}");
            let text = error.to_string();
            assert!(text.contains(name) && text.contains("name it otherwise, or name another folder"), "{text}");
        }
    }
    assert!(files(directory.path()) == before);
    reader.backup(&directory.path().join("copy-of-world.db")).unwrap();
    reader.backup(&elsewhere.path().join("world.db")).unwrap();
}

#[test]
fn a_backup_of_a_damaged_database_says_so_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut writer = store.writer(vec![]).unwrap();
    for number in 1..=100 {
        let mut batch = numbered(number);
        let key = format!("bulk {number}").into();
        batch.world.push(WorldChange::Kv { space: "rules".into(), key, value: Some(vec![7; 10_000]) });
        writer.commit(&[batch]).unwrap();
    }
    writer.close().unwrap();
    let file = fs::OpenOptions::new().write(true).open(directory.path().join("world.db")).unwrap();
    let bytes = file.metadata().unwrap().len();
    file.write_all_at(&vec![0xA5; 4096 * 20], (bytes / 2) & !4095).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let error = open(directory.path()).reader().unwrap().backup(&elsewhere.path().join("copy.db")).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("world.db is damaged"), "{error}");
    assert_eq!(files(elsewhere.path()).len(), 0);
}

#[test]
fn a_backup_holds_no_commit_up() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut writer = store.writer(vec![]).unwrap();
    writer.commit(&[numbered(1)]).unwrap();
    let mut reader = store.reader().unwrap();
    let copy = directory.path().join("copy.db");
    let (begin, begun) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let backup = scope.spawn(|| {
            begin.send(()).unwrap();
            reader.backup(&copy)
        });
        begun.recv().unwrap();
        for number in 2..=20 {
            writer.commit(&[numbered(number)]).unwrap();
            writer.upkeep(false).unwrap();
        }
        backup.join().unwrap().unwrap();
    });
    assert!(copy.exists());
}

#[test]
fn an_interrupted_backup_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut writer = store.writer(vec![]).unwrap();
    for number in 1..=100 {
        let mut batch = numbered(number);
        let key = format!("bulk {number}").into();
        batch.world.push(WorldChange::Kv { space: "rules".into(), key, value: Some(vec![7; 100_000]) });
        writer.commit(&[batch]).unwrap();
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let mut reader = store.reader().unwrap();
    let interrupt = reader.interrupter().unwrap();
    let has_ended = AtomicBool::new(false);
    let told = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !has_ended.load(Ordering::Relaxed) {
                interrupt();
            }
        });
        // A busy machine may leave no time for it.
        let mut told = Ok(());
        for attempt in 0..50 {
            told = reader.backup(&elsewhere.path().join(format!("copy {attempt}")));
            if told.is_err() {
                break;
            }
            fs::remove_file(elsewhere.path().join(format!("copy {attempt}"))).unwrap();
        }
        has_ended.store(true, Ordering::Relaxed);
        told
    });
    assert!(matches!(told, Err(StoreError::BackupInterrupted { .. })), "{told:?}");
    assert_eq!(files(elsewhere.path()).len(), 0);
    reader.backup(&elsewhere.path().join("copy")).unwrap();
}

#[test]
fn what_a_kill_has_left_of_a_backup_goes_when_it_is_made_again() {
    let directory = tempfile::tempdir().unwrap();
    commit_and_be_killed(directory.path(), 1..=1);
    let mut reader = open(directory.path()).reader().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let file = |name: &str| elsewhere.path().join(name);
    let leftovers = [".copy.db.aB3xyz.partial", ".copy.db.aB3xyz.partial-journal", ".copy.db.000000.partial"];
    let others = [".copy.db.be-ing.partial", ".copy.aB3xyz.partial", ".copy.db..partial", "copy.db.aB3xyz.partial"];
    leftovers.iter().chain(&others).for_each(|name| fs::write(file(name), "half a copy").unwrap());
    // One that is being written just now.
    let written = fs::File::create(file(".copy.db.busy00.partial")).unwrap();
    written.try_lock().unwrap();
    reader.backup(&file("copy.db")).unwrap();
    let mut expected = [&others[..], &["copy.db", ".copy.db.busy00.partial"]].concat();
    expected.sort_unstable();
    assert_eq!(files(elsewhere.path()).into_keys().collect::<Vec<_>>(), expected);
}
