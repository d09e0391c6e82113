//! The write-ahead log deleted, cut or exchanged: while no host runs that is noticed at the start, and nothing is
//! touched, so that the right log can be brought back; while one runs, by the writer.

use std::fs::{self, OpenOptions};

use super::Files;
use super::scratch::{
    all_events, commit_and_be_killed, files, last_number, numbered, open, put_back, refusal, sequences,
};
use super::write::SqliteWriter;
use crate::store::{SqliteStore, Store, StoreError, StoreWriter};

#[test]
fn a_log_that_was_deleted_or_cut_anywhere_is_missed_and_brought_back_it_is_whole_again() {
    let directory = tempfile::tempdir().unwrap();
    commit_and_be_killed(directory.path(), 1..=6);
    let whole = files(directory.path());
    let log = &whole["world.db-wal"];
    let lengths = (0..log.len()).step_by(509).chain([1, 31, 32, 33, 55, 56, 57, log.len() - 4096, log.len() - 1]);
    for length in lengths.map(Some).chain([None]) {
        let mut cut = whole.clone();
        match length {
            Some(length) => cut.insert("world.db-wal".to_owned(), log[..length].to_vec()),
            None => cut.remove("world.db-wal"),
        };
        put_back(directory.path(), &cut);
        let error = refusal(directory.path());
        let StoreError::LogLost { found, expected: 6, .. } = &error else { panic!("{length:?}: {error:?}") };
        assert!(*found < 6);
        assert!(files(directory.path()) == cut, "{length:?}: something was touched");
        // Only the log is brought back, beside whatever the refusal has left.
        fs::write(directory.path().join("world.db-wal"), log).unwrap();
        let store = open(directory.path());
        assert_eq!(last_number(&store.load().unwrap()), 6, "{length:?}");
    }
    let mut reader = open(directory.path()).reader().unwrap();
    assert_eq!(sequences(&all_events(&mut *reader)), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_log_with_any_part_overwritten_is_missed() {
    let directory = tempfile::tempdir().unwrap();
    commit_and_be_killed(directory.path(), 1..=6);
    let whole = files(directory.path());
    let log = &whole["world.db-wal"];
    for at in (0..log.len()).step_by(1021) {
        let mut changed = whole.clone();
        changed.insert("world.db-wal".to_owned(), {
            let mut log = log.clone();
            log[at] ^= 0x10;
            log
        });
        put_back(directory.path(), &changed);
        assert!(matches!(refusal(directory.path()), StoreError::LogLost { .. }), "byte {at}");
        assert!(files(directory.path()) == changed, "byte {at}");
    }
    let mut garbage = whole.clone();
    garbage.insert("world.db-wal".to_owned(), b"no log at all, and longer than its header would be".to_vec());
    put_back(directory.path(), &garbage);
    assert!(matches!(refusal(directory.path()), StoreError::LogLost { .. }));
    put_back(directory.path(), &whole);
    assert_eq!(last_number(&open(directory.path()).load().unwrap()), 6);
}

#[test]
fn an_older_copy_of_everything_but_the_mark_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    commit_and_be_killed(directory.path(), 1..=3);
    let older = files(directory.path());
    commit_and_be_killed(directory.path(), 4..=5);
    let newer = files(directory.path());
    let mut mixed = older.clone();
    mixed.insert("world.commits".to_owned(), newer["world.commits"].clone());
    put_back(directory.path(), &mixed);
    let text = refusal(directory.path()).to_string();
    assert!(text.contains("commit 5 was made and it holds 3"), "{text}");
    // As the message says: without the mark it goes on from there.
    mixed.remove("world.commits");
    put_back(directory.path(), &mixed);
    assert_eq!(last_number(&open(directory.path()).load().unwrap()), 3);
}

#[test]
fn the_log_of_another_database_is_not_laid_over_this_one() {
    let directory = tempfile::tempdir().unwrap();
    commit_and_be_killed(directory.path(), 1..=3);
    let copy = directory.path().join("copy.db");
    open(directory.path()).reader().unwrap().backup(&copy).unwrap();
    let first = files(directory.path());
    commit_and_be_killed(directory.path(), 4..=9);
    let second = files(directory.path());
    for database in [&first["copy.db"], &first["world.db"]] {
        let mut mixed = second.clone();
        mixed.insert("world.db".to_owned(), database.clone());
        mixed.remove("world.commits");
        put_back(directory.path(), &mixed);
        assert!(matches!(refusal(directory.path()), StoreError::LogForeign { .. }));
        assert!(files(directory.path()) == mixed);
        fs::remove_file(directory.path().join("world.db-wal")).unwrap();
        assert_eq!(last_number(&open(directory.path()).load().unwrap()), 3, "as the message says");
    }
}

#[test]
fn a_mark_may_be_missing_or_empty_but_not_nonsense() {
    let directory = tempfile::tempdir().unwrap();
    commit_and_be_killed(directory.path(), 1..=3);
    let mark = directory.path().join("world.commits");
    for content in [None, Some("")] {
        match content {
            Some(content) => fs::write(&mark, content).unwrap(),
            None => fs::remove_file(&mark).unwrap(),
        }
        assert_eq!(last_number(&open(directory.path()).load().unwrap()), 3);
    }
    fs::write(&mark, "three, I think").unwrap();
    let before = files(directory.path());
    let text = refusal(directory.path()).to_string();
    assert!(text.contains("world.commits of the database") && text.contains("delete it to go on"), "{text}");
    assert!(files(directory.path()) == before);
}

#[test]
fn a_kill_between_a_commit_and_its_mark_loses_nothing_and_the_mark_is_put_right() {
    let directory = tempfile::tempdir().unwrap();
    commit_and_be_killed(directory.path(), 1..=2);
    let mark = fs::read(directory.path().join("world.commits")).unwrap();
    commit_and_be_killed(directory.path(), 3..=3);
    fs::write(directory.path().join("world.commits"), mark).unwrap();
    let store = open(directory.path());
    assert_eq!(last_number(&store.load().unwrap()), 3);
    drop(store.writer(vec![]).unwrap());
    drop(store);
    let text = fs::read_to_string(directory.path().join("world.commits")).unwrap();
    assert!(text.starts_with("00000000000000000003 "), "{text}");
}

#[test]
fn a_kill_at_any_moment_of_taking_a_database_into_use_is_survived() {
    let directory = tempfile::tempdir().unwrap();
    commit_and_be_killed(directory.path(), 1..=3);
    // Killed with the new run in the log and not yet in the database.
    let writing = super::connection::writing(&directory.path().join("world.db")).unwrap();
    writing
        .execute_batch(
            "PRAGMA wal_checkpoint(TRUNCATE);
             BEGIN IMMEDIATE;
             INSERT OR REPLACE INTO counters SELECT 'previous_run', value FROM counters WHERE name = 'run';
             INSERT OR REPLACE INTO counters VALUES ('run', random());
             COMMIT;",
        )
        .unwrap();
    drop(writing);
    assert!(files(directory.path())["world.db-wal"].len() > 4096);
    assert_eq!(last_number(&open(directory.path()).load().unwrap()), 3);
    commit_and_be_killed(directory.path(), 4..=4);
    assert_eq!(last_number(&open(directory.path()).load().unwrap()), 4);
}

#[test]
fn a_log_that_is_deleted_while_the_host_runs_is_noticed_and_nothing_is_lost() {
    for is_replaced in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("world.db-wal");
        let store = open(directory.path());
        let mut writer = store.writer(vec![]).unwrap();
        writer.commit(&[numbered(1)]).unwrap();
        writer.commit(&[numbered(2)]).unwrap();
        fs::remove_file(&log).unwrap();
        if is_replaced {
            fs::write(&log, "").unwrap();
        }
        let error = writer.commit(&[numbered(3)]).unwrap_err();
        assert!(matches!(error, StoreError::LogTaken { .. }) && !error.is_temporary(), "{error:?}");
        drop((writer, store));
        let text = error.to_string();
        assert!(text.contains("was deleted or replaced while the host ran; all that was committed"), "{text}");
        assert_eq!(last_number(&open(directory.path()).load().unwrap()), 2);
    }
}

