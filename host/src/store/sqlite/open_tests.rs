//! Opening: what a new directory gets, what is refused, and that what is refused is left alone.

use std::fs;
use std::os::unix::fs::FileExt;

use rusqlite::Connection;

use super::scratch::{self, all_events, commit_and_be_killed, entity, files, numbered, open, put, refusal};
use super::{connection, schema};
use crate::store::{Batch, Event, EventCount, GuestChange, SqliteStore, Store, StoreError, StoredGuest};
use crate::world::{EntityId, ThinkerId, World, WorldChange, WorldLimits};

#[test]
fn a_new_directory_gets_an_empty_world_and_nothing_half_made_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    for leftover in ["world.db.new", "world.db.new-journal", "world.db.new-wal"] {
        fs::write(directory.path().join(leftover), "half a database").unwrap();
    }
    let store = open(directory.path());
    assert_eq!(files(directory.path()).into_keys().collect::<Vec<_>>(), ["world.db"]);
    let loaded = store.load().unwrap();
    assert!(loaded.is_exclusive && loaded.guests.is_empty() && loaded.thinkers.is_empty());
    assert_eq!((loaded.next_sequence, loaded.world.next_id), (1, 1));
    World::restore(loaded.world, WorldLimits::default()).unwrap();
}

#[test]
fn a_link_to_nothing_in_the_place_of_a_file_is_refused_before_anything_changes() {
    for is_new in [true, false] {
        for name in ["world.commits", "world.db-wal"] {
            let directory = tempfile::tempdir().unwrap();
            if !is_new {
                commit_and_be_killed(directory.path(), 1..=2);
                let _ = fs::remove_file(directory.path().join(name));
            }
            std::os::unix::fs::symlink("no/such/folder/file", directory.path().join(name)).unwrap();
            let before = files(directory.path());
            let error = refusal(directory.path());
            assert!(matches!(error, StoreError::Open { .. }), "{name}: {error:?}");
            let text = error.to_string();
            assert!(text.contains(name) && text.contains("it is a link to a file that is not there"), "{text}");
            assert!(files(directory.path()) == before, "{name}: something was touched");
        }
    }
}

#[test]
fn leftovers_of_a_creation_go_when_there_is_a_world_too() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()));
    fs::write(directory.path().join("world.db.new"), "half a database").unwrap();
    drop(open(directory.path()));
    assert!(!directory.path().join("world.db.new").exists());
}

#[test]
fn a_world_is_found_again_whether_the_writer_was_closed_or_killed() {
    for is_closed in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        let thinkers = vec![(ThinkerId(0), "sheep".into()), (ThinkerId(4), "wolf".into())];
        let mut writer = store.writer(thinkers).unwrap();
        let datum =
            |entity, name: &str, value| WorldChange::Data { entity: EntityId(entity), name: name.into(), value };
        let world = vec![
            entity(1, None),
            entity(2, Some(4)),
            entity(3, Some(0)),
            entity(5, Some(4)),
            datum(2, "hp", Some(vec![9])),
            datum(2, "name", Some(vec![])),
            datum(5, "hp", Some(vec![7; 9000])),
            datum(1, "gone", Some(vec![1])),
            datum(1, "gone", None),
            WorldChange::Despawned(EntityId(3)),
            WorldChange::NextEntityId(6),
        ];
        let guests = vec![
            GuestChange::Initialised { guest: "rules".into() },
            GuestChange::Saved { guest: "rules".into(), state: Some(vec![1, 2]) },
            GuestChange::Saved { guest: "wolf".into(), state: None },
        ];
        let counts = vec![EventCount { guest: "rules".into(), pending: 9, parked: 4 }];
        let fewer = vec![EventCount { guest: "rules".into(), pending: -2, parked: -1 }];
        let second = Batch { counts: fewer.clone(), ..numbered(2) };
        writer.commit(&[Batch { number: 1, world, guests, counts, ..Batch::default() }, second]).unwrap();
        writer.commit(&[Batch { number: 3, counts: fewer, ..Batch::default() }]).unwrap();
        if is_closed {
            writer.close().unwrap();
            let left = files(directory.path()).into_keys().collect::<Vec<_>>();
            assert_eq!(left, ["world.commits", "world.db"], "a host that has stopped leaves no log");
        } else {
            drop(writer);
            assert!(files(directory.path())["world.db-wal"].len() > 4096);
        }

        let loaded = open(directory.path()).load().unwrap();
        assert_eq!((loaded.next_sequence, loaded.world.next_id), (3, 6));
        assert_eq!(loaded.world.spaces["rules"]["number"], b"2");
        let ids: Vec<_> = loaded.world.entities.iter().map(|entity| entity.id.0).collect();
        assert_eq!(ids, [1, 2, 5]);
        let [first, second, third] = &loaded.world.entities[..] else { panic!() };
        assert_eq!((first.kind, first.position.y, first.data.len(), first.thinker), (9, 1, 0, None));
        assert_eq!(
            second.data.iter().map(|(name, value)| (name.as_str(), value.len())).collect::<Vec<_>>(),
            [("hp", 1), ("name", 0)]
        );
        assert_eq!(third.data["hp"].len(), 9000);
        assert_eq!(loaded.thinkers, [(second.thinker.unwrap(), "wolf".into())], "the other has nobody left");
        assert_eq!(second.thinker, third.thinker);
        let rules = loaded.guests.iter().find(|guest| &*guest.name == "rules").unwrap();
        let expected =
            StoredGuest { name: "rules".into(), initialised: true, state: Some(vec![1, 2]), pending: 5, parked: 2 };
        assert_eq!(rules, &expected);
        World::restore(loaded.world, WorldLimits::default()).unwrap();
    }
}