/// A writer with batch 1 on disk, and batch 2 committed but not yet counted.
fn between_a_commit_and_its_count(directory: &std::path::Path) -> SqliteWriter {
    drop(open(directory).writer(vec![]).unwrap());
    let mut writer = SqliteWriter::open(&Files::of(directory), vec![]).unwrap();
    writer.commit(&[numbered(1)]).unwrap();
    writer.transact(&[numbered(2)]).unwrap();
    writer
}

#[test]
fn a_log_that_is_deleted_right_after_a_commit_does_not_have_it_called_unwritten() {
    for told_at in ["the upkeep", "the next commit", "the stop"] {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = between_a_commit_and_its_count(directory.path());
        fs::remove_file(directory.path().join("world.db-wal")).unwrap();
        writer.committed().unwrap();
        let told = match told_at {
            "the upkeep" => writer.upkeep(false),
            "the next commit" => writer.commit(&[numbered(3)]),
            _ => Box::new(writer).close(),
        };
        assert!(matches!(told, Err(StoreError::LogTaken { .. })), "{told_at}: {told:?}");
        assert_eq!(last_number(&open(directory.path()).load().unwrap()), 2, "{told_at}");
    }
}

#[test]
fn a_commit_that_may_have_gone_with_its_log_is_not_called_written() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = between_a_commit_and_its_count(directory.path());
    OpenOptions::new().write(true).open(directory.path().join("world.db-wal")).unwrap().set_len(5000).unwrap();
    assert!(matches!(writer.committed(), Err(StoreError::LogCut { .. })));
}