/// Expects a refusal that alters no byte, and answers with its text.
fn refused_untouched(directory: &std::path::Path, is_expected: impl Fn(&StoreError) -> bool) -> String {
    let before = files(directory);
    for _ in 0..2 {
        let error = refusal(directory);
        assert!(is_expected(&error), "{error:?}");
        assert!(!error.to_string().contains('\n'));
        assert!(files(directory) == before, "{error} altered something");
    }
    refusal(directory).to_string()
}

#[test]
fn what_is_no_database_of_ours_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("world.db");
    let is_damaged = |error: &StoreError| matches!(error, StoreError::Damaged { .. });
    for content in [&b""[..], b"SQLite format 3", b"SQLite format 3\0 and no more", &[0; 8192], b"a letter to my love"]
    {
        fs::write(&file, content).unwrap();
        let text = refused_untouched(directory.path(), is_damaged);
        assert!(text.starts_with(&format!("the database {} is damaged (", file.display())), "{text}");
    }
    fs::remove_file(&file).unwrap();
    let other = Connection::open(&file).unwrap();
    other.execute_batch("CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('Yesterday');").unwrap();
    drop(other);
    refused_untouched(directory.path(), |error| matches!(error, StoreError::Foreign { .. }));
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(matches!(refusal(directory.path()), StoreError::Open { .. }));
}

#[test]
fn a_database_of_a_newer_version_is_left_to_whoever_knows_it() {
    for is_in_the_log in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        commit_and_be_killed(directory.path(), 1..=3);
        let writing = connection::writing(&directory.path().join("world.db")).unwrap();
        writing.pragma_update(None, "user_version", schema::VERSION + 1).unwrap();
        if !is_in_the_log {
            writing.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        }
        drop(writing);
        let text = refused_untouched(directory.path(), |error| matches!(error, StoreError::Newer { .. }));
        assert!(text.ends_with("(schema 3, this one knows 2); run that one"), "{text}");
    }
}

#[test]
fn a_database_that_is_cut_or_overwritten_is_refused_when_it_is_opened_or_loaded_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut writer = store.writer(vec![]).unwrap();
    let world = (1..3000).map(|id| entity(id, None)).chain([WorldChange::NextEntityId(3000)]).collect();
    writer.commit(&[Batch { number: 1, world, ..Batch::default() }]).unwrap();
    writer.close().unwrap();
    drop(store);
    let whole = files(directory.path());
    let file = directory.path().join("world.db");
    let length = whole["world.db"].len();
    assert!(length > 20 * 4096);

    for kept in [100, 4095, 4096, 5000, length / 2, length - 4096, length - 1] {
        fs::write(&file, &whole["world.db"][..kept]).unwrap();
        refused_untouched(directory.path(), |error| matches!(error, StoreError::Damaged { .. }));
    }
    // Every page but the first and those of the events, which no start reads.
    let mut found_on_load = 0;
    for page in 1..length / 4096 {
        fs::write(&file, &whole["world.db"]).unwrap();
        fs::File::options().write(true).open(&file).unwrap().write_all_at(&[0xa5; 4096], page as u64 * 4096).unwrap();
        let before = files(directory.path());
        let error = match SqliteStore::open(directory.path()) {
            Ok(store) => match store.load() {
                Ok(_) => continue,
                Err(error) => error,
            },
            Err(error) => error,
        };
        assert!(matches!(error, StoreError::Damaged { .. }), "page {page}: {error:?}");
        assert!(files(directory.path()) == before, "page {page}");
        found_on_load += 1;
    }
    assert!(found_on_load >= length / 4096 - 8, "{found_on_load} of {}", length / 4096);
    scratch::put_back(directory.path(), &whole);
    assert_eq!(open(directory.path()).load().unwrap().world.entities.len(), 2999);
}

#[test]
fn a_world_of_an_earlier_development_version_is_not_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("world.postcard"), "WHEELHSE").unwrap();
    let text = refused_untouched(directory.path(), |error| matches!(error, StoreError::OldSave { .. }));
    assert!(text.contains("world.postcard was written by an earlier development version"), "{text}");
    fs::remove_file(directory.path().join("world.postcard")).unwrap();
    drop(open(directory.path()));
    fs::write(directory.path().join("world.postcard"), "WHEELHSE").unwrap();
    open(directory.path());
}