#[test]
fn a_log_that_cannot_be_tidied_up_at_the_stop_is_left_for_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()).writer(vec![]).unwrap());
    let mut writer = SqliteWriter::open(&Files::of(directory.path()), vec![]).unwrap();
    writer.commit(&[numbered(1)]).unwrap();
    writer.use_log();
    Box::new(writer).close().unwrap();
    assert!(files(directory.path())["world.db-wal"].len() > 4096);
    assert_eq!(last_number(&open(directory.path()).load().unwrap()), 1);
}

#[test]
fn a_log_that_is_deleted_before_the_host_stops_is_saved_at_the_stop() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut writer = store.writer(vec![]).unwrap();
    writer.commit(&[numbered(1)]).unwrap();
    fs::remove_file(directory.path().join("world.db-wal")).unwrap();
    assert!(matches!(writer.close(), Err(StoreError::LogTaken { .. })));
    drop(store);
    assert_eq!(last_number(&open(directory.path()).load().unwrap()), 1);
}

#[test]
fn a_log_that_is_cut_while_the_host_runs_is_noticed_and_not_brought_into_the_database() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut writer = store.writer(vec![]).unwrap();
    for number in 1..=3 {
        writer.commit(&[numbered(number)]).unwrap();
    }
    let database = fs::read(directory.path().join("world.db")).unwrap();
    let log = OpenOptions::new().write(true).open(directory.path().join("world.db-wal")).unwrap();
    log.set_len(5000).unwrap();
    assert!(matches!(writer.commit(&[numbered(4)]), Err(StoreError::LogCut { .. })));
    assert!(matches!(writer.close(), Err(StoreError::LogCut { .. })));
    drop(store);
    assert!(fs::read(directory.path().join("world.db")).unwrap() == database);
    assert!(matches!(SqliteStore::open(directory.path()), Err(StoreError::LogLost { .. })));
}