#[test]
fn a_log_or_a_mark_without_its_database_keeps_a_new_world_from_beginning() {
    for left in ["world.db-wal", "world.commits"] {
        let directory = tempfile::tempdir().unwrap();
        commit_and_be_killed(directory.path(), 1..=3);
        let whole = files(directory.path());
        for name in whole.keys().filter(|name| *name != left) {
            fs::remove_file(directory.path().join(name)).unwrap();
        }
        let text = refused_untouched(directory.path(), |error| matches!(error, StoreError::Gone { .. }));
        assert!(text.contains(&format!("{left} is still there")), "{text}");
        scratch::put_back(directory.path(), &whole);
        assert_eq!(scratch::last_number(&open(directory.path()).load().unwrap()), 3);
    }
}

#[test]
fn a_database_of_the_first_version_is_brought_forward_with_its_content() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("world.db");
    let mut old = Connection::open(&file).unwrap();
    schema::lay_out(&mut old, 1).unwrap();
    old.execute_batch(
        "INSERT INTO guests (name, initialised, state) VALUES ('rules', 1, x'0102');
         INSERT INTO entities VALUES (7, 1, 2, 3, 4, NULL);
         INSERT INTO entity_data VALUES (7, 'hp', x'09');
         INSERT INTO kv VALUES (1, 'gold', x'63');
         INSERT INTO counters VALUES ('next_entity_id', 8);
         UPDATE counters SET value = 5 WHERE name = 'commits';",
    )
    .unwrap();
    drop(old);
    let store = open(directory.path());
    let loaded = store.load().unwrap();
    assert_eq!(loaded.world.entities[0].data["hp"], [9]);
    assert_eq!(loaded.world.spaces["rules"]["gold"], b"c");
    assert_eq!((loaded.next_sequence, loaded.guests[0].initialised, loaded.guests[0].pending), (1, true, 0));
    let mut writer = store.writer(vec![]).unwrap();
    writer.commit(&[Batch { number: 1, events: put([Event::sample(1, 10)]), ..Batch::default() }]).unwrap();
    assert_eq!(all_events(&mut *store.reader().unwrap()), [Event::sample(1, 10)]);
}

#[test]
fn an_old_database_that_is_damaged_is_not_brought_forward() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("world.db");
    let mut old = Connection::open(&file).unwrap();
    schema::lay_out(&mut old, 1).unwrap();
    old.execute_batch(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
         INSERT INTO entities SELECT i, 1, 1, 1, 1, NULL FROM n;",
    )
    .unwrap();
    drop(old);
    let length = fs::metadata(&file).unwrap().len();
    fs::File::options().write(true).open(&file).unwrap().write_all_at(&[0xa5; 4096], length - 4096).unwrap();
    refused_untouched(directory.path(), |error| matches!(error, StoreError::Damaged { .. }));
}

#[test]
fn a_world_can_be_read_again_while_it_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    assert_eq!(scratch::last_number(&store.load().unwrap()), 0);
    let mut writer = store.writer(vec![]).unwrap();
    assert_eq!(scratch::last_number(&store.load().unwrap()), 0);
    writer.commit(&[numbered(1)]).unwrap();
    assert_eq!(scratch::last_number(&store.load().unwrap()), 1);
}

#[test]
fn names_with_signs_that_mean_something_elsewhere_are_names() {
    let root = tempfile::tempdir().unwrap();
    for name in ["a b", "100%", "a?mode=memory", "a#b", "file:x", "ünï"] {
        let directory = root.path().join(name);
        fs::create_dir(&directory).unwrap();
        commit_and_be_killed(&directory, 1..=1);
        assert_eq!(scratch::last_number(&open(&directory).load().unwrap()), 1, "{name}");
        open(&directory).writer(vec![]).unwrap().close().unwrap();
        assert_eq!(scratch::last_number(&open(&directory).load().unwrap()), 1, "{name}");
    }
}

#[test]
fn a_database_that_somebody_else_reads_is_taken_into_use_only_when_they_are_done() {
    let says_why = |error: StoreError| {
        let text = error.to_string();
        assert!(text.contains("cannot be opened: another program holds it locked; close that one"), "{text}");
    };
    for has_log in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        commit_and_be_killed(directory.path(), 1..=3);
        if !has_log {
            open(directory.path()).writer(vec![]).unwrap().close().unwrap();
        }
        let somebody = connection::reading(&directory.path().join("world.db")).unwrap();
        somebody.execute_batch("BEGIN; SELECT count(*) FROM kv;").unwrap();
        if has_log {
            says_why(refusal(directory.path()));
        } else {
            let store = open(directory.path());
            says_why(store.writer(vec![]).err().unwrap());
            assert_eq!(scratch::last_number(&store.load().unwrap_or_default()), 0, "it is still in their hands");
        }
        drop(somebody);
        // What the attempt has left in the log does not keep the next from beginning.
        let store = open(directory.path());
        drop(store.writer(vec![]).unwrap());
        assert_eq!(scratch::last_number(&store.load().unwrap()), 3);
    }
}