#[test]
fn a_database_that_is_deleted_while_the_host_runs_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut writer = store.writer(vec![]).unwrap();
    writer.commit(&[numbered(1)]).unwrap();
    let file = directory.path().join("world.db");
    let elsewhere = directory.path().join("elsewhere.db");
    fs::rename(&file, &elsewhere).unwrap();
    assert!(matches!(writer.commit(&[numbered(2)]), Err(StoreError::DatabaseTaken { .. })));
    drop((writer, store));
    fs::rename(&elsewhere, &file).unwrap();
    assert_eq!(last_number(&open(directory.path()).load().unwrap()), 1, "brought back, it is whole");
}

#[test]
fn a_database_that_is_cut_while_the_host_runs_is_noticed_and_not_written_to() {
    for length in [0, 4096, 5000] {
        for told_at in ["the commit", "the next commit", "the upkeep", "the stop"] {
            let directory = tempfile::tempdir().unwrap();
            let mut writer = between_a_commit_and_its_count(directory.path());
            if told_at != "the commit" {
                writer.committed().unwrap();
            }
            let database = OpenOptions::new().write(true).open(directory.path().join("world.db")).unwrap();
            database.set_len(length).unwrap();
            let before = files(directory.path());
            let told = match told_at {
                "the commit" => writer.committed(),
                "the next commit" => writer.commit(&[numbered(3)]),
                "the upkeep" => {
                    writer.fill_log();
                    writer.upkeep(true)
                }
                _ => Box::new(writer).close(),
            };
            let Err(error @ StoreError::DatabaseCut { .. }) = told else { panic!("{told_at}: {told:?}") };
            assert!(!error.is_temporary());
            let text = error.to_string();
            assert!(text.contains(&format!("it has {length} bytes where it had ")), "{text}");
            let after = files(directory.path());
            for file in ["world.db", "world.db-wal"] {
                assert!(after[file] == before[file], "{told_at}: {file} was written to");
            }
        }
    }
}

#[test]
fn a_database_that_has_grown_is_not_to_be_shorter_than_that_any_more() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut writer = store.writer(vec![]).unwrap();
    let file = directory.path().join("world.db");
    let before = fs::metadata(&file).unwrap().len();
    for number in 1.. {
        let mut batch = numbered(number);
        let key = format!("bulk {number}").into();
        let value = Some(vec![7; 1_000_000]);
        batch.world.push(crate::world::WorldChange::Kv { space: "rules".into(), key, value });
        writer.commit(&[batch]).unwrap();
        writer.upkeep(false).unwrap();
        if fs::metadata(&file).unwrap().len() > before {
            break;
        }
    }
    let grown = fs::metadata(&file).unwrap().len();
    OpenOptions::new().write(true).open(&file).unwrap().set_len(grown - 4096).unwrap();
    let told = writer.commit(&[numbered(1000)]);
    assert!(matches!(told, Err(StoreError::DatabaseCut { .. })), "{told:?}");
}

#[test]
fn the_log_is_brought_into_the_database_when_it_has_grown_and_does_not_grow_for_ever() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut writer = store.writer(vec![]).unwrap();
    let log = directory.path().join("world.db-wal");
    let mut longest = 0;
    for number in 1..=3000 {
        let mut batch = numbered(number);
        batch.world.push(crate::world::WorldChange::Kv {
            space: "rules".into(),
            key: "much".into(),
            value: Some(vec![number as u8; 30_000]),
        });
        writer.commit(&[batch]).unwrap();
        writer.upkeep(number % 2 == 0).unwrap();
        longest = longest.max(fs::metadata(&log).unwrap().len());
        if number == 1500 {
            writer = {
                drop(writer);
                store.writer(vec![]).unwrap()
            };
        }
    }
    assert!(longest > 1_000_000 && longest < 8_000_000, "{longest}");
    drop((writer, store));
    assert_eq!(last_number(&open(directory.path()).load().unwrap()), 3000);
}
